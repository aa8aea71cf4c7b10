#pragma once
#include <peers.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The most entries that a producer has in flight.
enum { peer_window = 4096, peer_patience_seconds = 120 };

// Keeps a text for the caller, and returns it.
const char *peer_failure(const char *attempt, const char *reason);

static inline uint64_t peer_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

// Writes actions, starting at an index.
void peer_fill(char *entry, uint64_t producer, uint64_t first, uint64_t count);

// Notes the actions of an entry.
void peer_note(partner_order *order, const char *entry, size_t bytes);

// What each kind of server does for the functions of peers.h.
const char *redis_prepare(int port);
const char *redis_open(int port, void **client);
void redis_close(void *client);
const char *redis_produce(void *client, uint64_t producer, uint64_t count, uint64_t entry_actions);
const char *redis_receive(void *client, uint64_t count, partner_order *order);
const char *redis_round_trips(void *client, uint64_t count, uint64_t *nanoseconds);

const char *nats_prepare(int port);
const char *nats_open(int port, void **client);
void nats_close(void *client);
const char *nats_produce(void *client, uint64_t producer, uint64_t count, uint64_t entry_actions);
const char *nats_receive(void *client, uint64_t count, partner_order *order);
const char *nats_round_trips(void *client, uint64_t count, uint64_t *nanoseconds);
