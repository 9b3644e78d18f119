/* The client of a request, and replies to it. A reply goes out after the handler of libmicrohttpd has returned. */
#ifndef LP_SERVE_HTTP_PEER_H
#define LP_SERVE_HTTP_PEER_H

#include "runtime/http/library.h"

typedef struct {
  const lp_http_library *http;
  struct MHD_Connection *connection;
  const char *origin; /* of the web page that may read the reply; NULL: no page, or one of this server */
} lp_peer;

/* A header of the request; NULL: it has none. Borrowed from the connection. */
const char *lp_peer_header(const lp_peer *to, const char *name);
/* Replies with `response`, which it releases; NULL, for want of memory, ends the connection. */
enum MHD_Result lp_peer_queue(const lp_peer *to, unsigned status, const char *type, struct MHD_Response *response);
/* Replies with text, which it frees. */
enum MHD_Result lp_peer_reply_text(const lp_peer *to, unsigned status, const char *type, char *text);
enum MHD_Result lp_peer_reply(const lp_peer *to, unsigned status, char *json);
enum MHD_Result lp_peer_reply_error(const lp_peer *to, unsigned status, const char *text);

#endif
