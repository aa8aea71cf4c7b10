#pragma once
#include <stddef.h>
#include <stdint.h>

#include "gateway.h"

// Total-order broadcast over plain libzmq, with which Conflux is compared.
//
//     producer PUSH ──▶ PULL sequencer ──▶ [log, fdatasync] ──▶ XPUB ──▶ SUB replica
//
// A frame has the number of its first action (8 bytes, set by the sequencer), the count (4), and then
// the actions, of PARTNER_ACTION_BYTES each. An action begins with its producer (8) and its index (8).
// Nothing is checked or deduplicated, and nobody gets a receipt: it is a limit, not a rival.
//
// Every function returns 0, or the errno of the failure.

#define PARTNER_ACTION_BYTES 64
#define PARTNER_FRAME_ACTIONS_MAX 1024
#define PARTNER_PRODUCERS_MAX 64

// What a replica saw: the count, a hash over the order, and how often a producer's order was broken.
typedef struct {
    uint64_t count;
    uint64_t hash;
    uint64_t disorders;
    uint64_t next[PARTNER_PRODUCERS_MAX];
} partner_order;

static inline void partner_order_add(partner_order *order, uint64_t producer, uint64_t index) {
    order->hash = (order->hash ^ ((producer << 48) | index)) * 1099511628211ull;
    if (producer < PARTNER_PRODUCERS_MAX) {
        if (order->next[producer] != index) order->disorders += 1;
        order->next[producer] = index + 1;
    }
    order->count += 1;
}

typedef struct {
    void *context;
    void *input;
    void *output;
    int log;
    char input_address[128];
    char output_address[128];
} partner_sequencer;

// Binds both sockets to free ports of the loopback interface. With a path, frames that arrive together are
// appended there and synced before they are published. zeroed_bytes of the file are written beforehand.
int partner_sequencer_open(partner_sequencer *sequencer, const char *log_path, size_t zeroed_bytes);

// Waits for this many subscriptions.
int partner_sequencer_await(partner_sequencer *sequencer, int subscribers);

// Serves until the process ends.
int partner_sequencer_run(partner_sequencer *sequencer);

typedef struct {
    void *context;
    void *push;
    void *subscriber;
} partner_client;

// Connects to those addresses that are not null.
int partner_client_open(
    partner_client *client, const char *input_address, const char *output_address);

void partner_client_close(partner_client *client);

// Sends `count` actions, with a limited number in a frame: at most PARTNER_FRAME_ACTIONS_MAX.
int partner_client_produce(
    partner_client *client, uint64_t producer, uint64_t count, uint32_t frame_actions);

// Receives until `count` actions have arrived.
int partner_client_receive(partner_client *client, uint64_t count, partner_order *order);

// One action in flight: sends it and waits until it returns, `count` times. Notes the nanoseconds of each.
int partner_client_round_trips(partner_client *client, uint64_t count, uint64_t *nanoseconds);

// Waits for the next message of any kind, and discards it.
int partner_client_skip(partner_client *client);
