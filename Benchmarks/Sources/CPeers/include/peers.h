#pragma once
#include <partner.h>

// The workload of `stream` and `latency` over servers that others wrote, by their own client
// libraries: Redis Streams by hiredis, NATS JetStream by libnats. An action is the partner's
// (PARTNER_ACTION_BYTES, producer and index first); an entry has one action or several.
//
// Every function returns a null pointer, or what failed, until the same thread calls the next one.

typedef enum { peer_redis, peer_nats } peer_kind;

// Waits up to ten seconds until the server answers, and makes the stream.
const char *peer_prepare(peer_kind kind, int port);

// A client of a server. A replica's sees all actions from the beginning.
typedef struct peer_client peer_client;

const char *peer_open(peer_kind kind, int port, peer_client **client);
void peer_close(peer_client *client);

// Appends `count` actions, so many in an entry, and waits until the server has all of them.
const char *peer_produce(
    peer_client *client, uint64_t producer, uint64_t count, uint64_t entry_actions);

// Receives until `count` actions have come.
const char *peer_receive(peer_client *client, uint64_t count, partner_order *order);

// One action in flight: appends it and waits until it is delivered, `count` times. Nanoseconds each.
const char *peer_round_trips(peer_client *client, uint64_t count, uint64_t *nanoseconds);
