#pragma once
#include <microhttpd.h>

// Swift imports neither variadic functions nor constants that are macros.

static inline enum MHD_Result inventory_http_yes(void) { return MHD_YES; }
static inline enum MHD_Result inventory_http_no(void) { return MHD_NO; }

/// An answer with a copy of a body; NULL if there is no memory.
static inline struct MHD_Response *inventory_http_response(const void *body, size_t size) {
    return MHD_create_response_from_buffer(size, (void *)body, MHD_RESPMEM_MUST_COPY);
}

/// Starts a server on the loopback interface, with its own thread. Returns NULL if that fails.
static inline struct MHD_Daemon *inventory_http_start(
    const struct sockaddr *address, MHD_AccessHandlerCallback handler, void *context
) {
    return MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handler, context,
        MHD_OPTION_SOCK_ADDR, address, MHD_OPTION_CONNECTION_LIMIT, 64u,
        MHD_OPTION_CONNECTION_TIMEOUT, 30u, MHD_OPTION_END);
}

/// The port where a server listens.
static inline unsigned short inventory_http_port(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info == NULL ? 0 : info->port;
}
