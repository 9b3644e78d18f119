/* A request and its answer over HTTP. A thread of its own makes each streamed answer, which goes out through a pipe.
 * The status line waits for the first piece, so that a failure before it still has a status of its own. */
#pragma once

#include "runtime/http/library.h"
#include "runtime/serve/dialects/dialect.h"
#include "runtime/serve/http/server.h"

typedef struct {
  const lp_http_library *http;
  struct MHD_Connection *connection;
  bool closes;               /* the connection ends after the reply */
  const lp_dialect *dialect; /* of errors; NULL: OpenAI's */
  const char *origin;        /* of the web page that may read the reply; NULL: no page, or one of this server */
} lp_peer;

/* A number for the host at the other end (runtime/link/address.h); 0: unknown. */
uint64_t lp_peer_host(const lp_http_library *http, struct MHD_Connection *connection);
/* A header of the request; NULL: it has none. Borrowed from the connection. */
const char *lp_peer_header(const lp_peer *to, const char *name);
/* Replies with `response`, which it releases; NULL, for want of memory, ends the connection. */
enum MHD_Result lp_peer_queue(const lp_peer *to, unsigned status, const char *type, struct MHD_Response *response);
/* Replies with text, which it frees. */
enum MHD_Result lp_peer_reply(const lp_peer *to, unsigned status, char *json);
enum MHD_Result lp_peer_reply_error(const lp_peer *to, unsigned status, const char *text);
enum MHD_Result lp_peer_reply_no_model(const lp_peer *to, const char *text); /* status 404, with OpenAI's code */
char *lp_peer_error(const lp_peer *to, unsigned status, const char *text);   /* the body of that; release with free() */

/* What the headers say of an answer. */
typedef struct {
  const char *route, *of_place;
  char note[sizeof(((lp_completion *)0)->note)], decision[24];
} lp_told;

/* A request's body while it is received, then its answer. Two threads own it while the answer streams. */
typedef struct {
  lp_http_server *server;
  lp_settings *with; /* for the whole request */
  lp_buf body;
  const lp_serve_key *key; /* of `with`; NULL: none */
  uint64_t client;         /* a number for the key, which stays when the configuration changes; 0: none */
  int32_t limited;         /* answers that count against the limits of the key until the exchange ends */
  lp_completion request;
  const lp_dialect *dialect; /* NULL: OpenAI's chat and completions */
  lp_translation translation;
  lp_json_document *asked; /* the body in the dialect */
  lp_telling telling;
  double begun_ms;
  char id[24];
  int64_t created; /* Unix time */
  lp_dispatched course;
  lp_told told;   /* of a stream that has begun */
  int pipe;       /* the pipe of the stream; -1: the answer is not streamed */
  lp_whole whole; /* of a stream of OpenAI's only the characters are counted */
  bool has_role[LP_MOST_ANSWERS];
  bool begun, seen, ended; /* guarded by server->lock; seen: the connection has seen that the answer began */
  lp_status status;
  char *error; /* NULL: none */
} lp_exchange;

lp_exchange *lp_exchange_create(lp_http_server *server);
void lp_exchange_free(lp_exchange *exchange);
/* Makes the answer to `request`, which has been read, and replies. *taken: the exchange belongs to the thread that
 * makes the stream. */
enum MHD_Result lp_exchange_answer(const lp_peer *to, lp_exchange *exchange, bool *taken);
/* Replies to a request for embeddings, which is in `body`. */
enum MHD_Result lp_exchange_embed(const lp_peer *to, lp_exchange *exchange);
