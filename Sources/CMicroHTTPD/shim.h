#pragma once
#include <microhttpd.h>
#include <string.h>

// Swift does not import variadic functions, and imports libmicrohttpd's enumerations differently from
// version to version: what is needed of both is here.

/// Starts a server with a thread of its own. NULL where it can't be; errno may say why.
static inline struct MHD_Daemon *conflux_http_start(
    int is_ipv6, const struct sockaddr *address, MHD_AccessHandlerCallback handler, void *context,
    unsigned int connections_max, size_t connection_bytes_max, unsigned int silence_seconds_max
) {
    return MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | (is_ipv6 ? MHD_USE_IPv6 : 0), 0, NULL, NULL, handler, context,
        MHD_OPTION_SOCK_ADDR, address, MHD_OPTION_CONNECTION_LIMIT, connections_max,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_bytes_max, MHD_OPTION_CONNECTION_TIMEOUT,
        silence_seconds_max, MHD_OPTION_LISTEN_BACKLOG_SIZE, connections_max,
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
