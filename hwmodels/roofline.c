/* The roofline predictor: P1, Eq. 8, with a launch floor. */
#include "hwmodels/hwmodels.h"

#include <math.h>

/* How far measured operators lie from a roofline at the right utilisation: SPEC-planner reports 7-12 % on linear and up
 * to 189 % on attention for one utilisation curve; the interval is of that order and says so rather than pretend. */
static const double low_factor = 0.7, high_factor = 1.8;

static lp_prediction predict(const lp_machine *machine, const lp_op_facts *facts) {
  const double *figure = machine->figure;
  double rate = lp_hw_peak(machine, facts->dtype) * figure[LP_HW_COMPUTE_UTILISATION];
  double bandwidth = figure[LP_HW_BANDWIDTH] * figure[LP_HW_MEMORY_UTILISATION];
  double compute_ms = facts->flops / rate * 1e3, memory_ms = facts->bytes / bandwidth * 1e3;
  double busy_ms = compute_ms > memory_ms ? compute_ms : memory_ms;
  double launch_ms = figure[LP_HW_LAUNCH];
  return (lp_prediction){.time_ms = busy_ms + launch_ms,
                         .low_ms = busy_ms * low_factor + launch_ms,
                         .high_ms = busy_ms * high_factor + launch_ms,
                         .distance = INFINITY};
}

const lp_hw_predictor lp_hw_roofline = {.name = "roofline", .predict = predict};
