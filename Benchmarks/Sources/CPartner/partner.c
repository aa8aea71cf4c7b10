#define _GNU_SOURCE
#include "partner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum {
    header_bytes = 12,
    // The most bytes of one commit.
    commit_bytes_max = 1 << 20,
    commit_frames_max = 1 << 14,
};

static int sync_data(int descriptor) {
#if defined(__APPLE__)
    return fcntl(descriptor, F_FULLFSYNC);
#else
    return fdatasync(descriptor);
#endif
}

static uint64_t now_nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static int write_all(int descriptor, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = write(descriptor, bytes, count);
        if (written < 0) {
            if (errno == EINTR) continue;
            return errno;
        }
        bytes += written;
        count -= (size_t)written;
    }
    return 0;
}

// Opens a socket without a limit of messages: the limit must not be limited by its own queues.
static void *open_socket(void *context, int type) {
    void *socket = zmq_socket(context, type);
    int none = 0;
    if (socket) {
        zmq_setsockopt(socket, ZMQ_SNDHWM, &none, sizeof none);
        zmq_setsockopt(socket, ZMQ_RCVHWM, &none, sizeof none);
    }
    return socket;
}

static int bind_free(void *socket, char *address, size_t size) {
    if (zmq_bind(socket, "tcp://127.0.0.1:*") != 0) return zmq_errno();
    return zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, address, &size) == 0 ? 0 : zmq_errno();
}

static int receive(zmq_msg_t *message, void *socket, int flags) {
    while (zmq_msg_recv(message, socket, flags) < 0) {
        int failure = zmq_errno();
        if (failure != EINTR) return failure;
    }
    return 0;
}

static int send_message(zmq_msg_t *message, void *socket) {
    while (zmq_msg_send(message, socket, 0) < 0) {
        int failure = zmq_errno();
        if (failure != EINTR) return failure;
    }
    return 0;
}

static int zero_file(int descriptor, size_t count) {
    // As Conflux writes them. With pieces of 1 MiB, Linux keeps the file in larger parts, and a sync takes longer.
    const size_t piece = 1 << 16;
    char *zeros = calloc(1, piece);
    if (!zeros) return ENOMEM;
    int failure = 0;
    for (size_t written = 0; written < count && !failure; written += piece) {
        failure = write_all(descriptor, zeros, piece);
    }
    free(zeros);
    if (!failure && sync_data(descriptor) != 0) failure = errno;
    if (!failure && lseek(descriptor, 0, SEEK_SET) < 0) failure = errno;
    return failure;
}

int partner_sequencer_open(
    partner_sequencer *sequencer, const char *log_path, size_t zeroed_bytes) {
    memset(sequencer, 0, sizeof *sequencer);
    sequencer->log = -1;
    if (log_path) {
        sequencer->log = open(log_path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
        if (sequencer->log < 0) return errno;
        int failure = zeroed_bytes ? zero_file(sequencer->log, zeroed_bytes) : 0;
        if (failure) return failure;
    }
    sequencer->context = zmq_ctx_new();
    if (!sequencer->context) return zmq_errno();
    sequencer->input = open_socket(sequencer->context, ZMQ_PULL);
    sequencer->output = open_socket(sequencer->context, ZMQ_XPUB);
    if (!sequencer->input || !sequencer->output) return zmq_errno();
    int verbose = 1;
    zmq_setsockopt(sequencer->output, ZMQ_XPUB_VERBOSE, &verbose, sizeof verbose);
    int failure = bind_free(
        sequencer->input, sequencer->input_address, sizeof sequencer->input_address);
    if (failure) return failure;
    return bind_free(
        sequencer->output, sequencer->output_address, sizeof sequencer->output_address);
}

int partner_sequencer_await(partner_sequencer *sequencer, int subscribers) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    int failure = 0;
    for (int count = 0; count < subscribers && !failure;) {
        failure = receive(&message, sequencer->output, 0);
        if (!failure && zmq_msg_size(&message) > 0 && *(char *)zmq_msg_data(&message) == 1) {
            count += 1;
        }
    }
    zmq_msg_close(&message);
    return failure;
}

// Assigns numbers to the actions of a frame.
static void number_frame(zmq_msg_t *message, uint64_t *next) {
    char *bytes = zmq_msg_data(message);
    uint32_t count;
    memcpy(&count, bytes + 8, sizeof count);
    memcpy(bytes, next, sizeof *next);
    *next += count;
}

static int run_in_memory(partner_sequencer *sequencer) {
    uint64_t next = 1;
    zmq_msg_t message;
    zmq_msg_init(&message);
    while (1) {
        int failure = receive(&message, sequencer->input, 0);
        if (failure) return failure;
        number_frame(&message, &next);
        failure = send_message(&message, sequencer->output);
        if (failure) return failure;
    }
}

// Group commit: the waiting frames are appended in one write, synced once, and then published.
static int run_with_log(partner_sequencer *sequencer, char *buffer, zmq_msg_t *messages) {
    uint64_t next = 1;
    while (1) {
        size_t used = 0;
        int count = 0;
        while (used < commit_bytes_max && count < commit_frames_max) {
            zmq_msg_t *message = &messages[count];
            zmq_msg_init(message);
            int failure = receive(message, sequencer->input, count ? ZMQ_DONTWAIT : 0);
            if (failure) {
                zmq_msg_close(message);
                if (failure == EAGAIN) break;
                return failure;
            }
            number_frame(message, &next);
            size_t size = zmq_msg_size(message);
            memcpy(buffer + used, zmq_msg_data(message), size);
            used += size;
            count += 1;
        }
        int failure = write_all(sequencer->log, buffer, used);
        if (!failure && sync_data(sequencer->log) != 0) failure = errno;
        for (int index = 0; index < count && !failure; index += 1) {
            failure = send_message(&messages[index], sequencer->output);
        }
        if (failure) return failure;
    }
}

