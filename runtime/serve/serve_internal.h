/* What the files of this folder share. */
#ifndef LP_SERVE_INTERNAL_H
#define LP_SERVE_INTERNAL_H

#include <jansson.h>

#include "runtime/runtime.h"
#include "runtime/serve/serve.h"

/* ---- request.c ---- */

typedef struct {
  json_t *body; /* owned */
  bool chat, stream;
  const char *model, *prompt;
  lp_chat_message *messages; /* [count], texts of the body */
  size_t count;
  int64_t max_tokens;
  lp_sampling sampling;
  const char *keywords; /* for the router */
} lp_completion;

/* The error's text is for the client. Release with lp_completion_free also after a failure. */
LP_MUST_USE lp_status lp_completion_read(const lp_serve_config *config, bool chat, const char *body, size_t size,
                                         lp_completion *out, lp_diag *diag);
void lp_completion_free(lp_completion *completion);

/* ---- places ---- */

/* What a place hands on: pieces of the answer's text; false: nobody wants more. */
typedef bool lp_piece_sink(void *user, const char *text);

typedef struct {
  int64_t prompt_tokens, tokens; /* prompt_tokens -1: not known */
  bool cut;                      /* by max_tokens */
} lp_usage;

typedef struct lp_place_server lp_place_server;
struct lp_place_server {
  /* `stop` may be set by another thread. LP_USAGE: the request is wrong, and no other place would take it. */
  lp_status (*complete)(lp_place_server *self, const lp_completion *request, const volatile int *stop,
                        lp_piece_sink *sink, void *user, lp_usage *usage, lp_diag *diag);
  void (*close)(lp_place_server *self);
};
LP_MUST_USE lp_status lp_place_bundle(const lp_serve_config *config, lp_place_server **out, lp_diag *diag);
LP_MUST_USE lp_status lp_place_api(const lp_serve_config *config, lp_place_server **out, lp_diag *diag);

/* ---- answer.c: the API's JSON; each result is released with free() ---- */

char *lp_answer_whole(const lp_completion *request, const char *id, const char *model, const char *text,
                      const lp_usage *usage);
/* A chunk of a stream; `finish` NULL: not the last. */
char *lp_answer_chunk(const lp_completion *request, const char *id, const char *model, const char *text,
                      const char *finish);
char *lp_answer_error(const char *type, const char *text);
char *lp_answer_models(const lp_serve_config *config);
const char *lp_answer_finish(const lp_usage *usage);

/* ---- dispatch.c: one request, from its decision to its outcome ---- */

typedef struct lp_dispatcher lp_dispatcher;
LP_MUST_USE lp_status lp_dispatcher_open(const lp_serve_config *config, lp_dispatcher **out, lp_diag *diag);
void lp_dispatcher_close(lp_dispatcher *dispatcher);
/* Any number of threads. `route` and `decision` (0: nothing is noted) are set before the first piece. */
lp_status lp_dispatch(lp_dispatcher *dispatcher, const lp_completion *request, const volatile int *stop,
                      lp_piece_sink *sink, void *user, lp_route *route, int64_t *decision, lp_usage *usage,
                      lp_diag *diag);

#endif
