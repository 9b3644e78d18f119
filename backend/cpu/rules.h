/* The rules of the CPU: one for each kind of operator, in the file of cpu/rules/ that emits its code. rules.c is their
 * table. */
#pragma once

#include "backend/cpu/code.h"

typedef struct cpu_emitter cpu_emitter;

struct cpu_rule {
  lp_kind kind;
  /* Tells whether the rule can run this operator. If not, `why` (64 bytes) gets the missing feature. NULL: it always
   * can. */
  bool (*runs)(const lp_op *op, char why[64]);
  /* The form in which the rule reads a constant operand. NULL: CPU_FORM_RAW. */
  cpu_form (*form)(const lp_op *op, int32_t index);
  /* Returns the bytes of scratch as a polynomial, or NULL for none. A NULL pointer: the rule needs no scratch. */
  const lp_poly *(*scratch)(lp_module *module, const lp_op *op);
  void (*emit)(cpu_emitter *e);
  bool reads_packed; /* the rule takes values of types under 8 bits */
  bool reads_cache;  /* the rule reads results of op.kv_append; their heads are `c` rows apart */
  /* Returns the number of rows on which the use of scratch depends (cpu_call.scratch_rows). NULL: scratch is always
   * used. */
  const lp_poly *(*scratch_rows)(lp_module *module, const lp_op *op);
};

const cpu_rule *cpu_rule_find(lp_kind kind); /* NULL: the CPU does not run this kind */
bool cpu_op_runs(const lp_op *op, char why[64]);

extern const cpu_rule cpu_rule_linear, cpu_rule_experts, cpu_rule_matmul, cpu_rule_quantize, cpu_rule_dequantize,
    cpu_rule_attention, cpu_rule_linear_attention, cpu_rule_carry_columns, cpu_rule_kv_append, cpu_rule_rotary,
    cpu_rule_norm, cpu_rule_add_norm, cpu_rule_softmax, cpu_rule_reduce, cpu_rule_argmax, cpu_rule_topk,
    cpu_rule_cumsum, cpu_rule_gather, cpu_rule_gather_elements, cpu_rule_scatter_elements, cpu_rule_scatter_nd,
    cpu_rule_concat, cpu_rule_slice, cpu_rule_transpose, cpu_rule_reshape, cpu_rule_expand, cpu_rule_pad,
    cpu_rule_windows, cpu_rule_iota, cpu_rule_dims, cpu_rule_fill, cpu_rule_map, cpu_rule_fused;
