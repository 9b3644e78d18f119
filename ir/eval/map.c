/* Elementwise operators of the reference interpreter: the function of each, and the shape of its result. */
#include "ir/eval/eval.h"

#include <math.h>

static lp_status broadcast_out(const lp_eval *e, lp_dtype dtype, lp_array **out) {
  int32_t rank = 0;
  int64_t dim[LP_MAX_RANK] = {0};
  LP_TRY(lp_eval_need(e, e->op->in_count));
  for (int32_t i = 0; i < e->op->in_count; i++)
    LP_TRY(lp_eval_broadcast(e, &rank, dim, e->in[i]->rank, e->in[i]->dim));
  return lp_eval_out(e, 0, dtype, rank, dim, out);
}

/* ---- onnx ---- */

static bool is_integer_division_by_zero(const lp_eval *e) {
  const lp_array *by = lp_eval_in(e, 1);
  if (!by || lp_dtype_is_float(by->dtype) || (e->op->kind != LP_ONNX_Div && e->op->kind != LP_ONNX_Mod)) return false;
  for (int64_t i = 0; i < lp_array_numel(by); i++)
    if (lp_array_i64(by, i) == 0) return true;
  return false;
}

lp_status eval_onnx_map(const lp_eval *e) {
  lp_array *out;
  LP_TRY(broadcast_out(e, e->op->out[0]->type.dtype, &out));
  if (is_integer_division_by_zero(e)) return lp_eval_fail(e, "division by zero");
  lp_function map;
  if (!lp_op_function(e->op, &map)) return lp_eval_fail(e, "it has no elementwise form");
  return lp_eval_function(e, map.fn, e->in, e->op->in_count, map.alpha, map.beta, out);
}

lp_status eval_onnx_variadic_map(const lp_eval *e) {
  lp_array *out, sum;
  LP_TRY(broadcast_out(e, e->op->out[0]->type.dtype, &out));
  const lp_array *zero[] = {e->in[0]};
  LP_TRY(lp_eval_function(e, "cast", zero, 1, (double)NAN, (double)NAN, out));
  lp_function map;
  if (!lp_op_function(e->op, &map)) return lp_eval_fail(e, "it has no elementwise form");
  for (int32_t i = 1; i < e->op->in_count; i++) {
    sum = *out;
    const lp_array *pair[] = {&sum, e->in[i]};
    LP_TRY(lp_eval_function(e, map.fn, pair, 2, (double)NAN, (double)NAN, out));
  }
  if (e->op->kind == LP_ONNX_Mean)
    for (int64_t i = 0; i < lp_array_numel(out); i++)
      lp_array_set_f64(out, i, lp_array_f64(out, i) / e->op->in_count);
  return LP_OK;
}

static lp_status map_like_first(const lp_eval *e, const char *fn, lp_dtype dtype) {
  lp_array *out;
  LP_TRY(lp_eval_out(e, 0, dtype, e->in[0]->rank, e->in[0]->dim, &out));
  return lp_eval_function(e, fn, e->in, e->op->in_count, (double)NAN, (double)NAN, out);
}

lp_status eval_onnx_clip(const lp_eval *e) {
  for (int32_t i = 1; i < e->op->in_count; i++)
    if (e->in[i] && lp_array_numel(e->in[i]) != 1) return lp_eval_fail(e, "its bounds are not scalars");
  return map_like_first(e, "clip", e->op->out[0]->type.dtype);
}

lp_status eval_onnx_cast_like(const lp_eval *e) {
  return map_like_first(e, "cast", e->in[1]->dtype);
}

lp_status eval_onnx_identity(const lp_eval *e) {
  e->out[0] = *e->in[0];
  return LP_OK;
}

lp_status eval_onnx_dropout(const lp_eval *e) {
  LP_TRY(eval_onnx_identity(e));
  if (e->op->out_count < 2) return LP_OK;
  lp_array *mask;
  LP_TRY(lp_eval_out(e, 1, LP_BOOL, e->in[0]->rank, e->in[0]->dim, &mask));
  memset(mask->data, 1, (size_t)lp_array_numel(mask));
  return LP_OK;
}

/* ---- op.* ---- */

lp_status eval_op_MAP(const lp_eval *e) {
  lp_array *out;
  LP_TRY(broadcast_out(e, e->op->out[0]->type.dtype, &out));
  return lp_eval_function(e, lp_op_str(e->op, "fn", ""), e->in, e->op->in_count, lp_op_f64(e->op, "alpha", (double)NAN),
                          lp_op_f64(e->op, "beta", (double)NAN), out);
}
