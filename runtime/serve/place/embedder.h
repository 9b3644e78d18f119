/* The bundle of `embeddings`, which turns texts into vectors. It is no route: routes generate. A pass has texts of all
 * requests that wait, in turn, and never waits for further ones. Any number of threads may use it. */
#pragma once

#include "runtime/serve/serve.h"

typedef struct lp_embedder lp_embedder;
/* `config` outlives the embedder. Fails when the bundle gives no embeddings, with the reason. */
LP_MUST_USE lp_status lp_embedder_open(const lp_serve_bundle *config, lp_embedder **out, lp_diag *diag);
void lp_embedder_close(lp_embedder *embedder);              /* NULL is allowed */
const char *lp_embedder_model(const lp_embedder *embedder); /* borrowed */
int64_t lp_embedder_width(const lp_embedder *embedder);     /* of an embedding */

/* Appends the tokens of a text, or checks tokens[] of the request. LP_USAGE: the text is empty, too long, or has tokens
 * that the model lacks. */
LP_MUST_USE lp_status lp_embedder_encode(const lp_embedder *embedder, const char *text, lp_tokens *out, lp_diag *diag);
LP_MUST_USE lp_status lp_embedder_check(const lp_embedder *embedder, const lp_tokens *tokens, lp_diag *diag);

typedef struct {
  const lp_tokens *text; /* [count] */
  size_t count;
  int client;               /* the client's socket; negative: unknown */
  const volatile int *stop; /* the server ends */
} lp_embedder_request;
/* Computes out[count][lp_embedder_width]. Fails when the embedder has too many requests, takes too long, the client has
 * disconnected or the server ends. `queue_ms` receives the time until the first text began. */
LP_MUST_USE lp_status lp_embedder_run(lp_embedder *embedder, const lp_embedder_request *request, float *out,
                                      double *queue_ms, lp_diag *diag);

typedef struct {
  int64_t requests;         /* that run or wait */
  int64_t answered, failed; /* requests so far */
  int64_t texts, tokens;    /* of those that were answered */
  int64_t passes;
} lp_embedder_load;
lp_embedder_load lp_embedder_now(lp_embedder *embedder);
