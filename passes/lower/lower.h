/* Declarations that the files of lowering share: one rule for each name in the `lower` column of ops.def. */
#pragma once

#include "base/poly.h"
#include "passes/build.h"
#include "passes/passes.h"

typedef struct {
  lp_build b;          /* inserts before `op` */
  lp_op *op;           /* the onnx.* operator to replace */
  lp_value *result[4]; /* replaces its results; a rule fills those that have uses */
} lp_lowering;

typedef lp_status lp_lower_rule(lp_lowering *l);

/* Each rule implements a name of that column, in lower_map.c, lower_move.c, lower_model.c, ... */
lp_lower_rule lp_lower_map, lp_lower_variadic_map, lp_lower_clip, lp_lower_cast_like, lp_lower_identity;
lp_lower_rule lp_lower_matmul, lp_lower_gemm, lp_lower_softmax, lp_lower_norm, lp_lower_attention, lp_lower_rotary,
    lp_lower_linear_attention, lp_lower_experts;
lp_lower_rule lp_lower_conv, lp_lower_hardmax, lp_lower_dropout;
lp_lower_rule lp_lower_gather, lp_lower_gather_elements, lp_lower_gather_nd, lp_lower_slice, lp_lower_concat,
    lp_lower_split;
lp_lower_rule lp_lower_transpose, lp_lower_reshape, lp_lower_expand, lp_lower_tile, lp_lower_pad, lp_lower_dims;
lp_lower_rule lp_lower_constant, lp_lower_fill, lp_lower_range, lp_lower_reduce, lp_lower_argmax, lp_lower_cumsum,
    lp_lower_topk;
lp_lower_rule lp_lower_quantize, lp_lower_dequantize;
lp_lower_rule lp_lower_trilu, lp_lower_decomposed, lp_lower_scatter, lp_lower_nonzero;

/* Reports `'Op' WHAT` at the operator's node. */
LP_MUST_USE lp_status lp_lower_refuse(const lp_lowering *l, const char *what);
/* Reports `'Op' WHAT` for an operand that must be known before the program runs, and notes how to bind it. */
LP_MUST_USE lp_status lp_lower_refuse_data(const lp_lowering *l, int32_t index, const char *what);
/* The value of the axis attribute, made non-negative; `otherwise` when it is absent. */
int64_t lp_lower_axis(const lp_lowering *l, const char *name, int64_t otherwise, int32_t rank);
/* Moves `axis` to the end, or back; returns x when the axis is there already. */
lp_value *lp_lower_axis_last(lp_lowering *l, lp_value *x, int32_t axis, bool back);
/* Returns x when it has the type already. */
lp_value *lp_lower_cast(lp_lowering *l, lp_value *x, lp_dtype dtype);
/* Makes a size a scalar of i64. */
lp_value *lp_lower_size(lp_lowering *l, const lp_poly *size);
/* op.slice of one axis. */
lp_value *lp_lower_slice_axis(lp_lowering *l, lp_value *x, int32_t axis, const lp_poly *start, const lp_poly *size);
