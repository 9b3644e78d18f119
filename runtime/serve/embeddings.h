/* POST /v1/embeddings: reads the request, and writes the answer in the form of OpenAI's API. */
#pragma once

#include "runtime/serve/place/embedder.h"

typedef struct {
  const char *body;
  size_t size;
  int client;               /* the client's socket; negative: unknown */
  const volatile int *stop; /* the server ends */
} lp_embeddings_request;

typedef struct {
  char *model;     /* that was asked for; owned, NULL: the body does not name one */
  char *json;      /* the answer; owned */
  int64_t tokens;  /* of the texts */
  double queue_ms; /* until the first text began */
  bool no_model;   /* the body names another model */
} lp_embeddings_answer;

/* `embedder` NULL: the server has none. LP_USAGE: the request is wrong. The caller zeroes `out`, and frees its texts
 * also after a failure. */
LP_MUST_USE lp_status lp_embeddings_answer_to(lp_embedder *embedder, const lp_embeddings_request *request,
                                              lp_embeddings_answer *out, lp_diag *diag);
