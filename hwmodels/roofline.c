/* The roofline predictor: P1, Eq. 8, with a launch floor. The peak rate of each element type. */
#include "hwmodels/hwmodels_internal.h"

#include <math.h>

/* The error of a roofline at the right utilisation. With one curve of utilisation, errors of 7 to 12 % were found for
 * linear operators and of up to 189 % for attention; the interval is of that order. */
static const double low_factor = 0.7, high_factor = 1.8;

double lp_hw_peak(const lp_machine *machine, lp_dtype dtype) {
  const double *figure = machine->figure;
  double f32 = figure[LP_HW_PEAK_F32];
  double f16 = figure[LP_HW_PEAK_F16] > 0 ? figure[LP_HW_PEAK_F16] : f32;
  double int8 = figure[LP_HW_PEAK_INT8] > 0 ? figure[LP_HW_PEAK_INT8] : f16;
  switch (dtype) {
  case LP_F16:
    return f16;
  case LP_BF16:
    return figure[LP_HW_PEAK_BF16] > 0 ? figure[LP_HW_PEAK_BF16] : f32;
  case LP_I8:
  case LP_U8:
  case LP_F8E4M3FN:
  case LP_F8E4M3FNUZ:
  case LP_F8E5M2:
  case LP_F8E5M2FNUZ:
  case LP_F8E8M0:
    return int8;
  case LP_I4:
  case LP_U4:
  case LP_I2:
  case LP_U2:
  case LP_F4E2M1:
    return figure[LP_HW_PEAK_INT4] > 0 ? figure[LP_HW_PEAK_INT4] : int8;
  case LP_F32:
  case LP_F64:
  case LP_I16:
  case LP_I32:
  case LP_I64:
  case LP_U16:
  case LP_U32:
  case LP_U64:
  case LP_BOOL:
  case LP_DTYPE_COUNT:
    break;
  }
  return f32;
}

static bool knows_cache(const lp_machine *machine) {
  return machine->figure[LP_HW_CACHE] > 0 && machine->figure[LP_HW_CACHE_BANDWIDTH] > 0;
}

/* Weights and KV caches are read once a pass; other operands were written just before by the operators that precede. */
static bool reads_once_a_pass(lp_kind kind) {
  lp_hw_op op = lp_hw_op_of(kind);
  return op == LP_HW_LINEAR || op == LP_HW_ATTENTION || op == LP_HW_EMBEDDING || op == LP_HW_ANY;
}

/* The share of an operator's bytes that the cache holds. A pass reads its weights in the same order each time, so once
 * they exceed the cache, each byte evicts one that is needed sooner. */
static double cached_share(const lp_machine *machine, const lp_op_facts *facts) {
  bool once = reads_once_a_pass(facts->kind);
  if (!knows_cache(machine) || (once && facts->pass_bytes <= 0)) return 0;
  double share = 2 - (once ? facts->pass_bytes : facts->bytes) / machine->figure[LP_HW_CACHE];
  return share < 0 ? 0 : share > 1 ? 1 : share;
}

double lp_hw_stream_ms(const lp_machine *machine, const lp_op_facts *facts) {
  if (facts->pass_bytes <= 0 || !reads_once_a_pass(facts->kind)) return 0;
  return facts->bytes * (1 - cached_share(machine, facts)) / machine->figure[LP_HW_BANDWIDTH] * 1e3;
}

static double memory_ms_of(const lp_machine *machine, const lp_op_facts *facts) {
  const double *figure = machine->figure;
  double share = cached_share(machine, facts), used = figure[LP_HW_MEMORY_UTILISATION];
  double ms = facts->bytes * (1 - share) / (figure[LP_HW_BANDWIDTH] * used) * 1e3;
  if (share > 0) ms += facts->bytes * share / (figure[LP_HW_CACHE_BANDWIDTH] * used) * 1e3;
  return ms;
}

static lp_prediction predict(const lp_machine *machine, const lp_op_facts *facts) {
  const double *figure = machine->figure;
  double rate = lp_hw_peak(machine, facts->dtype) * figure[LP_HW_COMPUTE_UTILISATION];
  double compute_ms = facts->flops / rate * 1e3, memory_ms = memory_ms_of(machine, facts);
  double busy_ms = compute_ms > memory_ms ? compute_ms : memory_ms;
  double launch_ms = figure[LP_HW_LAUNCH];
  return (lp_prediction){.time_ms = busy_ms + launch_ms,
                         .low_ms = busy_ms * low_factor + launch_ms,
                         .high_ms = busy_ms * high_factor + launch_ms,
                         .distance = INFINITY};
}

const lp_hw_predictor lp_hw_roofline = {.name = "roofline", .predict = predict, .asks_pass_bytes = knows_cache};
