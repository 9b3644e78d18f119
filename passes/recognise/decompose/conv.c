/* Rewrites CausalConvWithState, a convolution of each channel along the last axis, as a sum of shifted inputs.
 * Kernels have few taps, and a single loop over all of them reads the input once. */
#include "passes/recognise/decompose/decompose.h"

enum { X, WEIGHT, BIAS, PAST, MOST_TAPS = 64 };

/* The columns before the input (or zeros), then the input: [b, channels, k - 1 + s]. */
static lp_value *padded(lp_rewrite *r, int64_t taps) {
  lp_value *x = lp_op_in(r->op, X), *past = lp_op_in(r->op, PAST);
  if (past) return lp_rw_concat(r, 2, (lp_value *[]){past, x}, 2);
  return lp_rw_op(r, LP_ONNX_Pad, x, LP_RW_INTS(r, 0, 0, taps - 1, 0, 0, 0));
}

lp_status lp_rewrite_causal_conv(lp_rewrite *r) {
  const char *activation = lp_op_str(r->op, "activation", "none");
  bool silu = lp_streq(activation, "silu") || lp_streq(activation, "swish");
  int64_t taps;
  lp_value *x = lp_op_in(r->op, X), *bias = lp_op_in(r->op, BIAS), *sum = NULL;
  if (!silu && !lp_streq(activation, "none")) return lp_rw_refuse(r, "has an activation that is not known");
  if (!lp_type_static_dim(lp_op_in(r->op, WEIGHT)->type, 2, &taps) || taps < 1 || taps > MOST_TAPS)
    return lp_rw_refuse(r, "needs a kernel of a constant width up to 64");
  lp_value *columns = padded(r, taps), *size = lp_rw_unsqueeze(r, lp_rw_size(r, x, 2), LP_RW_INTS(r, 0));
  for (int64_t tap = 0; tap < taps; tap++) {
    lp_value *weight = lp_rw_slice(r, lp_op_in(r->op, WEIGHT), 2, LP_RW_INTS(r, tap), LP_RW_INTS(r, tap + 1));
    weight = lp_rw_reshape(r, weight, LP_RW_INTS(r, -1, 1));
    lp_value *from = LP_RW_INTS(r, tap), *part = lp_rw_slice(r, columns, 2, from, lp_rw_op(r, LP_ONNX_Add, size, from));
    part = part && weight ? lp_rw_op(r, LP_ONNX_Mul, part, weight) : NULL;
    if (!part) return LP_FAILED;
    sum = sum ? lp_rw_add(r, part, sum) : part;
  }
  if (bias) sum = lp_rw_add(r, sum, lp_rw_unsqueeze(r, bias, LP_RW_INTS(r, 1)));
  r->result[0] = silu ? lp_rw_op(r, LP_ONNX_Swish, sum, NULL) : sum;
  lp_value *end = lp_rw_unsqueeze(r, lp_rw_size(r, columns, 2), LP_RW_INTS(r, 0));
  r->result[1] = lp_rw_slice(r, columns, 2, size, end);
  return r->result[0] && r->result[1] ? LP_OK : LP_FAILED;
}
