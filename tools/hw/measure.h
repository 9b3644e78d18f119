/* Measures the operators of a decoder, run as `llmpart run` runs them, on this machine or another. */
#pragma once

#include "passes/decoder.h"
#include "passes/passes.h"
#include "runtime/runtime.h"

/* The machine that is measured, and the code that it runs. */
typedef struct {
  const lp_machine *machine;
  const char *backend, *march; /* as in lp_emit_options */
  /* The type in which weights are stored and multiplied, as --activations=auto does; NULL: f32. Samples are of products
   * only, because the type changes no other operator. */
  const char *dtype;
  int64_t cut;               /* the decoder's layers from this one on are the cloud's, and the code does not report when
                                * operators begin; 0: all are the device's */
  int32_t threads;           /* of this machine */
  const char *over;          /* HOST:PORT of a worker with --profile on that machine; NULL: this machine */
  lp_link_security security; /* of the connection to it */
} hw_subject;

/* A decoder that is compiled for the machine, and loaded here or by the worker. Release with hw_bench_close, also after
 * a failure. */
typedef struct {
  lp_module *module;
  char *folder;
  lp_bundle *bundle;
  lp_session *session;
  lp_remote_profiler *profiler; /* NULL: `session` runs here */
  const lp_machine *machine;
  const char *dtype;
  int64_t vocab;
} hw_bench;

/* Compiles the decoder into a temporary folder, with code that reports when each operator begins. */
LP_MUST_USE lp_status hw_bench_open(const lp_decoder_shape *shape, const hw_subject *subject, hw_bench *out,
                                    lp_diag *diag);
void hw_bench_close(hw_bench *bench);
/* Writes the decoder's bundle to `path`, for a worker with --profile. The same shape and subject give the same
 * bundle. */
LP_MUST_USE lp_status hw_bench_write(const lp_decoder_shape *shape, const hw_subject *subject, const char *path,
                                     lp_diag *diag);

/* Measures a pass over `count` tokens of each of `batch` sequences after `past`; through a worker of one. Appends one
 * sample for each different operator, the mean over the middle repetitions and over the layers that have it, and one
 * for the rest of the pass. An operator that `out` holds already keeps the lesser time, because other work on the
 * machine can only slow it down. */
LP_MUST_USE lp_status hw_bench_measure(const hw_bench *bench, int64_t batch, int64_t past, int64_t count,
                                       int64_t repetitions, lp_hw_samples *out, lp_diag *diag);

/* Measures messages between two processes of this machine: LP_HW_MESSAGE and LP_HW_MESSAGE_BANDWIDTH of `machine`. The
 * second process is a worker of this program (messages.c). */
LP_MUST_USE lp_status hw_measure_messages(const hw_subject *subject, lp_machine *machine, lp_diag *diag);
