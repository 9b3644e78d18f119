/* The rules of GPUs: one for each kind of operator, in the file of gpu/rules/ that makes its launches. rules.c holds
 * the table. */
#pragma once

#include "backend/gpu/builder.h"

typedef struct {
  lp_kind kind;
  bool (*runs)(const lp_op *op, char why[64]); /* NULL: always */
  void (*lower)(gpu_builder *b);
  /* Tells whether `lower` makes one call of these independent operators of the kind. NULL: never. */
  bool (*joins)(const gpu_group *group);
} gpu_rule;

const gpu_rule *gpu_rule_find(lp_kind kind);
bool gpu_op_runs(const lp_op *op, char why[64]);
extern const gpu_rule gpu_rule_linear, gpu_rule_matmul, gpu_rule_norm, gpu_rule_add_norm, gpu_rule_softmax,
    gpu_rule_reduce, gpu_rule_argmax, gpu_rule_attention, gpu_rule_kv_append, gpu_rule_rotary, gpu_rule_map,
    gpu_rule_fused, gpu_rule_gather, gpu_rule_gather_elements, gpu_rule_concat, gpu_rule_slice, gpu_rule_transpose,
    gpu_rule_reshape, gpu_rule_expand, gpu_rule_pad, gpu_rule_windows, gpu_rule_iota, gpu_rule_dims, gpu_rule_fill,
    gpu_rule_experts, gpu_rule_topk, gpu_rule_linear_attention, gpu_rule_carry_columns;
