#pragma once
#include <microhttpd.h>
#include <netinet/in.h>
#include <string.h>

// Swift does not import variadic functions, and imports libmicrohttpd's enumerations differently from
// version to version: what is needed of both is here.

/// What is told of connections and requests, on the server's thread. A connection is named by its socket, which stays
/// open until `ended` returns.
struct conflux_http_watch {
    void *context;
    /// A connection begins, from an address of so many bytes.
    void (*begun)(void *context, int socket, const void *address, size_t size);
    /// A connection is about to be closed.
    void (*ended)(void *context, int socket);
    /// A request is over: answered, or its connection ended. `own` is what its handler has kept.
    void (*completed)(void *own);
};

/// The socket of a connection.
static inline int conflux_http_socket(struct MHD_Connection *connection) {
    return (int)MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static inline void conflux_http_notify(
    void *context, struct MHD_Connection *connection, void **own,
    enum MHD_ConnectionNotificationCode code
) {
    const struct conflux_http_watch *watch = context;
    int socket = conflux_http_socket(connection);
    (void)own;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        watch->ended(watch->context, socket);
        return;
    }
    const struct sockaddr *peer =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    if (peer->sa_family == AF_INET6)
        watch->begun(watch->context, socket, &((const struct sockaddr_in6 *)peer)->sin6_addr, 16);
    else
        watch->begun(watch->context, socket, &((const struct sockaddr_in *)peer)->sin_addr, 4);
}

static inline void conflux_http_complete(
    void *context, struct MHD_Connection *connection, void **own,
    enum MHD_RequestTerminationCode code
) {
    const struct conflux_http_watch *watch = context;
    (void)connection;
    (void)code;
    if (*own != NULL) watch->completed(*own);
    *own = NULL;
}

/// Leaves a path, and what is behind it, as it is: %00 would cut it.
static inline size_t conflux_http_keep(void *own, struct MHD_Connection *connection, char *path) {
    (void)own;
    (void)connection;
    return strlen(path);
}

/// Starts a server with a thread of its own. NULL where it can't be; errno may say why. `watch` MUST outlive it.
static inline struct MHD_Daemon *conflux_http_start(
    int is_ipv6, const struct sockaddr *address, MHD_AccessHandlerCallback handler,
    struct conflux_http_watch *watch, unsigned int connections_max, size_t connection_bytes_max
) {
    return MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | (is_ipv6 ? MHD_USE_IPv6 : 0), 0,
        NULL, NULL, handler, watch->context,
        MHD_OPTION_NOTIFY_CONNECTION, conflux_http_notify, watch,
        MHD_OPTION_NOTIFY_COMPLETED, conflux_http_complete, watch,
        MHD_OPTION_SOCK_ADDR, address, MHD_OPTION_CONNECTION_LIMIT, connections_max,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_bytes_max,
        MHD_OPTION_LISTEN_BACKLOG_SIZE, connections_max,
        MHD_OPTION_UNESCAPE_CALLBACK, conflux_http_keep, NULL,
        // What breaks the grammar is refused.
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
}

/// The port that was bound; 0 where it is not known.
static inline uint16_t conflux_http_port(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info == NULL ? 0 : info->port;
}

/// Gives all headers of a request, or all arguments behind its path, to a function. A value may be NULL.
static inline void conflux_http_each(
    struct MHD_Connection *connection, int is_header, MHD_KeyValueIterator body, void *own
) {
    MHD_get_connection_values(
        connection, is_header ? MHD_HEADER_KIND : MHD_GET_ARGUMENT_KIND, body, own);
}

/// An answer with a copy of a body; NULL where there is no memory.
static inline struct MHD_Response *conflux_http_response(const void *body, size_t size) {
    return MHD_create_response_from_buffer(size, (void *)body, MHD_RESPMEM_MUST_COPY);
}

/// An answer whose body a function gives, bit by bit; NULL where there is no memory.
static inline struct MHD_Response *conflux_http_stream(
    uint64_t size, size_t block, MHD_ContentReaderCallback read, void *own,
    MHD_ContentReaderFreeCallback free
) {
    return MHD_create_response_from_callback(size, block, read, own, free);
}

/// The size of a body that goes on.
static inline uint64_t conflux_http_size_unknown(void) { return MHD_SIZE_UNKNOWN; }

/// What the function of a stream returns at its end.
static inline ssize_t conflux_http_stream_end(void) { return MHD_CONTENT_READER_END_OF_STREAM; }

/// Continues with a request.
static inline enum MHD_Result conflux_http_continue(void) { return MHD_YES; }

/// Ends a connection that can't be answered.
static inline enum MHD_Result conflux_http_give_up(void) { return MHD_NO; }
