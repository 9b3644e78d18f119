/* Quantising and dequantising in the reference interpreter, in f32 as the standard defines it. */
#include "ir/eval/eval.h"

#include <math.h>

/* The layout of scales over x. x is [outer][size][inner]; the scale of element (o, a, i) is at o * so + (a / group) *
 * sa + i * si. */
typedef struct {
  int64_t size, inner, group, so, sa, si;
} cover;

static lp_status cover_of(const lp_eval *e, const lp_array *x, const lp_array *scale, cover *out) {
  int64_t block = lp_op_i64(e->op, "block_size", 0), outer;
  int32_t axis;
  *out = (cover){1, 1, 1, 0, 0, 0};
  if (lp_array_numel(scale) == 1) return LP_OK;
  LP_TRY(lp_eval_axis(e, lp_op_i64(e->op, "axis", 1), x->rank, &axis));
  lp_array_split(x, axis, &outer, &out->size, &out->inner);
  int64_t groups = block > 0 ? (out->size + block - 1) / block : out->size;
  out->group = block > 0 ? block : 1;
  out->sa = block > 0 ? out->inner : 1;
  out->si = block > 0;
  out->so = block > 0 ? groups * out->inner : 0;
  int64_t wanted = block > 0 ? outer * groups * out->inner : groups;
  if (lp_array_numel(scale) == wanted) return LP_OK;
  return lp_eval_fail(e, "%" PRId64 " scales, %" PRId64 " wanted", lp_array_numel(scale), wanted);
}

static int64_t place(const cover *c, int64_t at) {
  int64_t inner = at % c->inner, a = at / c->inner % c->size, outer = at / c->inner / c->size;
  return outer * c->so + a / c->group * c->sa + inner * c->si;
}

/* The least and the greatest value of an integer type. */
static void range_of(lp_dtype dtype, double *low, double *high) {
  int bits = lp_dtype_bits(dtype);
  bool is_unsigned = dtype == LP_U8 || dtype == LP_U16 || dtype == LP_U4 || dtype == LP_U2 || dtype == LP_U32;
  *low = is_unsigned ? 0 : -ldexp(1, bits - 1);
  *high = is_unsigned ? ldexp(1, bits) - 1 : ldexp(1, bits - 1) - 1;
}

typedef struct {
  const lp_array *x, *scale, *zero; /* zero may be NULL */
  cover by_scale, by_zero;
} operands;

static lp_status read_operands(const lp_eval *e, operands *o) {
  *o = (operands){.x = e->in[0], .scale = e->in[1], .zero = lp_eval_in(e, 2)};
  LP_TRY(cover_of(e, o->x, o->scale, &o->by_scale));
  return o->zero ? cover_of(e, o->x, o->zero, &o->by_zero) : LP_OK;
}

static double zero_at(const operands *o, int64_t at) {
  return o->zero ? lp_array_f64(o->zero, place(&o->by_zero, at)) : 0;
}

lp_status eval_op_QUANTIZE(const lp_eval *e) {
  operands o;
  lp_array *y;
  double low, high;
  LP_TRY(read_operands(e, &o));
  lp_dtype dtype = e->op->out[0]->type.dtype;
  bool onnx = e->op->kind == LP_ONNX_QuantizeLinear;
  bool saturate = onnx ? lp_op_i64(e->op, "saturate", 1) != 0 : lp_op_bool(e->op, "saturate", true);
  LP_TRY(lp_eval_out(e, 0, dtype, o.x->rank, o.x->dim, &y));
  range_of(dtype, &low, &high);
  for (int64_t i = 0; i < lp_array_numel(o.x); i++) {
    float scaled = (float)lp_array_f64(o.x, i) / (float)lp_array_f64(o.scale, place(&o.by_scale, i));
    if (lp_dtype_is_mini(dtype))
      lp_array_set_mini(y, i, (double)scaled, saturate);
    else
      lp_array_set_f64(y, i, fmin(fmax(rint((double)scaled) + zero_at(&o, i), low), high));
  }
  return LP_OK;
}

lp_status eval_op_DEQUANTIZE(const lp_eval *e) {
  operands o;
  lp_array *y;
  LP_TRY(read_operands(e, &o));
  LP_TRY(lp_eval_out(e, 0, e->op->out[0]->type.dtype, o.x->rank, o.x->dim, &y));
  for (int64_t i = 0; i < lp_array_numel(o.x); i++) {
    float value = (float)(lp_array_f64(o.x, i) - zero_at(&o, i));
    lp_array_set_f64(y, i, (double)(value * (float)lp_array_f64(o.scale, place(&o.by_scale, i))));
  }
  return LP_OK;
}

/* ---- weights of op.linear ---- */

/* The element of a scale or zero point for row k and column n of a weight: see ops.def. */
static double group_at(const lp_array *scale, int64_t k, int64_t n, int64_t group, bool transpose) {
  if (!scale) return 0;
  if (lp_array_numel(scale) == 1) return lp_array_f64(scale, 0);
  if (group == 0) return lp_array_f64(scale, n);
  return lp_array_f64(scale, transpose ? n * scale->dim[1] + k / group : k / group * scale->dim[1] + n);
}

lp_status lp_eval_weight(const lp_eval *e, int32_t index, int32_t scales, int64_t k, lp_array *out) {
  const lp_array *w = lp_eval_in(e, index), *scale = lp_eval_in(e, scales), *zero = lp_eval_in(e, scales + 1);
  *out = *w;
  if (!scale) return LP_OK;
  bool transpose = lp_op_bool(e->op, "transpose_b", false);
  int64_t group = lp_op_i64(e->op, "group", 0), n = w->dim[transpose ? 0 : 1], stored = w->dim[transpose ? 1 : 0];
  if (stored < k) return lp_eval_fail(e, "its weight has %" PRId64 " rows, %" PRId64 " wanted", stored, k);
  *out = (lp_array){.dtype = LP_F32, .rank = 2, .dim = {transpose ? n : k, transpose ? k : n}};
  out->data = lp_arena_array(e->arena, (size_t)(n * k) + 1, sizeof(float));
  for (int64_t i = 0; i < n * k; i++) {
    int64_t row = transpose ? i % k : i / n, column = transpose ? i / k : i % n;
    int64_t at = transpose ? column * stored + row : i;
    double code = lp_array_f64(w, at) - group_at(zero, row, column, group, transpose);
    lp_array_set_f64(out, i, code * group_at(scale, row, column, group, transpose));
  }
  return LP_OK;
}
