/* A session: a device's generation state, its executors and its connection to a worker. */
#ifndef LP_SESSION_H
#define LP_SESSION_H

#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"

/* Times one walk. A step is as many parts as it marks, or one. */
typedef struct lp_stopwatch {
  lp_clock clock; /* first: the code is handed its address */
  double *mark;   /* [most] when parts of the running step began */
  int32_t marks, most;
  double *part_ms; /* [parts of the program] */
  size_t parts;    /* so far */
} lp_stopwatch;

struct lp_session {
  const lp_bundle *bundle;
  lp_generate_options options;
  lp_pool *pool;
  lp_executor *executor[LP_SIDE_COUNT]; /* the cloud's only when it runs in this process */
  bool remote;                          /* the cloud's side is a worker */
  lp_wire *link;                        /* NULL: one process, or not connected */
  uint64_t id;
  int32_t logits; /* the output that tokens are sampled from, or -1 */
  bool lost;      /* the connection broke in the last walk: what the worker knew of the session is gone */
  lp_endpoint endpoint;
  struct lp_link_emulator *emulator;
  struct lp_security *security;
  uint64_t bytes_up, bytes_down; /* over connections that are closed */
  uint64_t told_up, told_down;   /* of all connections: in the totals of earlier generations */
  uint64_t waits;                /* times the device waited for the cloud */
  double wait_ms, cloud_ms;      /* for how long, and of that: the cloud computed */
  lp_buf scratch, rows;
  lp_stopwatch *watch; /* of a walk in this process; NULL: nobody times */
};

/* One run of a program. `input[i]` is what the manifest's input i holds (`input_size` bytes). */
typedef struct {
  int32_t program;
  int64_t sym[LP_MAX_SYMBOLS];
  const lp_span *input; /* [inputs] */
  lp_span *output;      /* [outputs], each allocated by the run; NULL: sample instead */
  lp_sample *sample;    /* [b]: filled when the program has logits */
  lp_side sampled_on;
  lp_buf *logits; /* NULL or: where sequence 0's logits go when they are in this process */
} lp_walk;

LP_MUST_USE lp_status lp_session_walk(lp_session *session, lp_walk *walk, lp_diag *diag);
/* An input step and an output step of a side in this process. */
LP_MUST_USE lp_status lp_walk_fill(lp_walk *walk, lp_executor *executor, const lp_step *step, lp_diag *diag);
LP_MUST_USE lp_status lp_walk_output(lp_session *session, lp_walk *walk, lp_executor *executor, const lp_step *step,
                                     lp_diag *diag);
/* What a side in this process ran. */
void lp_walk_trace(const lp_session *session, const lp_walk *walk, const lp_step *step, double begin_ms, double end_ms);
bool lp_walk_wants(const lp_session *session, const lp_walk *walk, const lp_step *step);

/* With a worker (session/session_remote.c). */
/* Once; does nothing when the cloud's side is here. */
LP_MUST_USE lp_status lp_session_connect(lp_session *session, lp_diag *diag);
LP_MUST_USE lp_status lp_session_walk_remote(lp_session *session, lp_walk *walk, lp_diag *diag);
void lp_session_disconnect(lp_session *session);
double lp_session_timeout_ms(const lp_session *session); /* the longest wait for the worker */

/* The plan for prompts of `length` tokens that are to be gone on with for `most`: the one that the options name, or else the one
 * in whose regions the request and the link as measured lie. Says it in `out`. The session is connected. (session/choose_plan.c) */
LP_MUST_USE lp_status lp_session_choose_plan(lp_session *session, int64_t length, int64_t most, lp_generation *out,
                                             lp_diag *diag);

#endif
