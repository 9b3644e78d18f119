/* Rewrites the standard's norms over other axes than the last by means, products and sums. */
#include "base/poly.h"
#include "passes/recognise/decompose/rewrite.h"

static lp_value *two(lp_rewrite *r, lp_kind kind, lp_value *x, lp_value *y) {
  return x && y ? lp_rw_op(r, kind, x, y) : NULL;
}

/* A reduction over `axes` that keeps them as axes of 1. */
static lp_value *reduce(lp_rewrite *r, lp_kind kind, lp_value *x, int32_t count, const int64_t *axes) {
  lp_value *in[] = {x, lp_rw_ints(r, count, axes)};
  return x ? lp_rw_with(r, kind, 2, in, (lp_rw_attr){"keepdims", 1}) : NULL;
}

static lp_value *number_like(lp_rewrite *r, const lp_value *x, double value) {
  return lp_build_float(&r->b, x->type.dtype, value);
}

/* The statistics of x over some axes. */
typedef struct {
  lp_value *mean, *centred, *variance;
} statistics;

static statistics measure(lp_rewrite *r, lp_value *x, int32_t count, const int64_t *axes) {
  statistics s = {.mean = reduce(r, LP_ONNX_ReduceMean, x, count, axes)};
  s.centred = two(r, LP_ONNX_Sub, x, s.mean);
  s.variance = reduce(r, LP_ONNX_ReduceMean, two(r, LP_ONNX_Mul, s.centred, s.centred), count, axes);
  return s;
}

/* centred / sqrt(variance + epsilon) */
static lp_value *scaled_by(lp_rewrite *r, lp_value *centred, lp_value *variance, double epsilon) {
  if (!centred || !variance) return NULL;
  lp_value *sum = two(r, LP_ONNX_Add, variance, number_like(r, variance, epsilon));
  return sum ? two(r, LP_ONNX_Div, centred, lp_rw_op(r, LP_ONNX_Sqrt, sum, NULL)) : NULL;
}

/* A vector with one number per channel (axis 1 of `rank`), in the type of x. */
static lp_value *per_channel(lp_rewrite *r, lp_value *vector, const lp_value *x, int32_t rank) {
  int64_t axes[LP_MAX_RANK];
  if (!vector) return NULL;
  if (vector->type.dtype != x->type.dtype) vector = lp_rw_cast(r, vector, x->type.dtype);
  for (int32_t i = 2; i < rank; i++)
    axes[i - 2] = i - 1;
  return rank > 2 ? lp_rw_unsqueeze(r, vector, lp_rw_ints(r, rank - 2, axes)) : vector;
}

static lp_value *scale_and_shift(lp_rewrite *r, lp_value *y, lp_value *scale, lp_value *bias) {
  return two(r, LP_ONNX_Add, two(r, LP_ONNX_Mul, y, scale), bias);
}

static int32_t spatial_axes(int32_t rank, int64_t *axes) {
  for (int32_t i = 2; i < rank; i++)
    axes[i - 2] = i;
  return rank - 2;
}

lp_status lp_rewrite_instance_norm(lp_rewrite *r) {
  lp_value *x = lp_op_in(r->op, 0);
  int32_t rank = x->type.rank;
  int64_t axes[LP_MAX_RANK];
  if (rank < 3) return lp_rw_refuse(r, "has no spatial axes");
  statistics s = measure(r, x, spatial_axes(rank, axes), axes);
  lp_value *y = scaled_by(r, s.centred, s.variance, lp_op_f64(r->op, "epsilon", 1e-5));
  return lp_rw_give(r, scale_and_shift(r, y, per_channel(r, lp_op_in(r->op, 1), x, rank),
                                       per_channel(r, lp_op_in(r->op, 2), x, rank)));
}

/* The scale and bias have one number per channel; in opset 18 they had one per group. */
lp_status lp_rewrite_group_norm(lp_rewrite *r) {
  lp_value *x = lp_op_in(r->op, 0), *scale = lp_op_in(r->op, 1), *bias = lp_op_in(r->op, 2);
  int64_t groups = lp_op_i64(r->op, "num_groups", 0), numbers = 0, last = 2;
  if (x->type.rank < 3 || groups < 1) return lp_rw_refuse(r, "needs spatial axes and num_groups");
  lp_value *rows = lp_rw_reshape(r, x, LP_RW_INTS(r, 0, groups, -1));
  statistics s = measure(r, rows, 1, &last);
  lp_value *y = scaled_by(r, s.centred, s.variance, lp_op_f64(r->op, "epsilon", 1e-5));
  bool by_group = lp_type_static_dim(scale->type, 0, &numbers) && numbers == groups &&
                  !lp_poly_equal(x->type.dim[1], scale->type.dim[0]);
  if (by_group) y = scale_and_shift(r, y, per_channel(r, scale, x, 3), per_channel(r, bias, x, 3));
  y = y ? lp_rw_reshape(r, y, lp_rw_op(r, LP_ONNX_Shape, x, NULL)) : NULL;
  return lp_rw_give(r, by_group ? y
                                : scale_and_shift(r, y, per_channel(r, scale, x, x->type.rank),
                                                  per_channel(r, bias, x, x->type.rank)));
}

