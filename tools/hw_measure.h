/* Measuring the operators of a decoder on this machine, as `llmpart run` runs them. */
#ifndef LP_TOOLS_HW_MEASURE_H
#define LP_TOOLS_HW_MEASURE_H

#include "passes/passes.h"
#include "runtime/runtime.h"

/* A decoder compiled for this machine and loaded. Release with hw_bench_close, also after a failure. */
typedef struct {
  lp_module *module;
  char *folder;
  lp_bundle *bundle;
  lp_session *session;
  const lp_machine *host;
  int64_t vocab;
} hw_bench;

/* `each`: every operator is a segment of its own, so that hw_bench_measure can time it. Bundles lie in a temporary folder
 * until they are closed. */
LP_MUST_USE lp_status hw_bench_open(const lp_decoder_shape *shape, bool each, const lp_machine *host, int32_t threads,
                                    hw_bench *out, lp_diag *diag);
void hw_bench_close(hw_bench *bench);

/* What is no operator's. */
typedef struct {
  double
      of_least; /* what timing a part by itself adds to it, as a share of the least part of its pass; taken off each */
  double begin_us; /* what beginning a pass takes */
} hw_overhead;

/* One pass over `count` tokens behind `past`: appends a sample per different operator, its median over the repetitions and
 * over the layers that have it, and one of what the pass takes besides. An operator that is in `out` already keeps the
 * lesser time: what else runs on a machine only slows. */
LP_MUST_USE lp_status hw_bench_measure(const hw_bench *bench, int64_t past, int64_t count, int64_t repetitions,
                                       const hw_overhead *overhead, lp_hw_samples *out, lp_diag *diag);

/* From two benches of one shape, with `each` and without, run in turns. */
LP_MUST_USE lp_status hw_bench_overhead(const hw_bench *each, const hw_bench *whole, hw_overhead *out, lp_diag *diag);

#endif
