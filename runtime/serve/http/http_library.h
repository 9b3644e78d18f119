/* libmicrohttpd, which with its TLS library takes 3 MB of memory; only the command that listens loads it. The members
 * are its functions of the same names. */
#ifndef LP_RUNTIME_SERVE_HTTP_LIBRARY_H
#define LP_RUNTIME_SERVE_HTTP_LIBRARY_H

#include <microhttpd.h>
#include <stddef.h>

typedef struct {
  struct MHD_Daemon *(*start_daemon)(unsigned flags, uint16_t port, MHD_AcceptPolicyCallback accept, void *accept_user,
                                     MHD_AccessHandlerCallback handle, void *user, ...);
  const union MHD_DaemonInfo *(*get_daemon_info)(struct MHD_Daemon *daemon, enum MHD_DaemonInfoType type, ...);
  MHD_socket (*quiesce_daemon)(struct MHD_Daemon *daemon);
  void (*stop_daemon)(struct MHD_Daemon *daemon);
  const union MHD_ConnectionInfo *(*get_connection_info)(struct MHD_Connection *connection,
                                                         enum MHD_ConnectionInfoType type, ...);
  const char *(*lookup_connection_value)(struct MHD_Connection *connection, enum MHD_ValueKind kind, const char *key);
  struct MHD_Response *(*create_response_from_buffer)(size_t size, void *buffer, enum MHD_ResponseMemoryMode mode);
  struct MHD_Response *(*create_response_from_pipe)(int fd);
  enum MHD_Result (*add_response_header)(struct MHD_Response *response, const char *header, const char *content);
  enum MHD_Result (*queue_response)(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response);
  void (*destroy_response)(struct MHD_Response *response);
} lp_http_library;

#endif