/* momentum * before + (1 - momentum) * found, as a vector. */
static lp_value *blend(lp_rewrite *r, lp_value *before, lp_value *found, double momentum) {
  if (!found) return NULL;
  found = lp_rw_cast(r, lp_rw_reshape(r, found, LP_RW_INTS(r, -1)), before->type.dtype);
  lp_value *old = two(r, LP_ONNX_Mul, before, number_like(r, before, momentum));
  return found ? two(r, LP_ONNX_Add, old, two(r, LP_ONNX_Mul, found, number_like(r, before, 1 - momentum))) : NULL;
}

lp_status lp_rewrite_batch_norm(lp_rewrite *r) {
  lp_value *x = lp_op_in(r->op, 0), *mean = lp_op_in(r->op, 3), *variance = lp_op_in(r->op, 4);
  int32_t rank = x->type.rank;
  int64_t axes[LP_MAX_RANK] = {0};
  statistics s;
  if (rank < 2) return lp_rw_refuse(r, "has no channels");
  if (lp_op_i64(r->op, "training_mode", 0)) {
    double momentum = lp_op_f64(r->op, "momentum", 0.9);
    s = measure(r, x, spatial_axes(rank, axes + 1) + 1, axes);
    r->result[1] = blend(r, mean, s.mean, momentum);
    r->result[2] = blend(r, variance, s.variance, momentum);
  } else {
    s.centred = two(r, LP_ONNX_Sub, x, per_channel(r, mean, x, rank));
    s.variance = per_channel(r, variance, x, rank);
  }
  lp_value *y = scaled_by(r, s.centred, s.variance, lp_op_f64(r->op, "epsilon", 1e-5));
  return lp_rw_give(r, scale_and_shift(r, y, per_channel(r, lp_op_in(r->op, 1), x, rank),
                                       per_channel(r, lp_op_in(r->op, 2), x, rank)));
}

lp_status lp_rewrite_mean_variance(lp_rewrite *r) {
  static const int64_t otherwise[] = {0, 2, 3};
  lp_value *x = lp_op_in(r->op, 0);
  const lp_attr *axes = lp_op_attr(r->op, "axes");
  statistics s = axes ? measure(r, x, axes->count, axes->is) : measure(r, x, 3, otherwise);
  if (!s.variance) return LP_FAILED;
  lp_value *deviation = lp_rw_op(r, LP_ONNX_Sqrt, s.variance, NULL);
  if (!deviation) return LP_FAILED;
  deviation = two(r, LP_ONNX_Add, deviation, number_like(r, x, 1e-9));
  return lp_rw_give(r, two(r, LP_ONNX_Div, s.centred, deviation));
}

/* If the norm is zero, so is every element that it divides. */
lp_status lp_rewrite_lp_norm(lp_rewrite *r) {
  lp_value *x = lp_op_in(r->op, 0);
  int64_t p = lp_op_i64(r->op, "p", 2), axis = lp_op_i64(r->op, "axis", -1);
  if (p != 1 && p != 2) return lp_rw_refuse(r, "has a p other than 1 and 2");
  lp_value *size = reduce(r, p == 1 ? LP_ONNX_ReduceL1 : LP_ONNX_ReduceL2, x, 1, &axis);
  lp_value *none = size ? two(r, LP_ONNX_Equal, size, number_like(r, x, 0)) : NULL;
  return lp_rw_give(r, two(r, LP_ONNX_Div, x, lp_rw_op3(r, LP_ONNX_Where, none, number_like(r, x, 1), size)));
}

lp_status lp_rewrite_swiglu(lp_rewrite *r) {
  lp_value *gate = lp_rw_op(r, LP_ONNX_Swish, lp_op_in(r->op, 0), NULL);
  if (!gate) return LP_FAILED;
  lp_op_set_f64(r->b.module, gate->def, "alpha", lp_op_f64(r->op, "alpha", 1));
  return lp_rw_give(r, two(r, LP_ONNX_Mul, gate, lp_op_in(r->op, 1)));
}