int partner_sequencer_run(partner_sequencer *sequencer) {
    if (sequencer->log < 0) return run_in_memory(sequencer);
    size_t frame_bytes = header_bytes + PARTNER_FRAME_ACTIONS_MAX * PARTNER_ACTION_BYTES;
    char *buffer = malloc(commit_bytes_max + frame_bytes);
    zmq_msg_t *messages = malloc(sizeof(zmq_msg_t) * commit_frames_max);
    int failure = buffer && messages ? run_with_log(sequencer, buffer, messages) : ENOMEM;
    free(buffer);
    free(messages);
    return failure;
}

int partner_client_open(
    partner_client *client, const char *input_address, const char *output_address) {
    memset(client, 0, sizeof *client);
    client->context = zmq_ctx_new();
    if (!client->context) return zmq_errno();
    if (input_address) {
        client->push = open_socket(client->context, ZMQ_PUSH);
        if (!client->push || zmq_connect(client->push, input_address) != 0) return zmq_errno();
    }
    if (output_address) {
        client->subscriber = open_socket(client->context, ZMQ_SUB);
        if (!client->subscriber) return zmq_errno();
        zmq_setsockopt(client->subscriber, ZMQ_SUBSCRIBE, "", 0);
        if (zmq_connect(client->subscriber, output_address) != 0) return zmq_errno();
    }
    return 0;
}

void partner_client_close(partner_client *client) {
    if (client->push) zmq_close(client->push);
    if (client->subscriber) zmq_close(client->subscriber);
    if (client->context) zmq_ctx_term(client->context);
    memset(client, 0, sizeof *client);
}

// Queues one frame of actions.
static int send_frame(void *socket, uint64_t producer, uint64_t first, uint32_t count) {
    zmq_msg_t message;
    if (zmq_msg_init_size(&message, header_bytes + (size_t)count * PARTNER_ACTION_BYTES) != 0) {
        return zmq_errno();
    }
    char *bytes = zmq_msg_data(&message);
    memset(bytes, 0, 8);
    memcpy(bytes + 8, &count, sizeof count);
    char *action = bytes + header_bytes;
    for (uint32_t offset = 0; offset < count; offset += 1, action += PARTNER_ACTION_BYTES) {
        uint64_t index = first + offset;
        memset(action, 'x', PARTNER_ACTION_BYTES);
        memcpy(action, &producer, sizeof producer);
        memcpy(action + 8, &index, sizeof index);
    }
    int failure = send_message(&message, socket);
    if (failure) zmq_msg_close(&message);
    return failure;
}

int partner_client_produce(
    partner_client *client, uint64_t producer, uint64_t count, uint32_t frame_actions) {
    if (frame_actions == 0 || frame_actions > PARTNER_FRAME_ACTIONS_MAX) return EINVAL;
    for (uint64_t sent = 0; sent < count;) {
        uint64_t left = count - sent;
        uint32_t size = left < frame_actions ? (uint32_t)left : frame_actions;
        int failure = send_frame(client->push, producer, sent, size);
        if (failure) return failure;
        sent += size;
    }
    return 0;
}

static void read_frame(zmq_msg_t *message, partner_order *order) {
    const char *bytes = zmq_msg_data(message);
    uint32_t count;
    memcpy(&count, bytes + 8, sizeof count);
    const char *action = bytes + header_bytes;
    for (uint32_t offset = 0; offset < count; offset += 1, action += PARTNER_ACTION_BYTES) {
        uint64_t producer;
        uint64_t index;
        memcpy(&producer, action, sizeof producer);
        memcpy(&index, action + 8, sizeof index);
        partner_order_add(order, producer, index);
    }
}

int partner_client_receive(partner_client *client, uint64_t count, partner_order *order) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    int failure = 0;
    while (order->count < count && !failure) {
        failure = receive(&message, client->subscriber, 0);
        if (!failure) read_frame(&message, order);
    }
    zmq_msg_close(&message);
    return failure;
}

// The returned message must be exactly the sent one. Otherwise it was not a round trip that was timed.
static int check_echo(zmq_msg_t *message, uint64_t index) {
    if (zmq_msg_size(message) != header_bytes + PARTNER_ACTION_BYTES) return EPROTO;
    const char *bytes = zmq_msg_data(message);
    uint64_t number;
    uint64_t echoed;
    memcpy(&number, bytes, sizeof number);
    memcpy(&echoed, bytes + header_bytes + 8, sizeof echoed);
    return echoed == index && number > 0 ? 0 : EPROTO;
}

int partner_client_round_trips(partner_client *client, uint64_t count, uint64_t *nanoseconds) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    int failure = 0;
    for (uint64_t index = 0; index < count && !failure; index += 1) {
        uint64_t start = now_nanoseconds();
        failure = send_frame(client->push, 0, index, 1);
        if (!failure) failure = receive(&message, client->subscriber, 0);
        nanoseconds[index] = now_nanoseconds() - start;
        if (!failure) failure = check_echo(&message, index);
    }
    zmq_msg_close(&message);
    return failure;
}

int partner_client_skip(partner_client *client) {
    zmq_msg_t message;
    if (zmq_msg_init(&message) != 0) return zmq_errno();
    int failure;
    do {
        failure = zmq_msg_recv(&message, client->subscriber, 0) < 0 ? zmq_errno() : 0;
    } while (failure == EINTR || (failure == 0 && zmq_msg_more(&message)));
    zmq_msg_close(&message);
    return failure;
}
