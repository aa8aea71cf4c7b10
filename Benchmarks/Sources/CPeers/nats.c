#include "internal.h"

#include <nats/nats.h>
#include <stdio.h>

typedef struct {
    natsConnection *connection;
    jsCtx *stream;
    natsSubscription *subscription;
} nats_client;

static const char *stream = "ACTIONS";
static const char *subject = "actions";

static const char *failed(const char *attempt, natsStatus status) {
    const char *detail = nats_GetLastError(NULL);
    return peer_failure(attempt, detail && *detail ? detail : natsStatus_GetText(status));
}

static natsStatus connect_to(int port, nats_client *client) {
    char address[64];
    snprintf(address, sizeof address, "nats://127.0.0.1:%d", port);
    natsOptions *options = NULL;
    natsStatus status = natsOptions_Create(&options);
    if (status == NATS_OK) status = natsOptions_SetURL(options, address);
    // A single message is sent at once. The library gathers the messages that are published while it writes.
    if (status == NATS_OK) status = natsOptions_SetSendAsap(options, true);
    if (status == NATS_OK) status = natsOptions_SetMaxPendingMsgs(options, 10000000);
    if (status == NATS_OK) status = natsConnection_Connect(&client->connection, options);
    natsOptions_Destroy(options);
    if (status != NATS_OK) return status;
    jsOptions settings;
    jsOptions_Init(&settings);
    settings.PublishAsync.MaxPending = peer_window;
    settings.PublishAsync.StallWait = peer_patience_seconds * 1000;
    settings.Wait = peer_patience_seconds * 1000;
    return natsConnection_JetStream(&client->stream, client->connection, &settings);
}

const char *nats_prepare(int port) {
    nats_client client = {0};
    natsStatus status = connect_to(port, &client);
    if (status == NATS_OK) {
        jsStreamConfig config;
        jsStreamConfig_Init(&config);
        const char *subjects[] = {subject};
        config.Name = stream;
        config.Subjects = subjects;
        config.SubjectsLen = 1;
        config.Storage = js_FileStorage;
        status = js_AddStream(NULL, client.stream, &config, NULL, NULL);
    }
    const char *failure = status == NATS_OK ? NULL : failed("making NATS's stream", status);
    jsCtx_Destroy(client.stream);
    natsConnection_Destroy(client.connection);
    return failure;
}

const char *nats_open(int port, void **client) {
    nats_client *made = calloc(1, sizeof *made);
    if (!made) return peer_failure("connecting to NATS", "no memory");
    natsStatus status = connect_to(port, made);
    if (status != NATS_OK) {
        const char *failure = failed("connecting to NATS", status);
        nats_close(made);
        return failure;
    }
    *client = made;
    return NULL;
}

void nats_close(void *client) {
    nats_client *closed = client;
    natsSubscription_Destroy(closed->subscription);
    jsCtx_Destroy(closed->stream);
    natsConnection_Destroy(closed->connection);
    free(closed);
}

// Follows the stream from its first message, in its order.
static natsStatus subscribe(nats_client *client) {
    if (client->subscription) return NATS_OK;
    jsSubOptions options;
    jsSubOptions_Init(&options);
    options.Ordered = true;
    options.Stream = stream;
    natsStatus status = js_SubscribeSync(
        &client->subscription, client->stream, subject, NULL, &options, NULL);
    if (status == NATS_OK) status = natsSubscription_SetPendingLimits(client->subscription, -1, -1);
    return status;
}

const char *nats_produce(void *client, uint64_t producer, uint64_t count, uint64_t entry_actions) {
    nats_client *writing = client;
    char *entry = malloc(entry_actions * PARTNER_ACTION_BYTES);
    if (!entry) return peer_failure("publishing to NATS", "no memory");
    natsStatus status = NATS_OK;
    for (uint64_t sent = 0; sent < count && status == NATS_OK;) {
        uint64_t actions = count - sent < entry_actions ? count - sent : entry_actions;
        peer_fill(entry, producer, sent, actions);
        status = js_PublishAsync(
            writing->stream, subject, entry, (int)(actions * PARTNER_ACTION_BYTES), NULL);
        sent += actions;
    }
    if (status == NATS_OK) {
        jsPubOptions options;
        jsPubOptions_Init(&options);
        options.MaxWait = peer_patience_seconds * 1000;
        status = js_PublishAsyncComplete(writing->stream, &options);
    }
    free(entry);
    return status == NATS_OK ? NULL : failed("publishing to NATS", status);
}

static natsStatus take(nats_client *client, partner_order *order) {
    natsMsg *message = NULL;
    natsStatus status = natsSubscription_NextMsg(
        &message, client->subscription, peer_patience_seconds * 1000);
    if (status != NATS_OK) return status;
    peer_note(order, natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message));
    natsMsg_Destroy(message);
    return NATS_OK;
}

const char *nats_receive(void *client, uint64_t count, partner_order *order) {
    nats_client *reading = client;
    natsStatus status = subscribe(reading);
    while (order->count < count && status == NATS_OK) status = take(reading, order);
    return status == NATS_OK ? NULL : failed("reading from NATS", status);
}

const char *nats_round_trips(void *client, uint64_t count, uint64_t *nanoseconds) {
    nats_client *both = client;
    partner_order order = {0};
    natsStatus status = subscribe(both);
    for (uint64_t index = 0; index < count && status == NATS_OK; index += 1) {
        char action[PARTNER_ACTION_BYTES];
        peer_fill(action, 0, index, 1);
        uint64_t start = peer_now();
        status = js_PublishAsync(both->stream, subject, action, sizeof action, NULL);
        if (status == NATS_OK) status = take(both, &order);
        nanoseconds[index] = peer_now() - start;
    }
    if (status != NATS_OK) return failed("round trips over NATS", status);
    if (order.count != count || order.disorders > 0) {
        return peer_failure("reading from NATS", "other actions came back than were sent");
    }
    return NULL;
}
