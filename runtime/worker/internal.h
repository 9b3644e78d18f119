/* What the files of the worker share: sessions and contexts of devices on the cloud side, and the passes that serve them. */
#ifndef LP_WORKER_INTERNAL_H
#define LP_WORKER_INTERNAL_H

#include "runtime/bundle/manifest.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/logits.h"
#include "runtime/exits/context.h"
#include "runtime/exits/context_file.h"
#include "runtime/exits/halves.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/link/link_security.h"
#include "runtime/runtime.h"

/* A run of a program that takes all payloads before it computes: it waits for a pass that serves several (pass.c). */
typedef struct {
  bool gathers; /* payloads are kept; the session has no run of its own */
  bool waits;   /* they are all there */
  uint64_t turn;
  int64_t sym[LP_MAX_SYMBOLS];
  int64_t done;             /* of the s tokens, by earlier passes */
  double asked_ms, busy_ms; /* when they were all there; earlier passes took */
  lp_buf payload;           /* of all steps, one behind the other */
} worker_request;

/* A session of a device. It runs its part of a program as payloads come in: between two messages it waits at the step
 * `next`, which takes something from the device. */
typedef struct {
  uint32_t peer;
  uint64_t id;
  lp_sampling sampling;
  lp_executor *executor;
  int32_t program;
  int32_t next; /* the step it waits at; -1: no run under way */
  bool want_outputs;
  bool dropped;     /* its KV cache was given up; only p = 0 begins anew */
  int64_t position; /* tokens in the KV cache */
  double used_ms;   /* when it was last asked */
  double busy_from; /* since when it computes what is sent next */
  bool times;       /* are wanted in what is sent */
  worker_request request;
} worker_session;

/* A context of early exits (collaborate.h) and the question that it waits with, if any. */
typedef struct {
  uint64_t id;
  lp_context *context;
  double used_ms; /* when a message last came for it */
  bool lost;      /* its content was given up; the device is told when it asks */
  struct {
    bool waits;
    uint32_t peer;
    uint64_t number;
    lp_context_time time;
    int64_t end, count;
    int32_t *draft; /* [count] */
    double since_ms, asked_ms;
    uint64_t turn;  /* in the passes, once all rows are there; 0: none yet */
    double busy_ms; /* passes so far took */
  } question;
  uint64_t answered; /* number of the question answered last, 0 none */
  lp_answer answer;
  bool times;                /* are wanted: */
  double asked_ms, ended_ms; /* of the answer */
} worker_context;

/* A connection, and how far its handshake is. */
typedef struct {
  uint32_t id;
  bool hello;   /* it speaks this protocol and holds this bundle */
  bool greeted; /* and holds the key: what it sends is dealt with */
  bool refused; /* it was told so, and is being disconnected */
  lp_nonces nonces;
} worker_peer;

typedef struct {
  const lp_bundle *bundle;
  const lp_worker_options *options;
  lp_pool *pool;
  lp_wire *link;
  LP_VEC(worker_session *) sessions;
  LP_VEC(worker_context *) contexts;
  lp_halves halves;
  const char *whole;         /* why the bundle does not come apart at its exits; NULL: it does */
  LP_VEC(worker_peer) peers; /* that have sent something */
  lp_security security;
  lp_endpoint self; /* what this side of a handshake holds */
  lp_diag *diag;
  lp_buf scratch, rows;
  lp_sample *sample; /* [sample_count] */
  size_t sample_count;
  struct worker_pass *pass;     /* the memory of passes; NULL: there was none yet */
  lp_batch *batch;              /* NULL: the code runs one session at a time, when its message comes */
  uint64_t turn;                /* given out last */
  int32_t *code;                /* [programs] the first that is the same code */
  size_t told_open, told_bytes; /* of what is held, last */
} lp_worker;

/* Deals with a message, and with the end of a peer (worker.c). */
void worker_handle(lp_worker *worker, const lp_inbound *in);
void worker_forget(lp_worker *worker, uint32_t peer);

worker_session *worker_session_find(const lp_worker *worker, uint32_t peer, uint64_t id);
LP_MUST_USE lp_status worker_session_open(lp_worker *worker, uint32_t peer, const Lp__Wire__Open *open, lp_diag *diag);
/* May one more session or context be opened? (budget.c) */
bool worker_is_full(const lp_worker *worker);
LP_MUST_USE lp_status worker_admit(const lp_worker *worker, lp_diag *diag);
void worker_session_close(lp_worker *worker, worker_session *session);
void worker_session_drop(worker_session *session); /* gives up its KV cache */
/* Gives up the KV caches of sessions unused for longer than the idle time. */
void worker_session_drop_idle(lp_worker *worker);
/* Gives up what was unused for longest, but not `keep`, until `wanted` bytes for it fit the budget (budget.c). */
LP_MUST_USE lp_status worker_make_room(lp_worker *worker, size_t wanted, const void *keep, lp_diag *diag);
size_t worker_bytes_held(const lp_worker *worker, const void *but);
/* Tells options->on_held when what is held has changed (budget.c). */
void worker_tell_held(lp_worker *worker);
/* Sends a message to a peer; false when the peer has gone, which is no failure of the worker's. */
void worker_refuse(lp_worker *worker, uint32_t peer, uint64_t session, const char *text);

