#pragma once
#include <stddef.h>
#include <stdint.h>

// Clients of a gateway, over plain libzmq, and a plain publisher with which it is compared. Every function returns 0, or
// the errno of the failure. Times are nanoseconds of the monotonic clock.

typedef struct {
    void *context;
    void *socket;
    char address[128];
} gateway_publisher;

// Binds an XPUB socket to a free port of the loopback interface.
int gateway_publisher_open(gateway_publisher *publisher);

// Waits for a subscription.
int gateway_publisher_await(gateway_publisher *publisher);

// Sends `count` messages of three parts, as large as those of a gateway.
int gateway_publisher_send(gateway_publisher *publisher, const char *topic, uint64_t count);

// Subscribes to a topic, which ends with a zero byte, and receives messages. `subscribed` is called once the first one has
// come, if it is a gateway's: that is the state. `count` is how many actions are awaited: a gateway's messages say how many
// they have.
int gateway_follow(
    const char *address, const char *topic, int is_gateway, uint64_t count,
    void (*subscribed)(void), uint64_t *first, uint64_t *last, uint64_t *messages);

// Sends a request `count` times by DEALER, with at most `window` without an answer. Each answer must have a receipt.
int gateway_dispatch(const char *address, const char *request, uint64_t count, uint64_t window);

// Sends a request `count` times by REQ. Notes the time of each.
int gateway_ask(const char *address, const char *request, uint64_t count, uint64_t *nanoseconds);
