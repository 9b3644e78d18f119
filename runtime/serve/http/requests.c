/* Keys and limits of requests, and requests for answers: see requests.h. */
#include "runtime/serve/http/requests.h"

#include <math.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/units.h"

/* ---- keys and limits --------------------------------------------------------------------------------------------- */

/* A number that tells nothing of the text and is not 0. */
static uint64_t number_of(const char *kind, const char *text) {
  uint8_t digest[32];
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, kind, strlen(kind));
  lp_sha256_update(&sha, text, strlen(text));
  lp_sha256_bytes(&sha, digest);
  uint64_t number = 0;
  memcpy(&number, digest, sizeof number);
  return number | 1;
}

bool lp_request_is_allowed(const lp_peer *to, lp_exchange *a) {
  const lp_serve_config *config = a->with->config;
  const char *given = lp_peer_header(to, MHD_HTTP_HEADER_AUTHORIZATION);
  bool bears = given && lp_has_prefix(given, "Bearer ");
  a->key = lp_limits_find_key(config, bears ? given + 7 : lp_peer_header(to, "x-api-key"));
  a->client = a->key ? number_of("client", a->key->key) : 0;
  return config->keys.count == 0 || a->key;
}

static enum MHD_Result reply_limited(const lp_peer *to, const char *why, double retry_s) {
  char seconds[32];
  if (isinf(retry_s)) return lp_peer_reply_error(to, MHD_HTTP_BAD_REQUEST, why);
  char *json =
      to->dialect ? lp_peer_error(to, MHD_HTTP_TOO_MANY_REQUESTS, why) : lp_answer_error("rate_limit_error", why);
  struct MHD_Response *response = to->http->create_response_from_buffer(strlen(json), json, MHD_RESPMEM_MUST_FREE);
  (void)snprintf(seconds, sizeof seconds, "%.0f", fmax(1, ceil(retry_s)));
  if (response) (void)to->http->add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
  return lp_peer_queue(to, MHD_HTTP_TOO_MANY_REQUESTS, "application/json", response);
}

/* A number for those whose requests may share rows of prompts: the tenant of the key, or the key itself. */
static uint64_t tenant_of(const lp_exchange *a) {
  return a->key && a->key->tenant ? number_of("tenant", a->key->tenant) : a->client;
}

uint64_t lp_request_owner(const lp_exchange *a) {
  if (!a->key) return 0;
  const char *name = a->key->tenant ? a->key->tenant : a->key->name;
  return number_of(name ? "name" : "key", name ? name : a->key->key);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* Takes a request for this many answers, or one for embeddings; false: *reply says that it is refused. */
static bool begin(const lp_peer *to, lp_exchange *a, int32_t answers, enum MHD_Result *reply) {
  double retry_s = 0;
  if (lp_flag_get(&a->server->drains)) {
    *reply = lp_peer_reply_error(to, MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends");
    return false;
  }
  if (!a->key) return true;
  const char *why = lp_limits_begin(a->server->limits, a->key, answers, lp_now_ms(), &retry_s);
  if (why) *reply = reply_limited(to, why, retry_s);
  a->limited = why ? 0 : answers;
  return !why;
}

static void begin_trace(const lp_peer *to, lp_exchange *a) {
  const union MHD_ConnectionInfo *info =
      to->http->get_connection_info(to->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  a->request.client = info ? info->connect_fd : -1;
  lp_traceparent_read(lp_peer_header(to, "traceparent"), a->request.trace, a->request.caller);
  lp_span_draw_id(a->request.span);
}

/* The rate that a header gives, or that of the request's key. */
static lp_status read_rate(const lp_peer *to, const char *header, double of_key, double *bps, lp_diag *diag) {
  const char *given = lp_peer_header(to, header);
  *bps = of_key;
  return given ? lp_parse_rate_bps(given, bps, diag, LP_LOC_FILE(header)) : LP_OK;
}

/* Sets the rates of the client's link. */
static lp_status read_link(const lp_peer *to, lp_exchange *a, lp_diag *diag) {
  const lp_serve_key none = {0}, *key = a->key ? a->key : &none;
  a->request.user = key->user;
  LP_TRY(read_rate(to, "X-Llmpart-Up", key->up_bps, &a->request.up_bps, diag));
  return read_rate(to, "X-Llmpart-Down", key->down_bps, &a->request.down_bps, diag);
}

enum MHD_Result lp_request_complete(const lp_peer *to, lp_exchange *a, bool chat, bool *taken) {
  enum MHD_Result result = MHD_NO;
  lp_diag *diag = lp_diag_create();
  lp_status status = lp_completion_read(a->with->config, chat, lp_buf_text(&a->body), a->body.size, &a->request, diag);
  if (status == LP_OK) status = read_link(to, a, diag);
  if (status != LP_OK) result = lp_peer_reply_error(to, MHD_HTTP_BAD_REQUEST, lp_diag_get(diag, 0)->text);
  lp_diag_free(diag);
  if (status != LP_OK || !begin(to, a, lp_completion_answers(&a->request), &result)) return result;
  begin_trace(to, a);
  a->request.only_counts = a->translation.counts;
  a->request.may_be_plain = a->translation.plain;
  a->request.client_id = a->key ? a->client : lp_peer_host(to->http, to->connection);
  a->request.owner = lp_request_owner(a);
  a->request.tenant = tenant_of(a);
  return lp_exchange_answer(to, a, taken);
}

enum MHD_Result lp_request_embed(const lp_peer *to, lp_exchange *a) {
  enum MHD_Result result = MHD_NO;
  if (!begin(to, a, 1, &result)) return result;
  begin_trace(to, a);
  return lp_exchange_embed(to, a);
}

/* ---- other dialects ---------------------------------------------------------------------------------------------- */

/* The history of the answer that a request goes on with. */
static lp_status find_earlier(const lp_exchange *a, const lp_json *body, lp_buf *out, lp_diag *diag) {
  lp_json at = lp_json_member(body, "previous_response_id");
  const char *id = lp_json_text_or(&at, "");
  if (!lp_json_is_given(&at) || lp_kept_get(a->server->kept, a->client, id, out)) return LP_OK;
  return lp_error(diag, LP_LOC_NONE,
                  "'previous_response_id' names no answer that is kept; send the whole conversation as 'input'");
}

enum MHD_Result lp_request_translate(const lp_peer *to, lp_exchange *a, bool *taken) {
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  lp_buf earlier = {0};
  a->dialect = to->dialect;
  lp_status status = lp_body_parse(lp_buf_text(&a->body), a->body.size, &a->asked, diag);
  if (status == LP_OK) {
    lp_json root = lp_json_root("the request", a->asked);
    status = find_earlier(a, &root, &earlier, diag);
    if (status == LP_OK) status = to->dialect->translate(&root, lp_buf_text(&earlier), &a->translation, diag);
  }
  enum MHD_Result result = MHD_NO;
  lp_buf_free(&earlier);
  if (status == LP_OK) {
    lp_buf_clear(&a->body);
    lp_buf_append(&a->body, lp_buf_text(&a->translation.body), a->translation.body.size);
    result = lp_request_complete(to, a, a->translation.chat, taken);
  } else {
    result = lp_peer_reply_error(to, MHD_HTTP_BAD_REQUEST, lp_diag_get(diag, 0)->text);
  }
  return result;
}
