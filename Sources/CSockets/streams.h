#pragma once
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/epoll.h>
#else
#include <sys/event.h>
#endif

// Stream sockets of the system, and waiting for many of them by one descriptor. What returns a descriptor
// returns -1 with errno set where it fails. Every descriptor is non-blocking, and closed on exec.

// What a watched descriptor is ready for.
typedef struct {
    uint32_t number;
    uint8_t is_readable;
    uint8_t is_writable;
} conflux_ready;

// How a connection is kept: times in seconds, but for the last; 0 for the system's choice.
typedef struct {
    int idle;
    int interval;
    int unacknowledged_milliseconds;
} conflux_keeping;

static inline int conflux_set_flags(int descriptor) {
    return fcntl(descriptor, F_SETFL, O_NONBLOCK) != 0
            || fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0
        ? -1 : 0;
}

static inline int conflux_close_failed(int descriptor) {
    int failure = errno;
    close(descriptor);
    errno = failure;
    return -1;
}

static inline int conflux_set_option(int descriptor, int level, int option, int value) {
    return setsockopt(descriptor, level, option, &value, sizeof value);
}

// Makes what waits for many descriptors. It is readable itself when one of them is ready.
static inline int conflux_watch_open(void) {
#if defined(__linux__)
    return epoll_create1(EPOLL_CLOEXEC);
#else
    return kqueue();
#endif
}

// Watches a descriptor under a number, for what it can read, and write if asked for. Closing the descriptor
// ends it.
static inline int conflux_watch(
    int watch, int descriptor, uint32_t number, int is_new, int is_writing) {
#if defined(__linux__)
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN | (is_writing ? EPOLLOUT : 0);
    event.data.u32 = number;
    return epoll_ctl(watch, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event);
#else
    struct kevent changes[2];
    int count = 0;
    if (is_new) {
        EV_SET(&changes[count++], descriptor, EVFILT_READ, EV_ADD, 0, 0, (void *)(uintptr_t)number);
    }
    if (is_writing || !is_new) {
        EV_SET(
            &changes[count++], descriptor, EVFILT_WRITE, is_writing ? EV_ADD : EV_DELETE, 0, 0,
            (void *)(uintptr_t)number);
    }
    return kevent(watch, changes, count, NULL, 0, NULL);
#endif
}

// Watches a descriptor no more, though it stays open.
static inline void conflux_unwatch(int watch, int descriptor) {
#if defined(__linux__)
    epoll_ctl(watch, EPOLL_CTL_DEL, descriptor, NULL);
#else
    struct kevent change;
    EV_SET(&change, descriptor, EVFILT_READ, EV_DELETE, 0, 0, NULL);
    kevent(watch, &change, 1, NULL, 0, NULL);
#endif
}

// Watches a descriptor under a number until it can be read, or until its connection has ended. Then it is watched no
// more, unless this is called again.
static inline int conflux_watch_once(int watch, int descriptor, uint32_t number, int is_new) {
#if defined(__linux__)
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN | EPOLLONESHOT;
    event.data.u32 = number;
    return epoll_ctl(watch, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event);
#else
    struct kevent change;
    (void)is_new;
    EV_SET(&change, descriptor, EVFILT_READ, EV_ADD | EV_ONESHOT, 0, 0, (void *)(uintptr_t)number);
    return kevent(watch, &change, 1, NULL, 0, NULL);
#endif
}