/* Handshakes (peer.c). True: the message is not one of them, and its peer may be dealt with. */
bool worker_peer_admits(lp_worker *worker, const lp_inbound *in);
/* What came from the peer is no message: it is refused. */
void worker_peer_reject(lp_worker *worker, uint32_t peer, const char *why);
void worker_peer_forget(lp_worker *worker, uint32_t peer);

/* Early exits (context.c): true when the message is of that kind and was dealt with. */
bool worker_context_handle(lp_worker *worker, const lp_inbound *in);
void worker_context_forget_peer(lp_worker *worker, uint32_t peer);
void worker_context_close(lp_worker *worker, worker_context *context);
/* Gives up what it holds, or the whole of it when it can be kept on disk. */
void worker_context_drop(lp_worker *worker, worker_context *context);
void worker_context_close_all(lp_worker *worker); /* at the end: they are kept on disk, if there is a folder for them */

/* Contexts on disk (store.c). Without --context-dir they do nothing. */
LP_MUST_USE lp_status worker_store_open(const lp_worker *worker, lp_diag *diag);
bool worker_store_save(lp_worker *worker, const worker_context *context); /* false: it is not there */
/* False: there is none, no room for it, or what is there is no such context; the last is noted and discarded. */
bool worker_store_restore(lp_worker *worker, uint64_t id, int64_t most, lp_context_record *record, lp_context **out);
void worker_store_forget(const lp_worker *worker, uint64_t id);

/* Closes contexts that were idle for too long, and reminds devices of rows that questions have waited for. */
void worker_context_tend(lp_worker *worker);
/* ---- requests of sessions (request.c) ---- */

/* May the program's runs wait for a pass? They take all payloads before they compute. */
bool worker_request_fits(const lp_worker *worker, int32_t program);
void worker_request_begin(lp_worker *worker, worker_session *session, const int64_t *sym);
LP_MUST_USE lp_status worker_request_take(lp_worker *worker, worker_session *session, const lp_step *step,
                                          const lp_inbound *in, lp_diag *diag);
/* Goes to the next step that takes a payload from `from` on; behind the last the request waits for its turn. */
void worker_request_advance(lp_worker *worker, worker_session *session, int32_t from);
void worker_request_drop(worker_session *session);
/* The next tokens to run, LP_PASS_ROWS at most where the run can be divided: their symbols. */
void worker_request_part(const lp_worker *worker, const worker_session *session, int64_t sym[]);
/* What a step takes for the tokens of `sym`; `at` counts the payload's bytes over the steps before. */
LP_MUST_USE lp_status worker_request_fill(const lp_worker *worker, const worker_session *session, const lp_step *step,
                                          const int64_t *sym, size_t *at, lp_span to, lp_diag *diag);
bool worker_request_ends(const worker_session *session, const int64_t *sym); /* with these tokens */
/* They were run. */
void worker_request_passed(lp_worker *worker, worker_session *session, const int64_t *sym, double ms);
/* Is what a step gives sent, or are tokens drawn from it here? Neither: nobody wants it. */
bool worker_session_sends(const worker_session *session, const lp_step *step);
bool worker_session_draws(const lp_worker *worker, const worker_session *session, const lp_step *step);
LP_MUST_USE lp_status worker_session_emit(lp_worker *worker, worker_session *session, int32_t index,
                                          const lp_span *made, lp_diag *diag);
LP_MUST_USE lp_status worker_session_draw(lp_worker *worker, worker_session *session, int32_t index, const int64_t *sym,
                                          const lp_logits *logits, lp_diag *diag);
void worker_session_fail(lp_worker *worker, worker_session *session, const lp_diag *diag);
bool worker_step_takes_payload(const lp_step *step); /* from the device */

/* ---- passes (pass.c) ---- */

/* Is anything to be computed? */
bool worker_pass_is_due(const lp_worker *worker);
/* One pass over those whose turn it is: in the order in which they came, a long one again behind the others after each part. */
void worker_pass_run(lp_worker *worker);
void worker_pass_free(lp_worker *worker);

/* Of a context whose question waits and all rows of which are there (context.c). */
lp_question worker_context_question(const worker_context *context);
void worker_context_finish(lp_worker *worker, worker_context *context);
void worker_context_fail(lp_worker *worker, worker_context *context, const lp_diag *diag);

/* Takes a Step message and runs on until the next payload is needed. Replies are sent on the way. */
LP_MUST_USE lp_status worker_session_step(lp_worker *worker, worker_session *session, const lp_inbound *in,
                                          lp_diag *diag);

#endif
