#pragma once
#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

// What Swift cannot call itself: variadic functions. Each returns what libcurl does.

typedef size_t (*conflux_curl_data)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode conflux_curl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

// The string is copied.
static inline CURLcode conflux_curl_set_text(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode conflux_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode conflux_curl_set_function(
    CURL *handle, CURLoption option, conflux_curl_data function) {
    return curl_easy_setopt(handle, option, function);
}

// The bytes are not copied.
static inline CURLcode conflux_curl_set_body(CURL *handle, const void *bytes, size_t count) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count);
    return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_POSTFIELDS, (const char *)bytes) : code;
}

// A transfer that ends does not wait for the thread that resolves a name, from libcurl 7.87 on.
static inline void conflux_curl_set_quick_exit(CURL *handle) {
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);
#else
    (void)handle;
#endif
}

static inline long conflux_curl_long(CURL *handle, CURLINFO info) {
    long value = 0;
    curl_easy_getinfo(handle, info, &value);
    return value;
}

static inline double conflux_curl_double(CURL *handle, CURLINFO info) {
    double value = 0;
    curl_easy_getinfo(handle, info, &value);
    return value;
}

static inline unsigned conflux_curl_version(void) {
    return curl_version_info(CURLVERSION_NOW)->version_num;
}

// A TLS library may write to a connection that the other side has closed. The thread must not be ended for
// that, and the process's way with the signal is not ours to change.
typedef struct {
    sigset_t former;
    int was_pending;
} conflux_pipe_guard;

static inline conflux_pipe_guard conflux_pipe_block(void) {
    conflux_pipe_guard guard;
    sigset_t pipe, pending;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    guard.was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe, &guard.former);
    return guard;
}

static inline void conflux_pipe_restore(conflux_pipe_guard guard) {
    sigset_t pipe, pending;
    int number;
    sigpending(&pending);
    if (!guard.was_pending && sigismember(&pending, SIGPIPE) == 1) {
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        sigwait(&pipe, &number);
    }
    pthread_sigmask(SIG_SETMASK, &guard.former, NULL);
}

static inline int conflux_curl_is_over(const int *is_over) { return __atomic_load_n(is_over, __ATOMIC_RELAXED); }
static inline void conflux_curl_set_over(int *is_over) { __atomic_store_n(is_over, 1, __ATOMIC_RELAXED); }

// Makes the one transfer of a multi handle, which keeps the connections.
//
// libcurl 7.88 (Debian 12) may hold a part of an answer over HTTP/2 that it has read, and then wait for more to come:
// curl_easy_perform goes on after a second. So it is asked to go on sooner, and less and less often while nothing comes.
//
// Another thread ends the transfer by setting what `is_over` points to; NULL if nobody does.
static inline CURLcode conflux_curl_perform(CURL *handle, CURLM *multi, const int *is_over) {
    conflux_pipe_guard guard = conflux_pipe_block();
    CURLcode code = CURLE_FAILED_INIT;
    int running = 1;
    int pause = 1;
    if (curl_multi_add_handle(multi, handle) == CURLM_OK) {
        while (running && curl_multi_perform(multi, &running) == CURLM_OK) {
            int ready = 0;
            if (!running || curl_multi_poll(multi, NULL, 0, pause, &ready) != CURLM_OK) break;
            if (is_over && conflux_curl_is_over(is_over)) {
                code = CURLE_ABORTED_BY_CALLBACK;
                break;
            }
            pause = ready ? 1 : pause < 512 ? 2 * pause : pause;
        }
        int left = 0;
        CURLMsg *message = curl_multi_info_read(multi, &left);
        if (message && message->msg == CURLMSG_DONE) code = message->data.result;
        curl_multi_remove_handle(multi, handle);
    }
    conflux_pipe_restore(guard);
    return code;
}

// Waits until the one transfer of a multi handle can go on, for at most so many milliseconds or until it is woken,
// and goes on with it. Returns 1 while there is more to come; else 0, with its result in `code`.
static inline int conflux_curl_go_on(CURLM *multi, int milliseconds, CURLcode *code) {
    conflux_pipe_guard guard = conflux_pipe_block();
    int running = 0;
    int left = 0;
    int goes_on = 1;
    curl_multi_poll(multi, NULL, 0, milliseconds, NULL);
    CURLMcode failure = curl_multi_perform(multi, &running);
    CURLMsg *message = curl_multi_info_read(multi, &left);
    if (message && message->msg == CURLMSG_DONE) {
        *code = message->data.result;
        goes_on = 0;
    } else if (failure != CURLM_OK) {
        *code = CURLE_FAILED_INIT;
        goes_on = 0;
    }
    conflux_pipe_restore(guard);
    return goes_on;
}

// The end of a connection is a message of TLS.
static inline void conflux_curl_end(CURL *handle, CURLM *multi) {
    conflux_pipe_guard guard = conflux_pipe_block();
    if (multi) curl_multi_remove_handle(multi, handle);
    curl_easy_cleanup(handle);
    if (multi) curl_multi_cleanup(multi);
    conflux_pipe_restore(guard);
}
