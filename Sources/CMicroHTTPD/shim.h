#pragma once
#include <microhttpd.h>
#include <netinet/in.h>
#include <string.h>

// Swift does not import variadic functions, and imports libmicrohttpd's enumerations differently from
// version to version: what is needed of both is here.

/// What is told of connections, on the server's thread. Each is named by its socket, which stays open until
/// `ended` returns.
struct conflux_http_watch {
    void *context;
    /// A connection begins, from an address of so many bytes.
    void (*begun)(void *context, int socket, const void *address, size_t size);
    /// A connection is about to be closed.
    void (*ended)(void *context, int socket);
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

/// Leaves a path as it is: no path that is served needs an escape, and %00 would cut it.
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
        MHD_USE_AUTO_INTERNAL_THREAD | (is_ipv6 ? MHD_USE_IPv6 : 0), 0, NULL, NULL, handler,
        watch->context, MHD_OPTION_NOTIFY_CONNECTION, conflux_http_notify, watch,
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

/// A header of a request; NULL where it has none.
static inline const char *conflux_http_header(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/// An answer with a copy of a body; NULL where there is no memory.
static inline struct MHD_Response *conflux_http_response(const void *body, size_t size) {
    return MHD_create_response_from_buffer(size, (void *)body, MHD_RESPMEM_MUST_COPY);
}

/// Ends a connection that can't be answered.
static inline enum MHD_Result conflux_http_give_up(void) { return MHD_NO; }
