/* runtime/session: the device's end of a bundle. A session owns the executors of the sides in this process, or the
 * connection to the worker that has the cloud's side, and generates text, runs a program on given data, or measures
 * itself. It stands above exits/, exec/, link/ and bundle/; nothing below knows it, and worker/ stands beside it. The
 * struct is private to this room and its tests; runtime.h declares what others may do with a session. */
#ifndef LP_SESSION_H
#define LP_SESSION_H

#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/pool.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"

struct lp_session {
  const lp_bundle *bundle; /* borrowed */
  lp_generate_options options;
  lp_pool *pool;
  lp_executor *executor[LP_PLACES_MAX]; /* NULL for a side that is not in this process */
  bool remote;                          /* a worker has the cloud's side */
  lp_wire *wire;                        /* NULL: one process, or not connected */
  uint64_t id;
  int32_t logits; /* the output that tokens are sampled from; -1: none */
  bool lost;      /* the connection broke in the last walk, and with it the worker's state of this session */
  lp_endpoint endpoint;
  struct lp_link_emulator *emulator;
  struct lp_security *security;
  uint64_t bytes_up, bytes_down; /* over connections that are closed */
  uint64_t told_up, told_down;   /* bytes over all connections that earlier generations have reported */
  uint64_t waits;                /* times that the device waited for the cloud */
  double wait_ms;                /* the sum of these waits */
  double cloud_ms;               /* the part of wait_ms in which the cloud computed */
  lp_buf scratch, rows;
  struct lp_stopwatch *watch; /* times the walks in this process (walk.h); NULL: nothing is timed */
};

/* Connects to the worker. Does nothing when the session is connected or the cloud's side is in this process. */
LP_MUST_USE lp_status lp_session_connect(lp_session *session, lp_diag *diag);
/* Closes the connection, if there is one. */
void lp_session_disconnect(lp_session *session);
double lp_session_timeout_ms(const lp_session *session); /* the longest wait for one answer of the worker */

/* Chooses the plan for prompts of `length` tokens with at most `most` to generate, and sets `plan`, `rtt_ms` and
 * `up_bps` of `out`: the plan that the options fix, or else the plan with a region that contains the request and the
 * measured link. A remote session must be connected. */
LP_MUST_USE lp_status lp_session_choose_plan(lp_session *session, int64_t length, int64_t most, lp_generation *out,
                                             lp_diag *diag);
/* The number of tokens in each part of a long prompt. A generation can be stopped after each part. Prefill runs the
 * first part, decode the others. INT64_MAX: the prompt runs in one part, because decode runs some layers on another
 * side than prefill, or because the model has an encoder. */
int64_t lp_session_prompt_part(const lp_session *session, int32_t prefill, int32_t decode);

#endif
