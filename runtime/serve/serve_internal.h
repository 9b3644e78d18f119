/* Requests, sites, answers and their dispatch. */
#ifndef LP_SERVE_INTERNAL_H
#define LP_SERVE_INTERNAL_H

#include <jansson.h>
#include <pthread.h>

#include "runtime/router/store.h"
#include "runtime/runtime.h"
#include "runtime/serve/serve.h"

/* ---- request.c ---- */

typedef struct {
  json_t *body; /* owned */
  bool chat, stream, stream_usage;
  const char *model, *prompt;
  lp_chat_message *messages; /* [count], texts of the body */
  size_t count;
  const char **stop; /* [stop_count], texts of the body: the answer ends before the first of them */
  size_t stop_count;
  LP_VEC(char *) joined; /* owned: contents that came in parts */
  int64_t max_tokens;
  lp_sampling sampling;
  const char *keywords; /* for the router */
} lp_completion;

/* The error's text is for the client. Release with lp_completion_free also after a failure. */
LP_MUST_USE lp_status lp_completion_read(const lp_serve_config *config, bool chat, const char *body, size_t size,
                                         lp_completion *out, lp_diag *diag);
void lp_completion_free(lp_completion *completion);

/* ---- sites ---- */

/* Takes the pieces of an answer's text; false: the client wants no more. */
typedef bool lp_piece_sink(void *user, const char *text);

typedef struct {
  int64_t prompt_tokens, tokens; /* prompt_tokens -1: not known */
  bool cut;                      /* by max_tokens */
} lp_usage;

typedef struct lp_site_server lp_site_server;
struct lp_site_server {
  /* `stop` may be set by another thread. LP_USAGE: the request is wrong, and no other site would take it. */
  lp_status (*complete)(lp_site_server *self, const lp_completion *request, const volatile int *stop,
                        lp_piece_sink *sink, void *user, lp_usage *usage, lp_diag *diag);
  void (*close)(lp_site_server *self);
};
LP_MUST_USE lp_status lp_site_bundle(const lp_serve_config *config, lp_site_server **out, lp_diag *diag);
LP_MUST_USE lp_status lp_site_api(const lp_serve_config *config, lp_site_server **out, lp_diag *diag);

/* ---- stop.c ---- */

/* A sink that passes on the text before the first stop sequence to another sink. */
typedef struct {
  const lp_completion *request;
  lp_piece_sink *sink;
  void *user;
  lp_buf held;
  bool stopped; /* the answer has ended, or the client has left */
} lp_stopper;
bool lp_stopper_put(void *stopper, const char *text);
void lp_stopper_end(lp_stopper *stopper, bool whole); /* releases the held text; hands it on when the answer is whole */

/* ---- answer.c: the API's JSON; each result is released with free() ---- */

char *lp_answer_whole(const lp_completion *request, const char *id, const char *model, const char *text,
                      const lp_usage *usage);
/* A chunk of a stream; `finish` NULL: not the last. The first one of a chat names the role. */
char *lp_answer_chunk(const lp_completion *request, const char *id, const char *model, const char *text, bool first,
                      const char *finish);
/* The chunk after the last one, for clients that asked for it: only the token counts. */
char *lp_answer_chunk_usage(const lp_completion *request, const char *id, const char *model, const lp_usage *usage);
char *lp_answer_error(const char *type, const char *text);
char *lp_answer_models(const lp_serve_config *config);
const char *lp_answer_finish(const lp_usage *usage);

/* ---- metrics.c ---- */

typedef struct {
  pthread_mutex_t lock; /* of all */
  int64_t in_flight;
  uint64_t answers[LP_ROUTE_COUNT][2], tokens[LP_ROUTE_COUNT], prompt_tokens[LP_ROUTE_COUNT], fallbacks;
  double seconds[LP_ROUTE_COUNT];
} lp_metrics;

void lp_metrics_begin(lp_metrics *metrics);
void lp_metrics_end(lp_metrics *metrics, lp_route route, const lp_usage *usage, bool good, bool fell_back,
                    double seconds);
void lp_metrics_print(lp_metrics *metrics, lp_buf *out);

/* ---- dispatch.c: one request, from its decision to its outcome ---- */

typedef struct lp_dispatcher lp_dispatcher;
LP_MUST_USE lp_status lp_dispatcher_open(const lp_serve_config *config, lp_dispatcher **out, lp_diag *diag);
void lp_dispatcher_close(lp_dispatcher *dispatcher);
/* Any number of threads. `route` and `decision` (0: nothing is noted) are set before the first piece. */
lp_status lp_dispatch(lp_dispatcher *dispatcher, const lp_completion *request, const volatile int *stop,
                      lp_piece_sink *sink, void *user, lp_route *route, int64_t *decision, lp_usage *usage,
                      lp_diag *diag);
lp_metrics *lp_dispatcher_metrics(lp_dispatcher *dispatcher);

/* The decision and the outcome apart, for clients that send their requests themselves. LP_USAGE: the question is
 * wrong. */
unsigned lp_dispatcher_offered(const lp_dispatcher *dispatcher);
LP_MUST_USE lp_status lp_dispatcher_decide(lp_dispatcher *dispatcher, lp_router_request *request, lp_decision *decision,
                                           int64_t *id, lp_diag *diag); /* id 0: there is no pool */
LP_MUST_USE lp_status lp_dispatcher_outcome(lp_dispatcher *dispatcher, int64_t id, double reward, bool good,
                                            lp_diag *diag);
LP_MUST_USE lp_status lp_dispatcher_stored(lp_dispatcher *dispatcher, int64_t id, lp_arena *arena, lp_stored *out,
                                           lp_diag *diag);

/* ---- router_api.c: the same in JSON; *out is released with free() ---- */

LP_MUST_USE lp_status lp_router_post(lp_dispatcher *dispatcher, bool decides, const char *body, size_t size, char **out,
                                     lp_diag *diag);
LP_MUST_USE lp_status lp_router_explain(lp_dispatcher *dispatcher, const char *number, char **out, lp_diag *diag);

#endif
