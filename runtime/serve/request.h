/* A request for an answer, read from its JSON. */
#ifndef LP_SERVE_REQUEST_H
#define LP_SERVE_REQUEST_H

#include "base/json/reader.h"
#include "runtime/runtime.h"
#include "runtime/serve/serve.h"

typedef struct {
  lp_json_document *document; /* owned: the body, an object */
  bool chat, stream, stream_usage;
  const char *model, *prompt;
  lp_chat_message *messages; /* [count], texts of the body */
  size_t count;
  const char **stop; /* [stop_count], texts of the body: the answer ends before the first of them */
  size_t stop_count;
  LP_VEC(char *) joined; /* owned: contents that were joined from parts */
  int64_t max_tokens;
  struct {
    double temperature, top_p; /* NaN: not given */
    int64_t top_k;             /* -1: not given, 0: off */
    uint64_t seed;
  } sampling;
  const char *keywords; /* for the router */
  int client;           /* the client's socket, which the server owns; a negative number: unknown */
} lp_completion;

/* Reads a body of `size` bytes; any bytes are safe input. The diagnostic's text is for the client. Release with
 * lp_completion_free, also after a failure. */
LP_MUST_USE lp_status lp_completion_read(const lp_serve_config *config, bool chat, const char *body, size_t size,
                                         lp_completion *out, lp_diag *diag);
void lp_completion_free(lp_completion *completion);

/* Parses a body, which must be a JSON object in UTF-8, without duplicate keys and without \u0000 in a text. The
 * diagnostic gives line and column. */
LP_MUST_USE lp_status lp_body_parse(const char *body, size_t size, lp_json_document **out, lp_diag *diag);

#endif