// Tells which descriptors are ready. Waits at most so many milliseconds until one is. Returns how many of `most`
// entries are filled; -1 with errno set.
static inline int conflux_watch_ready(int watch, conflux_ready *ready, int most, int milliseconds) {
#if defined(__linux__)
    struct epoll_event events[64];
    int count = epoll_wait(watch, events, most < 64 ? most : 64, milliseconds);
    for (int index = 0; index < count; index += 1) {
        uint32_t bits = events[index].events;
        ready[index].number = events[index].data.u32;
        ready[index].is_readable = (bits & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0;
        ready[index].is_writable = (bits & EPOLLOUT) != 0;
    }
#else
    struct kevent events[64];
    struct timespec longest = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    int count = kevent(watch, NULL, 0, events, most < 64 ? most : 64, &longest);
    for (int index = 0; index < count; index += 1) {
        ready[index].number = (uint32_t)(uintptr_t)events[index].udata;
        ready[index].is_readable = events[index].filter == EVFILT_READ;
        ready[index].is_writable = events[index].filter == EVFILT_WRITE;
    }
#endif
    return count;
}

// Listens at a numeric host, or at all where it is NULL. The port that it has is written to `port`, and the
// host in numbers to `name`.
static inline int conflux_listen_tcp(
    const char *host, int is_six, uint16_t *port, int backlog, char *name, size_t name_size) {
    struct addrinfo hints;
    struct addrinfo *found = NULL;
    char service[8];
    memset(&hints, 0, sizeof hints);
    hints.ai_family = is_six ? AF_INET6 : AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
    snprintf(service, sizeof service, "%u", (unsigned)*port);
    if (getaddrinfo(host, service, &hints, &found) != 0 || !found) {
        errno = ENODEV;
        return -1;
    }
    int descriptor = socket(found->ai_family, SOCK_STREAM, 0);
    if (descriptor < 0) {
        freeaddrinfo(found);
        return -1;
    }
    conflux_set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    int is_open = conflux_set_flags(descriptor) == 0
        && bind(descriptor, found->ai_addr, found->ai_addrlen) == 0
        && listen(descriptor, backlog) == 0
        && getsockname(descriptor, (struct sockaddr *)&address, &length) == 0;
    freeaddrinfo(found);
    if (!is_open) return conflux_close_failed(descriptor);
    if (getnameinfo(
            (struct sockaddr *)&address, length, name, (socklen_t)name_size, service, sizeof service,
            NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        errno = EADDRNOTAVAIL;
        return conflux_close_failed(descriptor);
    }
    unsigned number = 0;
    sscanf(service, "%u", &number);
    *port = (uint16_t)number;
    return descriptor;
}

// Which file is at a path; zeros for none, or one that is no socket.
typedef struct {
    uint64_t device;
    uint64_t number;
} conflux_identity;

static inline conflux_identity conflux_identify(const char *path) {
    struct stat file;
    conflux_identity identity = {0, 0};
    if (lstat(path, &file) == 0 && S_ISSOCK(file.st_mode)) {
        identity.device = (uint64_t)file.st_dev;
        identity.number = (uint64_t)file.st_ino;
    }
    return identity;
}

// Removes a local socket, unless another one has its path by now.
static inline void conflux_unlink_local(const char *path, conflux_identity identity) {
    conflux_identity present = conflux_identify(path);
    if (present.device == identity.device && present.number == identity.number) unlink(path);
}

// Checks that nothing is in the way of a socket at a path: nothing at all, or one that nobody listens at. Otherwise
// returns -1 with errno set.
static inline int conflux_check_place(const struct sockaddr_un *address) {
    struct stat file;
    if (lstat(address->sun_path, &file) != 0) return errno == ENOENT ? 0 : -1;
    if (!S_ISSOCK(file.st_mode)) {
        errno = EADDRINUSE;
        return -1;
    }
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    if (descriptor < 0) return -1;
    int is_dead = conflux_set_flags(descriptor) == 0
        && connect(descriptor, (const struct sockaddr *)address, sizeof *address) != 0
        && errno == ECONNREFUSED;
    close(descriptor);
    if (is_dead) return 0;
    errno = EADDRINUSE;
    return -1;
}

// Listens at a path. What is left there of a socket that nobody listens at is removed; anything else is in use.
static inline int conflux_listen_local(const char *path, int backlog) {
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    if (conflux_check_place(&address) != 0) return -1;
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    if (descriptor < 0) return -1;
    unlink(path);
    if (conflux_set_flags(descriptor) != 0
        || bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0
        || listen(descriptor, backlog) != 0) {
        return conflux_close_failed(descriptor);
    }
    return descriptor;
}

// Sets what every connection has. Returns -1 with errno set where it can't be kept.
static inline int conflux_keep(int descriptor, conflux_keeping keeping) {
#if !defined(__linux__)
    // Without the option a write to a connection that was reset would end the process. It can't be set where it
    // was reset already.
    if (conflux_set_option(descriptor, SOL_SOCKET, SO_NOSIGPIPE, 1) != 0) return -1;
#endif
    // Of a Unix socket these mean nothing.
    conflux_set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
    if (keeping.idle > 0) {
        conflux_set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
#if defined(__linux__)
        conflux_set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, keeping.idle);
#else
        conflux_set_option(descriptor, IPPROTO_TCP, TCP_KEEPALIVE, keeping.idle);
#endif
        conflux_set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, keeping.interval);
        conflux_set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 3);
    }
