/* Replies with their headers. */
#include "runtime/serve/http/peer.h"

#include <string.h>

#include "runtime/serve/answer.h"

const char *lp_peer_header(const lp_peer *to, const char *name) {
  return to->http->lookup_connection_value(to->connection, MHD_HEADER_KIND, name);
}

static void share(const lp_peer *to, struct MHD_Response *response) {
  const lp_http_library *http = to->http;
  (void)http->add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, to->origin);
  (void)http->add_response_header(response, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ORIGIN);
  (void)http->add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_EXPOSE_HEADERS,
                                  "X-Llmpart-Route, X-Llmpart-Decision, Retry-After");
}

enum MHD_Result lp_peer_queue(const lp_peer *to, unsigned status, const char *type, struct MHD_Response *response) {
  if (!response) return MHD_NO;
  (void)to->http->add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  if (to->origin) share(to, response);
  enum MHD_Result result = to->http->queue_response(to->connection, status, response);
  to->http->destroy_response(response);
  return result;
}

enum MHD_Result lp_peer_reply_text(const lp_peer *to, unsigned status, const char *type, char *text) {
  return lp_peer_queue(to, status, type,
                       to->http->create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE));
}

enum MHD_Result lp_peer_reply(const lp_peer *to, unsigned status, char *json) {
  return lp_peer_reply_text(to, status, "application/json", json);
}

enum MHD_Result lp_peer_reply_error(const lp_peer *to, unsigned status, const char *text) {
  const char *type = status < 500 ? "invalid_request_error" : "server_error";
  return lp_peer_reply(to, status, lp_answer_error(type, text));
}
