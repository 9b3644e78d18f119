/* The predictor of machines with measured operators. */
#include "hwmodels/hwmodels_internal.h"

#include <math.h>

static bool is_decode(const lp_op_facts *facts) {
  return facts->kind == LP_OP_ATTENTION && facts->q_len <= 1;
}

/* Rates how well a family that was measured in another dtype represents `dtype`: the same number of bits first, then
 * the nearest; 0 is best. */
static int dtype_penalty(lp_dtype family, lp_dtype dtype) {
  if (family == dtype) return 0;
  int difference = lp_dtype_bits(family) - lp_dtype_bits(dtype);
  return 1 + (difference < 0 ? -difference : difference);
}

static const lp_fit_family *find(const struct lp_hw_fit *fit, const lp_op_facts *facts) {
  lp_hw_op op = lp_hw_op_of(facts->kind);
  const lp_fit_family *best = NULL;
  LP_FOR_EACH(const lp_fit_family, family, fit->family, fit->count) {
    if (family->op == LP_HW_ANY) return family;
    if (op == LP_HW_ANY || family->op != op || family->decode != is_decode(facts)) continue;
    if (!best || dtype_penalty(family->dtype, facts->dtype) < dtype_penalty(best->dtype, facts->dtype)) best = family;
  }
  return best;
}

/* The family that gives the rate of data moves that were not measured: the first measured one of `order`. */
static const lp_fit_family *find_mover(const struct lp_hw_fit *fit) {
  static const lp_hw_op order[] = {LP_HW_COPY, LP_HW_ADD, LP_HW_NORM, LP_HW_ROTARY, LP_HW_GATED_ACT, LP_HW_EMBEDDING};
  for (size_t i = 0; i < LP_COUNT(order); i++)
    for (int32_t f = 0; f < fit->count; f++)
      if (fit->family[f].op == order[i]) return &fit->family[f];
  return NULL;
}

static bool is_pointwise(const lp_op_facts *facts) {
  return facts->kind != LP_OP_LINEAR && facts->kind != LP_OP_ATTENTION && facts->kind != LP_OP_MATMUL;
}

/* Scales the FLOPs of another dtype by the ratio of the peaks; the bytes are the operator's own. */
static double dtype_ratio(const lp_machine *machine, const lp_fit_family *family, lp_dtype dtype) {
  return family->op == LP_HW_ANY ? 1 : lp_hw_peak(machine, dtype) / lp_hw_peak(machine, family->dtype);
}

const char *lp_hw_measured_source(const lp_machine *machine) {
  if (machine->predictor != &lp_hw_fitted) return NULL;
  return machine->fit->source ? machine->fit->source : "";
}

const char *lp_hw_measured_kernels(const lp_machine *machine) {
  return machine->predictor == &lp_hw_fitted ? machine->fit->kernels : NULL;
}

bool lp_hw_has_measured(const lp_machine *machine, lp_hw_op op) {
  for (int32_t i = 0; machine->predictor == &lp_hw_fitted && i < machine->fit->count; i++)
    if (machine->fit->family[i].op == op) return true;
  return false;
}

static bool asks_pass_bytes(const lp_machine *machine) {
  if (lp_hw_roofline.asks_pass_bytes(machine)) return true; /* what the cache does not hold takes its time */
  for (int32_t i = 0; i < machine->fit->count; i++)
    if (machine->fit->family[i].pass.count > 0) return true;
  return false;
}

static lp_prediction predict(const lp_machine *machine, const lp_op_facts *facts) {
  const lp_fit_family *found = find(machine->fit, facts);
  if (!found && is_pointwise(facts)) found = find_mover(machine->fit);
  if (!found || found->count == 0 || (facts->flops <= 0 && facts->bytes <= 0))
    return lp_hw_roofline.predict(machine, facts);
  lp_fit_family family = *found;
  family.flops_per_us *= dtype_ratio(machine, found, facts->dtype);
  lp_fit_blend blend = lp_fit_combine(&family, facts, -1);
  double log_us = lp_fit_base(&family, facts) + blend.y;
  if (family.dtype != facts->dtype && family.op != LP_HW_ANY) {
    blend.spread *= 2;
    blend.distance += 1;
  }
  const double least_ms = lp_hw_stream_ms(machine, facts);
  return (lp_prediction){.time_ms = fmax(exp(log_us) * 1e-3, least_ms),
                         .low_ms = fmax(exp(log_us - blend.spread) * 1e-3, least_ms),
                         .high_ms = fmax(exp(log_us + blend.spread) * 1e-3, least_ms),
                         .distance = blend.distance,
                         .tick_ms = family.tick_us * 1e-3};
}

const lp_hw_predictor lp_hw_fitted = {.name = "fitted", .predict = predict, .asks_pass_bytes = asks_pass_bytes};