#if defined(__linux__)
    conflux_set_option(
        descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, keeping.unacknowledged_milliseconds);
#endif
    return 0;
}

// Where a connection comes from: the address for IPv4, the network of 64 bits for IPv6, and zeros for a local socket.
typedef struct {
    uint64_t family;
    uint64_t network;
} conflux_origin;

static inline conflux_origin conflux_origin_of(const struct sockaddr_storage *address) {
    conflux_origin origin = {0, 0};
    if (address->ss_family == AF_INET) {
        origin.family = AF_INET;
        memcpy(&origin.network, &((const struct sockaddr_in *)address)->sin_addr, 4);
    } else if (address->ss_family == AF_INET6) {
        const struct in6_addr *place = &((const struct sockaddr_in6 *)address)->sin6_addr;
        int is_four = IN6_IS_ADDR_V4MAPPED(place);
        origin.family = is_four ? AF_INET : AF_INET6;
        memcpy(&origin.network, (const char *)place + (is_four ? 12 : 0), is_four ? 4 : 8);
    }
    return origin;
}

// Takes the next connection. It does not have yet what `conflux_keep` sets.
static inline int conflux_accept(int listener, conflux_origin *origin) {
    struct sockaddr_storage address;
    socklen_t length;
    int descriptor;
    do {
        memset(&address, 0, sizeof address);
        length = sizeof address;
#if defined(__linux__)
        descriptor = accept4(listener, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
#else
        descriptor = accept(listener, (struct sockaddr *)&address, &length);
#endif
    } while (descriptor < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (descriptor < 0) return -1;
#if !defined(__linux__)
    if (conflux_set_flags(descriptor) != 0
        || conflux_set_option(descriptor, SOL_SOCKET, SO_NOSIGPIPE, 1) != 0) {
        return conflux_close_failed(descriptor);
    }
#endif
    *origin = conflux_origin_of(&address);
    return descriptor;
}

// An address that a connection goes to.
typedef struct {
    struct sockaddr_storage place;
    socklen_t length;
} conflux_address;

// Looks up the addresses of a host, those of IPv4 first: servers mostly listen at them alone. It may block for as
// long as the system takes, but not where the host is to be in numbers. Returns how many there are, at most
// `most`; where there are none, 0 and in `failure` the number for it of `gai_strerror`.
static inline int conflux_resolve(
    const char *host, uint16_t port, int is_numeric, conflux_address *addresses, int most, int *failure) {
    struct addrinfo hints;
    struct addrinfo *found = NULL;
    char service[8];
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | (is_numeric ? AI_NUMERICHOST : 0);
    snprintf(service, sizeof service, "%u", (unsigned)port);
    *failure = getaddrinfo(host, service, &hints, &found);
    if (*failure != 0) return 0;
    int count = 0;
    int families[2] = {AF_INET, AF_INET6};
    for (int index = 0; index < 2; index += 1) {
        for (struct addrinfo *next = found; next && count < most; next = next->ai_next) {
            if (next->ai_family != families[index]) continue;
            if (next->ai_addrlen > sizeof addresses[count].place) continue;
            memcpy(&addresses[count].place, next->ai_addr, next->ai_addrlen);
            addresses[count++].length = next->ai_addrlen;
        }
    }
    freeaddrinfo(found);
    if (count == 0) *failure = EAI_NONAME;
    return count;
}

// The address of a socket at a path. Returns -1 where the path is too long.
static inline int conflux_local_address(const char *path, conflux_address *address) {
    struct sockaddr_un place;
    memset(&place, 0, sizeof place);
    place.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof place.sun_path) return -1;
    strcpy(place.sun_path, path);
    memcpy(&address->place, &place, sizeof place);
    address->length = sizeof place;
    return 0;
}

// Begins to connect. It stands when the descriptor can be written to and `conflux_connect_failure` says 0.
static inline int conflux_connect(const conflux_address *address, conflux_keeping keeping) {
    int descriptor = socket(address->place.ss_family, SOCK_STREAM, 0);
    if (descriptor < 0) return -1;
    if (conflux_set_flags(descriptor) != 0 || conflux_keep(descriptor, keeping) != 0
        || (connect(descriptor, (const struct sockaddr *)&address->place, address->length) != 0
            && errno != EINPROGRESS && errno != EINTR)) {
        return conflux_close_failed(descriptor);
    }
    return descriptor;
}

// Why a connection did not come about, as an errno; 0 where it stands, EINPROGRESS while it is under way.
static inline int conflux_connect_failure(int descriptor) {
    struct pollfd item = {descriptor, POLLOUT, 0};
    if (poll(&item, 1, 0) <= 0) return EINPROGRESS;
    int number = 0;
    socklen_t size = sizeof number;
    if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &number, &size) != 0) return errno;
    if (number != 0) return number;
    // TCP connects a port with itself where nobody listens and the system has chosen the same one for this end.
    struct sockaddr_storage ends[2];
    socklen_t lengths[2] = {sizeof ends[0], sizeof ends[1]};
    memset(ends, 0, sizeof ends);
    if (getpeername(descriptor, (struct sockaddr *)&ends[1], &lengths[1]) != 0) return errno;
    if (getsockname(descriptor, (struct sockaddr *)&ends[0], &lengths[0]) == 0
        && ends[0].ss_family != AF_UNIX && lengths[0] == lengths[1]
        && memcmp(&ends[0], &ends[1], lengths[0]) == 0) {
        return ECONNREFUSED;
    }
    return 0;
}

