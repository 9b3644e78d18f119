/* The table of the operators that the CPU runs. */
#include "backend/cpu/rules.h"

#include "backend/values.h"

static const cpu_rule *const rules[] = {
    &cpu_rule_linear,
    &cpu_rule_experts,
    &cpu_rule_matmul,
    &cpu_rule_quantize,
    &cpu_rule_dequantize,
    &cpu_rule_attention,
    &cpu_rule_linear_attention,
    &cpu_rule_carry_columns,
    &cpu_rule_kv_append,
    &cpu_rule_rotary,
    &cpu_rule_norm,
    &cpu_rule_add_norm,
    &cpu_rule_softmax,
    &cpu_rule_reduce,
    &cpu_rule_argmax,
    &cpu_rule_topk,
    &cpu_rule_cumsum,
    &cpu_rule_gather,
    &cpu_rule_gather_elements,
    &cpu_rule_scatter_elements,
    &cpu_rule_scatter_nd,
    &cpu_rule_concat,
    &cpu_rule_slice,
    &cpu_rule_transpose,
    &cpu_rule_reshape,
    &cpu_rule_expand,
    &cpu_rule_pad,
    &cpu_rule_iota,
    &cpu_rule_dims,
    &cpu_rule_fill,
    &cpu_rule_map,
    &cpu_rule_fused,
    &cpu_rule_windows,
};

const cpu_rule *cpu_rule_find(lp_kind kind) {
  for (size_t i = 0; i < LP_COUNT(rules); i++)
    if (rules[i]->kind == kind) return rules[i];
  return NULL;
}

/* Checks that hold for every rule: sizes are known, elements are whole bytes, and only some rules read a cache. */
static bool values_run(const lp_op *op, const cpu_rule *rule, char why[64]) {
  for (int32_t i = 0; i < op->in_count + op->out_count; i++) {
    const lp_value *value = i < op->in_count ? lp_op_in(op, i) : op->out[i - op->in_count];
    if (!value) continue;
    if (value->type.rank < 0) return snprintf(why, 64, "a value of unknown rank"), false;
    for (int32_t k = 0; k < value->type.rank; k++)
      if (!value->type.dim[k]) return snprintf(why, 64, "a size that is not known"), false;
    if (lp_dtype_bits(value->type.dtype) < 8 && !rule->reads_packed)
      return snprintf(why, 64, "elements of type %s", lp_dtype_name(value->type.dtype)), false;
    if (i < op->in_count && lp_value_cache(value) && !rule->reads_cache)
      return snprintf(why, 64, "it reads a KV cache as a tensor"), false;
  }
  return true;
}

bool cpu_op_runs(const lp_op *op, char why[64]) {
  const cpu_rule *rule = cpu_rule_find(op->kind);
  if (!rule) return snprintf(why, 64, "no code for this operator"), false;
  return values_run(op, rule, why) && (!rule->runs || rule->runs(op, why));
}
