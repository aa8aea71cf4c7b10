#pragma once
#include <partner.h>

// The workload of `stream` and `latency` with third-party servers, by their own client
// libraries: Redis Streams by hiredis, NATS JetStream by libnats. An action is like the partner's
// (PARTNER_ACTION_BYTES, with the producer and the index first). An entry has one action or several.
//
// Every function returns a null pointer, or a text that says what failed. The text is valid until the same thread
// calls the next function.

typedef enum { peer_redis, peer_nats } peer_kind;

// Waits up to ten seconds until the server answers, and makes the stream.
const char *peer_prepare(peer_kind kind, int port);

// A client of a server. A replica's client sees all actions from the first one.
typedef struct peer_client peer_client;

const char *peer_open(peer_kind kind, int port, peer_client **client);
void peer_close(peer_client *client);

// Appends `count` actions, several in an entry, and waits until the server has all of them.
const char *peer_produce(
    peer_client *client, uint64_t producer, uint64_t count, uint64_t entry_actions);

// Receives until `count` actions have arrived.
const char *peer_receive(peer_client *client, uint64_t count, partner_order *order);

// One action in flight: appends it and waits until it is delivered, `count` times. Notes the nanoseconds of each.
const char *peer_round_trips(peer_client *client, uint64_t count, uint64_t *nanoseconds);
