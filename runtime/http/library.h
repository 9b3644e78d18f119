/* libmicrohttpd, which with its TLS library takes 3 MB of memory; only a command that listens loads it. The members are
 * its functions of the same names. */
#pragma once

#include <microhttpd.h>
#include <sys/socket.h>

#include "base/base.h"

typedef struct {
  struct MHD_Daemon *(*start_daemon)(unsigned flags, uint16_t port, MHD_AcceptPolicyCallback accept, void *accept_user,
                                     MHD_AccessHandlerCallback handle, void *user, ...);
  const union MHD_DaemonInfo *(*get_daemon_info)(struct MHD_Daemon *daemon, enum MHD_DaemonInfoType type, ...);
  MHD_socket (*quiesce_daemon)(struct MHD_Daemon *daemon);
  void (*stop_daemon)(struct MHD_Daemon *daemon);
  const union MHD_ConnectionInfo *(*get_connection_info)(struct MHD_Connection *connection,
                                                         enum MHD_ConnectionInfoType type, ...);
  const char *(*lookup_connection_value)(struct MHD_Connection *connection, enum MHD_ValueKind kind, const char *key);
  int (*get_connection_values)(struct MHD_Connection *connection, enum MHD_ValueKind kind, MHD_KeyValueIterator take,
                               void *user);
  struct MHD_Response *(*create_response_from_buffer)(size_t size, void *buffer, enum MHD_ResponseMemoryMode mode);
  struct MHD_Response *(*create_response_from_pipe)(int fd);
  enum MHD_Result (*add_response_header)(struct MHD_Response *response, const char *header, const char *content);
  enum MHD_Result (*queue_response)(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response);
  void (*destroy_response)(struct MHD_Response *response);
} lp_http_library;

/* Fails if it is not installed. The first call may not run on two threads at once. */
LP_MUST_USE lp_status lp_http_library_load(const lp_http_library **out, lp_diag *diag);

/* Reads HOST:PORT, where the host is a number, "127.0.0.1" or "[::1]", or localhost. The caller frees *host, also after
 * a failure, which is reported at `loc`. */
LP_MUST_USE lp_status lp_http_address_read(const char *listen, lp_loc loc, struct sockaddr_storage *out, char **host,
                                           lp_diag *diag);
/* The port of a daemon that listens; 0: it cannot be found. */
int lp_http_port(const lp_http_library *http, struct MHD_Daemon *daemon);

/* Who may ask, by the headers of a request. The length of the header Host without its port: "localhost:8080",
 * "[::1]:8080". */
size_t lp_http_host_length(const char *host);
/* Tells whether `name`, a Host without a port, is a loopback address. A page of a browser can give its own name that
 * address (DNS rebinding), but not this one. */
bool lp_http_is_loopback(const char *name);
/* Compares a bearer token with the right one, in a time that does not tell where they differ. */
bool lp_http_is_key(const char *given, const char *key);
