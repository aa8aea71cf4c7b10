#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#else
#include <pthread.h>
#include <pthread/qos.h>
#endif

// What Swift cannot call itself: variadic functions, and functions that only one system has.

// Opens a non-blocking descriptor pair to wake a thread by: one eventfd on Linux, else a pipe.
// Returns 0, or -1 with errno set.
static inline int conflux_waker_open(int *read_end, int *write_end) {
#if defined(__linux__)
    int descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (descriptor < 0) return -1;
    *read_end = descriptor;
    *write_end = descriptor;
    return 0;
#else
    int ends[2];
    if (pipe(ends) != 0) return -1;
    for (int index = 0; index < 2; index += 1) {
        if (fcntl(ends[index], F_SETFL, O_NONBLOCK) != 0
            || fcntl(ends[index], F_SETFD, FD_CLOEXEC) != 0) {
            int failure = errno;
            close(ends[0]);
            close(ends[1]);
            errno = failure;
            return -1;
        }
    }
    *read_end = ends[0];
    *write_end = ends[1];
    return 0;
#endif
}

// Makes the read end readable. A full pipe or counter is readable already, hence no error.
static inline void conflux_waker_signal(int write_end) {
    uint64_t one = 1;
    while (write(write_end, &one, sizeof one) < 0 && errno == EINTR) {}
}

// Takes back every signal given so far.
static inline void conflux_waker_drain(int read_end) {
    uint64_t taken[16];
    ssize_t count;
    do {
        count = read(read_end, taken, sizeof taken);
#if defined(__linux__)
    } while (count < 0 && errno == EINTR);
#else
    } while (count == (ssize_t)sizeof taken || (count < 0 && errno == EINTR));
#endif
}

static inline void conflux_waker_close(int read_end, int write_end) {
    close(read_end);
    if (write_end != read_end) close(write_end);
}

// Names the calling thread. Linux keeps the first 15 bytes.
static inline void conflux_name_thread(const char *name) {
#if defined(__linux__)
    prctl(PR_SET_NAME, name, 0, 0, 0);
#else
    pthread_setname_np(name);
#endif
}

// Lets other threads go first where processors are busy: nice 10 on Linux, where 0 is the
// calling thread, "utility" on Darwin. A thread that may not lower its priority keeps it.
static inline void conflux_lower_priority(void) {
#if defined(__linux__)
    setpriority(PRIO_PROCESS, 0, 10);
#else
    pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0);
#endif
}
