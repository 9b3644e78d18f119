/* Measures the operators of a decoder on this machine, run as `llmpart run` runs them. */
#ifndef LP_TOOLS_HW_MEASURE_H
#define LP_TOOLS_HW_MEASURE_H

#include "passes/decoder.h"
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

/* Compiles the decoder into a temporary folder, with code that reports when each operator begins. */
LP_MUST_USE lp_status hw_bench_open(const lp_decoder_shape *shape, const lp_machine *host, int32_t threads,
                                    hw_bench *out, lp_diag *diag);
void hw_bench_close(hw_bench *bench);

/* Measures a pass over `count` tokens after `past`. Appends one sample for each different operator, the mean over the
 * middle repetitions and over the layers that have it, and one for the rest of the pass. An operator that `out` holds
 * already keeps the lesser time, because other work on the machine can only slow it down. */
LP_MUST_USE lp_status hw_bench_measure(const hw_bench *bench, int64_t past, int64_t count, int64_t repetitions,
                                       lp_hw_samples *out, lp_diag *diag);

#endif
