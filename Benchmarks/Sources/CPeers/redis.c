#include "internal.h"

#include <hiredis/hiredis.h>
#include <stdio.h>

// One connection appends, and the other one reads.
typedef struct {
    redisContext *writer;
    redisContext *reader;
    char last[64];
} redis_client;

static const char *stream = "actions";

static const char *failed(const char *attempt, redisContext *context, redisReply *reply) {
    const char *reason = context && context->err ? context->errstr
                         : reply && reply->type == REDIS_REPLY_ERROR ? reply->str
                                                                     : "an unexpected answer";
    const char *failure = peer_failure(attempt, reason);
    if (reply) freeReplyObject(reply);
    return failure;
}

const char *redis_prepare(int port) {
    redisContext *context = redisConnect("127.0.0.1", port);
    if (!context) return peer_failure("connecting to Redis", "no memory");
    redisReply *reply = context->err ? NULL : redisCommand(context, "DEL %s", stream);
    const char *failure = NULL;
    if (!reply || reply->type != REDIS_REPLY_INTEGER) {
        failure = failed("emptying Redis's stream", context, reply);
    } else {
        freeReplyObject(reply);
    }
    redisFree(context);
    return failure;
}

const char *redis_open(int port, void **client) {
    redis_client *made = calloc(1, sizeof *made);
    if (!made) return peer_failure("connecting to Redis", "no memory");
    made->writer = redisConnect("127.0.0.1", port);
    made->reader = redisConnect("127.0.0.1", port);
    strcpy(made->last, "0-0");
    if (!made->writer || made->writer->err || !made->reader || made->reader->err) {
        const char *failure = failed(
            "connecting to Redis",
            made->writer && made->writer->err ? made->writer : made->reader, NULL);
        redis_close(made);
        return failure;
    }
    *client = made;
    return NULL;
}

void redis_close(void *client) {
    redis_client *closed = client;
    if (closed->writer) redisFree(closed->writer);
    if (closed->reader) redisFree(closed->reader);
    free(closed);
}

static int append(redisContext *context, const char *entry, size_t bytes) {
    const char *words[] = {"XADD", stream, "*", "a", entry};
    size_t sizes[] = {4, strlen(stream), 1, 1, bytes};
    return redisAppendCommandArgv(context, 5, words, sizes);
}

static int flush(redisContext *context) {
    int is_done = 0;
    while (!is_done) {
        if (redisBufferWrite(context, &is_done) != REDIS_OK) return REDIS_ERR;
    }
    return REDIS_OK;
}

static const char *take_answer(redisContext *context) {
    redisReply *reply = NULL;
    if (redisGetReply(context, (void **)&reply) != REDIS_OK || !reply ||
        reply->type == REDIS_REPLY_ERROR) {
        return failed("appending to Redis", context, reply);
    }
    freeReplyObject(reply);
    return NULL;
}

const char *redis_produce(void *client, uint64_t producer, uint64_t count, uint64_t entry_actions) {
    redisContext *context = ((redis_client *)client)->writer;
    // This many entries are written at a time.
    const uint64_t chunk = 128;
    char *entry = malloc(entry_actions * PARTNER_ACTION_BYTES);
    if (!entry) return peer_failure("appending to Redis", "no memory");
    const char *failure = NULL;
    uint64_t in_flight = 0;
    for (uint64_t sent = 0; sent < count && !failure;) {
        for (uint64_t entries = 0; entries < chunk && sent < count && !failure; entries += 1) {
            uint64_t actions = count - sent < entry_actions ? count - sent : entry_actions;
            peer_fill(entry, producer, sent, actions);
            if (append(context, entry, actions * PARTNER_ACTION_BYTES) != REDIS_OK) {
                failure = failed("appending to Redis", context, NULL);
            }
            sent += actions;
            in_flight += 1;
        }
        if (!failure && flush(context) != REDIS_OK) {
            failure = failed("writing to Redis", context, NULL);
        }
        while (!failure && in_flight > peer_window - chunk) {
            failure = take_answer(context);
            in_flight -= 1;
        }
    }
    while (!failure && in_flight > 0) {
        failure = take_answer(context);
        in_flight -= 1;
    }
    free(entry);
    return failure;
}

// Notes the entries of a read, and where the next read begins.
static const char *note(redis_client *client, redisReply *reply, partner_order *order) {
    if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 1) {
        return failed("reading from Redis", client->reader, reply);
    }
    redisReply *entries = reply->element[0]->element[1];
    for (size_t index = 0; index < entries->elements; index += 1) {
        redisReply *entry = entries->element[index];
        redisReply *value = entry->element[1]->element[1];
        peer_note(order, value->str, value->len);
        snprintf(client->last, sizeof client->last, "%s", entry->element[0]->str);
    }
    freeReplyObject(reply);
    return NULL;
}

const char *redis_receive(void *client, uint64_t count, partner_order *order) {
    redis_client *reading = client;
    const char *failure = NULL;
    while (order->count < count && !failure) {
        redisReply *reply = redisCommand(
            reading->reader, "XREAD COUNT 1000 BLOCK 0 STREAMS %s %s", stream, reading->last);
        failure = note(reading, reply, order);
    }
    return failure;
}

const char *redis_round_trips(void *client, uint64_t count, uint64_t *nanoseconds) {
    redis_client *both = client;
    partner_order order = {0};
    const char *failure = NULL;
    for (uint64_t index = 0; index < count && !failure; index += 1) {
        char action[PARTNER_ACTION_BYTES];
        peer_fill(action, 0, index, 1);
        // The read already waits at the server when the action is appended, as a replica's does.
        redisAppendCommand(
            both->reader, "XREAD COUNT 1000 BLOCK 0 STREAMS %s %s", stream, both->last);
        if (flush(both->reader) != REDIS_OK) return failed("reading from Redis", both->reader, NULL);
        uint64_t start = peer_now();
        append(both->writer, action, sizeof action);
        if (flush(both->writer) != REDIS_OK) return failed("writing to Redis", both->writer, NULL);
        redisReply *reply = NULL;
        redisGetReply(both->reader, (void **)&reply);
        nanoseconds[index] = peer_now() - start;
        failure = note(both, reply, &order);
        if (!failure) failure = take_answer(both->writer);
    }
    if (!failure && (order.count != count || order.disorders > 0)) {
        failure = peer_failure("reading from Redis", "other actions came back than were sent");
    }
    return failure;
}
