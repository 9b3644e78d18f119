/* Listens for connections, with TLS if the configuration has a certificate. When the certificate is renewed, a second
 * daemon of libmicrohttpd takes the connections to come at the same socket; the first one serves those that it has and
 * ends with the last of them. One thread uses a listener. */
#pragma once

#include "runtime/serve/http/server.h"

typedef struct lp_http_listener lp_http_listener;
typedef struct {
  MHD_AccessHandlerCallback handle;
  MHD_RequestCompletedCallback forget;
  MHD_NotifyConnectionCallback note_connection;
} lp_http_callbacks;

/* Checks the address and the certificate, before anything is opened. */
LP_MUST_USE lp_status lp_http_listener_check(const lp_serve_config *config, lp_diag *diag);
/* Listens at the address of its configuration. *host is to be freed; the callbacks get `of`. */
LP_MUST_USE lp_status lp_http_listener_open(lp_http_server *of, lp_http_callbacks callbacks, lp_http_listener **out,
                                            char **host, int *port, lp_diag *diag);
/* Reads the certificate again. After a failure the old one stays. */
LP_MUST_USE lp_status lp_http_listener_renew(lp_http_listener *listener, lp_diag *diag);
/* Ends daemons that have no connections any more. */
void lp_http_listener_tend(lp_http_listener *listener);
/* Takes no new connections. */
void lp_http_listener_stop(lp_http_listener *listener);
void lp_http_listener_close(lp_http_listener *listener); /* ends all connections; NULL is allowed */
