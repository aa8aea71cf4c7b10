#include "internal.h"

#include <stdio.h>

struct peer_client {
    peer_kind kind;
    void *of_kind;
};

static _Thread_local char text[512];

const char *peer_failure(const char *attempt, const char *reason) {
    snprintf(text, sizeof text, "%s: %s", attempt, reason ? reason : "no reason is known");
    return text;
}

void peer_fill(char *entry, uint64_t producer, uint64_t first, uint64_t count) {
    memset(entry, 'x', count * PARTNER_ACTION_BYTES);
    for (uint64_t offset = 0; offset < count; offset += 1, entry += PARTNER_ACTION_BYTES) {
        uint64_t index = first + offset;
        memcpy(entry, &producer, sizeof producer);
        memcpy(entry + 8, &index, sizeof index);
    }
}

void peer_note(partner_order *order, const char *entry, size_t bytes) {
    for (size_t at = 0; at + PARTNER_ACTION_BYTES <= bytes; at += PARTNER_ACTION_BYTES) {
        uint64_t producer;
        uint64_t index;
        memcpy(&producer, entry + at, sizeof producer);
        memcpy(&index, entry + at + 8, sizeof index);
        partner_order_add(order, producer, index);
    }
}

const char *peer_prepare(peer_kind kind, int port) {
    uint64_t end = peer_now() + 10000000000ull;
    const char *failure;
    do {
        failure = kind == peer_redis ? redis_prepare(port) : nats_prepare(port);
        if (!failure) return NULL;
        struct timespec pause = {.tv_nsec = 50000000};
        nanosleep(&pause, NULL);
    } while (peer_now() < end);
    return failure;
}

const char *peer_open(peer_kind kind, int port, peer_client **client) {
    *client = calloc(1, sizeof **client);
    if (!*client) return peer_failure("connecting", "no memory");
    (*client)->kind = kind;
    const char *failure = kind == peer_redis ? redis_open(port, &(*client)->of_kind)
                                             : nats_open(port, &(*client)->of_kind);
    if (failure) {
        free(*client);
        *client = NULL;
    }
    return failure;
}

void peer_close(peer_client *client) {
    client->kind == peer_redis ? redis_close(client->of_kind) : nats_close(client->of_kind);
    free(client);
}

const char *peer_produce(
    peer_client *client, uint64_t producer, uint64_t count, uint64_t entry_actions) {
    return client->kind == peer_redis
               ? redis_produce(client->of_kind, producer, count, entry_actions)
               : nats_produce(client->of_kind, producer, count, entry_actions);
}

const char *peer_receive(peer_client *client, uint64_t count, partner_order *order) {
    return client->kind == peer_redis ? redis_receive(client->of_kind, count, order)
                                      : nats_receive(client->of_kind, count, order);
}

const char *peer_round_trips(peer_client *client, uint64_t count, uint64_t *nanoseconds) {
    return client->kind == peer_redis ? redis_round_trips(client->of_kind, count, nanoseconds)
                                      : nats_round_trips(client->of_kind, count, nanoseconds);
}
