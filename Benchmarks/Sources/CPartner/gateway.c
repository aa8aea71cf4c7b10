#define _GNU_SOURCE
#include "gateway.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

static uint64_t now_nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

// A socket that loses nothing: the queues must not limit what is measured.
static void *open_socket(void *context, int type, const char *address) {
    void *socket = zmq_socket(context, type);
    int none = 0;
    if (!socket) return NULL;
    zmq_setsockopt(socket, ZMQ_SNDHWM, &none, sizeof none);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &none, sizeof none);
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
    if (address && zmq_connect(socket, address) != 0) {
        zmq_close(socket);
        return NULL;
    }
    return socket;
}

int gateway_publisher_open(gateway_publisher *publisher) {
    size_t size = sizeof publisher->address;
    publisher->context = zmq_ctx_new();
    publisher->socket = open_socket(publisher->context, ZMQ_XPUB, NULL);
    if (!publisher->socket || zmq_bind(publisher->socket, "tcp://127.0.0.1:*") != 0 ||
        zmq_getsockopt(publisher->socket, ZMQ_LAST_ENDPOINT, publisher->address, &size) != 0)
        return zmq_errno();
    return 0;
}

int gateway_publisher_await(gateway_publisher *publisher) {
    char bytes[64];
    return zmq_recv(publisher->socket, bytes, sizeof bytes, 0) < 0 ? zmq_errno() : 0;
}

int gateway_publisher_send(gateway_publisher *publisher, const char *topic, uint64_t count) {
    char head[230], body[48];
    memset(head, 'h', sizeof head);
    memset(body, 'b', sizeof body);
    for (uint64_t index = 0; index < count; index++)
        if (zmq_send(publisher->socket, topic, strlen(topic) + 1, ZMQ_SNDMORE) < 0 ||
            zmq_send(publisher->socket, head, sizeof head, ZMQ_SNDMORE) < 0 ||
            zmq_send(publisher->socket, body, sizeof body, 0) < 0)
            return zmq_errno();
    return 0;
}

int gateway_follow(
    const char *address, const char *topic, int is_gateway, uint64_t count,
    void (*subscribed)(void), uint64_t *first, uint64_t *last, uint64_t *messages
) {
    void *context = zmq_ctx_new();
    void *socket = open_socket(context, ZMQ_SUB, address);
    int failure = 0;
    char bytes[4096];
    if (!socket || zmq_setsockopt(socket, ZMQ_SUBSCRIBE, topic, strlen(topic) + 1) != 0)
        failure = zmq_errno();
    *messages = 0;
    for (uint64_t got = 0; !failure && got < count;) {
        uint64_t actions = 1;
        if (zmq_recv(socket, bytes, sizeof bytes, 0) < 0) failure = zmq_errno();
        int size = zmq_recv(socket, bytes, sizeof bytes - 1, 0);
        if (size < 0) failure = zmq_errno();
        if (!failure && is_gateway) {
            // {"actions":N,…
            bytes[size < (int)sizeof bytes - 1 ? size : (int)sizeof bytes - 1] = 0;
            actions = strtoull(bytes + 11, NULL, 10);
        }
        if (zmq_recv(socket, bytes, sizeof bytes, 0) < 0) failure = zmq_errno();
        if (actions == 0) {
            subscribed();
            continue;
        }
        if (got == 0) *first = now_nanoseconds();
        got += actions;
        *messages += 1;
    }
    *last = now_nanoseconds();
    if (socket) zmq_close(socket);
    zmq_ctx_term(context);
    return failure;
}

// Receives an answer, which must have a receipt.
static int take_receipt(void *socket, int has_delimiter, int flags) {
    char bytes[1024];
    if (has_delimiter && zmq_recv(socket, bytes, sizeof bytes, flags) < 0) return zmq_errno();
    int size = zmq_recv(socket, bytes, sizeof bytes - 1, has_delimiter ? 0 : flags);
    if (size < 0) return zmq_errno();
    bytes[size < (int)sizeof bytes - 1 ? size : (int)sizeof bytes - 1] = 0;
    return strncmp(bytes, "{\"receipt\"", 10) == 0 ? 0 : EBADMSG;
}

int gateway_dispatch(const char *address, const char *request, uint64_t count, uint64_t window) {
    void *context = zmq_ctx_new();
    void *socket = open_socket(context, ZMQ_DEALER, address);
    int failure = socket ? 0 : zmq_errno();
    uint64_t sent = 0, answered = 0;
    while (!failure && answered < count) {
        for (; !failure && sent < count && sent - answered < window; sent++)
            if (zmq_send(socket, "", 0, ZMQ_SNDMORE) < 0 ||
                zmq_send(socket, request, strlen(request), 0) < 0)
                failure = zmq_errno();
        int found = failure ? failure : take_receipt(socket, 1, 0);
        while (found == 0) {
            answered += 1;
            found = take_receipt(socket, 1, ZMQ_DONTWAIT);
        }
        if (found != EAGAIN) failure = found;
    }
    if (socket) zmq_close(socket);
    zmq_ctx_term(context);
    return failure;
}

int gateway_ask(const char *address, const char *request, uint64_t count, uint64_t *nanoseconds) {
    void *context = zmq_ctx_new();
    void *socket = open_socket(context, ZMQ_REQ, address);
    int failure = socket ? 0 : zmq_errno();
    for (uint64_t index = 0; !failure && index < count; index++) {
        uint64_t start = now_nanoseconds();
        if (zmq_send(socket, request, strlen(request), 0) < 0) failure = zmq_errno();
        if (!failure) failure = take_receipt(socket, 0, 0);
        nanoseconds[index] = now_nanoseconds() - start;
    }
    if (socket) zmq_close(socket);
    zmq_ctx_term(context);
    return failure;
}