// Reads what there is. Returns how many bytes; 0 at the end; -1 with errno set.
static inline ssize_t conflux_receive(int descriptor, void *bytes, size_t count) {
    ssize_t taken;
    do {
        taken = recv(descriptor, bytes, count, 0);
    } while (taken < 0 && errno == EINTR);
    return taken;
}

// Writes what there is room for, of two pieces one behind the other. Returns how many bytes; -1 with errno set.
static inline ssize_t conflux_send(
    int descriptor, const void *head, size_t head_count, const void *tail, size_t tail_count) {
    struct iovec pieces[2] = {{(void *)head, head_count}, {(void *)tail, tail_count}};
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = pieces;
    message.msg_iovlen = tail_count > 0 ? 2 : 1;
    ssize_t sent;
    do {
#if defined(__linux__)
        sent = sendmsg(descriptor, &message, MSG_NOSIGNAL);
#else
        sent = sendmsg(descriptor, &message, 0);
#endif
    } while (sent < 0 && errno == EINTR);
    return sent;
}

// Waits until a descriptor can be written to, at most so many milliseconds. Returns whether it can.
static inline int conflux_await_writable(int descriptor, int milliseconds) {
    struct pollfd item = {descriptor, POLLOUT, 0};
    return poll(&item, 1, milliseconds) > 0;
}

// Ends a connection. Where something is unread the system would throw away what it has not sent, so that is
// thrown away before, up to a bound.
static inline void conflux_end(int descriptor, void *bytes, size_t count, size_t most) {
    size_t thrown = 0;
    ssize_t taken = 0;
    shutdown(descriptor, SHUT_WR);
    while (thrown < most && (taken = conflux_receive(descriptor, bytes, count)) > 0) thrown += (size_t)taken;
    close(descriptor);
}
