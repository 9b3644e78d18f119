/* The table of the operators that a GPU runs. */
#include "backend/gpu/rules.h"

static const gpu_rule *const rules[] = {&gpu_rule_linear,
                                        &gpu_rule_matmul,
                                        &gpu_rule_norm,
                                        &gpu_rule_add_norm,
                                        &gpu_rule_softmax,
                                        &gpu_rule_reduce,
                                        &gpu_rule_argmax,
                                        &gpu_rule_attention,
                                        &gpu_rule_kv_append,
                                        &gpu_rule_rotary,
                                        &gpu_rule_map,
                                        &gpu_rule_fused,
                                        &gpu_rule_gather,
                                        &gpu_rule_gather_elements,
                                        &gpu_rule_concat,
                                        &gpu_rule_slice,
                                        &gpu_rule_transpose,
                                        &gpu_rule_reshape,
                                        &gpu_rule_expand,
                                        &gpu_rule_pad,
                                        &gpu_rule_windows,
                                        &gpu_rule_iota,
                                        &gpu_rule_dims,
                                        &gpu_rule_fill,
                                        &gpu_rule_experts,
                                        &gpu_rule_topk,
                                        &gpu_rule_linear_attention,
                                        &gpu_rule_carry_columns};

const gpu_rule *gpu_rule_find(lp_kind kind) {
  for (size_t i = 0; i < LP_COUNT(rules); i++)
    if (rules[i]->kind == kind) return rules[i];
  return NULL;
}

bool gpu_op_runs(const lp_op *op, char why[64]) {
  const gpu_rule *rule = gpu_rule_find(op->kind);
  if (!rule) return snprintf(why, 64, "there is no kernel for it"), false;
  return !rule->runs || rule->runs(op, why);
}
