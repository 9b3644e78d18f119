/* A walk: one run of a program over its steps, on both sides. */
#pragma once

#include "base/abi.h"
#include "base/span.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/sampler.h"
#include "runtime/session/session.h"

/* What the place that draws shall draw further: in runs of `program`, each of one token of each sequence. */
typedef struct {
  int32_t program;
  int64_t most;         /* draws, that of the walk included */
  bool ends;            /* it may end after the tokens that end a text */
  const int32_t *given; /* [given_count] the first draws of the b sequences, one after the other */
  size_t given_count;
} lp_walk_stream;

typedef struct {
  int32_t program;
  int64_t sym[LP_MAX_SYMBOLS];
  const lp_span *input;         /* [inputs] the content of each input of the manifest */
  lp_span *output;              /* [outputs] filled with memory that the caller frees; NULL: the walk samples instead */
  lp_sample *sample;            /* [b] filled when the program has logits */
  lp_place sampled_on;          /* set with `sample` */
  const lp_walk_stream *stream; /* NULL: the walk draws once. A walk that continues a stream takes its next draw. */
  lp_buf *logits;               /* receives the logits of sequence 0 when they are in this process; may be NULL */
} lp_walk;

/* Times the parts of a walk: a step has as many parts as it marks, or one. */
typedef struct lp_stopwatch {
  lp_clock clock; /* first: the code is handed its address */
  double *mark;   /* [most] when the parts of the running step began */
  int32_t marks, most;
  double *part_ms; /* [parts of the program] */
  size_t parts;    /* filled so far */
} lp_stopwatch;

/* Runs the program: in this process, or with the worker when the session is connected. */
LP_MUST_USE lp_status lp_session_walk(lp_session *session, lp_walk *walk, lp_diag *diag);
/* The place that can draw further after walks over `program`, in runs of `decode`; LP_SIDE_DEVICE: none can, or one
 * does. */
lp_place lp_session_streams_at(const lp_session *session, int32_t program, int32_t decode);
/* Ends the stream that is under way, if there is one: disconnects, unless it has `ended` by tokens that end a text. */
void lp_session_end_stream(lp_session *session, bool ended);
/* Runs the device's steps and exchanges tensors with the worker (session_remote.c). */
LP_MUST_USE lp_status lp_session_walk_remote(lp_session *session, lp_walk *walk, lp_diag *diag);

/* ---- steps that both kinds of walk have in common (walk_steps.c) ------------------------------------------------- */

/* Executes an input step. */
LP_MUST_USE lp_status lp_walk_fill(lp_walk *walk, lp_executor *executor, const lp_step *step, lp_diag *diag);
/* Executes an output step: copies the output, or samples from it. */
LP_MUST_USE lp_status lp_walk_output(lp_session *session, lp_walk *walk, lp_executor *executor, const lp_step *step,
                                     lp_diag *diag);
/* Tells whether the walk needs the result of an output step. */
bool lp_walk_wants(const lp_session *session, const lp_walk *walk, const lp_step *step);
/* Records a run step of this process in the trace. */
void lp_walk_trace(const lp_session *session, const lp_walk *walk, const lp_step *step, double begin_ms, double end_ms);
