/* Recognises x * cos + rotate_half(x) * sin as RotaryEmbedding, and a partial one whose rest is joined behind it. */
#include "passes/recognise_internal.h"

#include <string.h>

/* x of concat(-x[..., h:], x[..., :h]) over the last axis. */
static lp_value *rotated_half(lp_value *value) {
  lp_op *concat = lp_match_def(value, LP_ONNX_Concat);
  int64_t axis = concat ? lp_op_i64(concat, "axis", 0) : 0, from[2], to[2], size;
  lp_value *x[2];
  if (!concat || concat->in_count != 2 || (axis != -1 && axis != value->type.rank - 1)) return NULL;
  lp_op *negative = lp_match_def(lp_op_in(concat, 0), LP_ONNX_Neg);
  if (!negative || !lp_match_last_slice(lp_match_peel(lp_op_in(negative, 0)), &x[1], &from[1], &to[1])) return NULL;
  if (!lp_match_last_slice(lp_match_peel(lp_op_in(concat, 1)), &x[0], &from[0], &to[0])) return NULL;
  bool same = lp_match_peel(x[0]) == lp_match_peel(x[1]) && lp_type_static_dim(x[0]->type, -1, &size);
  bool halves = same && from[0] == 0 && 2 * to[0] == size && from[1] == to[0] && to[1] == size;
  return halves ? lp_match_peel(x[0]) : NULL;
}

/* Both halves of the last axis are equal in a constant table. */
static bool constant_halves(lp_module *module, lp_value *value) {
  lp_tensor table;
  int64_t count, width;
  if (!lp_type_static_numel(value->type, &count) || !lp_type_static_dim(value->type, -1, &width) || width % 2)
    return false;
  if (lp_weight_data(module, value, &table, NULL) != LP_OK) return false;
  for (int64_t row = 0; row < count / width; row++)
    for (int64_t i = 0; i < width / 2; i++)
      if (lp_tensor_f64(&table, row * width + i) != lp_tensor_f64(&table, row * width + i + width / 2)) return false;
  return true;
}

/* Both halves of the last axis are equal: the table was made from concat(f, f), elementwise, or is such a constant. */
static bool equal_halves(lp_module *module, lp_value *value) {
  double number;
  for (int step = 0; step < 32 && value; step++) {
    lp_op *op = value->def;
    if (!op) return false;
    if (lp_value_is_constant(value)) return constant_halves(module, value);
    lp_value *rest = NULL;
    switch (op->kind) {
    case LP_ONNX_Concat: {
      int64_t axis = lp_op_i64(op, "axis", 0);
      bool last = axis == -1 || axis == value->type.rank - 1;
      if (last) return op->in_count == 2 && lp_op_in(op, 0) == lp_op_in(op, 1);
      return false;
    }
    case LP_ONNX_Mul:
      if (!lp_match_scalar(op, &number, &rest)) return false;
      value = rest;
      break;
    case LP_ONNX_Cos:
    case LP_ONNX_Sin:
    case LP_ONNX_Cast:
    case LP_ONNX_Identity:
      value = lp_op_in(op, 0);
      break;
    case LP_ONNX_Gather: /* rows of a table by position */
      if (lp_op_i64(op, "axis", 0) != 0 || lp_op_in(op, 0)->type.rank != 2) return false;
      value = lp_op_in(op, 0);
      break;
    case LP_ONNX_Slice:
    case LP_ONNX_Unsqueeze:
    case LP_ONNX_Squeeze:
    case LP_ONNX_Expand:
    case LP_ONNX_Reshape: { /* the last axis stays */
      int64_t before, after;
      if (!lp_type_static_dim(lp_op_in(op, 0)->type, -1, &before) || !lp_type_static_dim(value->type, -1, &after) ||
          before != after)
        return false;
      value = lp_op_in(op, 0);
      break;
    }
    default:
      return false;
    }
  }
  return false;
}

static bool is_one(const lp_poly *dim) {
  int64_t one;
  return lp_poly_is_const(dim, &one) && one == 1;
}

/* The first half of a table [B, 1, S, D], [1, S, D] or [S, D] as [B, S, D / 2]; NULL when it has another shape. */
static lp_value *half_table(lp_build *b, lp_value *table, lp_type x) {
  lp_type type = table->type;
  int64_t width;
  bool four = type.rank == 4 && is_one(type.dim[1]), three = type.rank == 3 && is_one(type.dim[0]);
  if ((!four && !three && type.rank != 2) || !lp_type_static_dim(type, -1, &width) || width % 2) return NULL;
  if (!lp_poly_equal(type.dim[type.rank - 2], x.dim[2]) || !lp_poly_equal(type.dim[type.rank - 1], x.dim[3]))
    return NULL;
  int64_t numbers[] = {0, width / 2, -1, 1};
  lp_value *start = lp_build_i64s(b, &numbers[0], 1), *end = lp_build_i64s(b, &numbers[1], 1);
  lp_value *axis = lp_build_i64s(b, &numbers[2], 1), *in[] = {table, start, end, axis};
  lp_op *slice = lp_build_onnx(b, LP_ONNX_Slice, 4, in, 1);
  if (!slice || three) return slice ? slice->out[0] : NULL;
  lp_value *which = lp_build_i64s(b, &numbers[four ? 3 : 0], 1), *shape_in[] = {slice->out[0], which};
  lp_op *shaped = lp_build_onnx(b, four ? LP_ONNX_Squeeze : LP_ONNX_Unsqueeze, 2, shape_in, 1);
  return shaped ? shaped->out[0] : NULL;
}

/* Of the two products of the sum, which one rotates: fills x and the two tables. */
static bool match_products(lp_op *sum, lp_value **x, lp_value **cosine, lp_value **sine) {
  for (int32_t turned = 0; turned < 2; turned++) {
    lp_op *sin_mul = lp_match_def(lp_op_in(sum, turned), LP_ONNX_Mul);
    lp_op *cos_mul = lp_match_def(lp_op_in(sum, 1 - turned), LP_ONNX_Mul);
    if (!sin_mul || !cos_mul) return false;
    for (int32_t i = 0; i < 2; i++) {
      *x = rotated_half(lp_op_in(sin_mul, i));
      *sine = lp_op_in(sin_mul, 1 - i);
      *cosine = *x ? lp_match_other(cos_mul, *x) : NULL;
      if (*cosine) return true;
    }
  }
  return false;
}

static lp_status raise_rotary(lp_module *module, lp_op *sum, lp_diag *diag) {
  lp_value *x, *cosine, *sine;
  if (!match_products(sum, &x, &cosine, &sine) || x->type.rank != 4) return LP_OK;
  if (!equal_halves(module, cosine) || !equal_halves(module, sine)) return LP_OK;
  lp_build b = lp_build_at(module, sum, diag);
  lp_value *in[] = {x, half_table(&b, cosine, x->type), half_table(&b, sine, x->type)};
  if (!in[1] || !in[2]) return LP_OK;
  lp_op *rotary = lp_op_create(module, LP_ONNX_RotaryEmbedding, sum->loc, 3, in, 1, &sum->out[0]->type);
  lp_op_insert_before(sum, rotary);
  lp_value_replace(sum->out[0], rotary->out[0]);
  return LP_OK;
}

/* concat(rotary(x[..., :r]), x[..., r:]) is the rotary of x, whose rest is copied. */
static void raise_partial(lp_module *module, lp_op *concat) {
  lp_op *rotary = lp_match_def(lp_op_in(concat, 0), LP_ONNX_RotaryEmbedding);
  int64_t from[2], to[2], size;
  lp_value *x[2];
  if (!rotary || concat->in_count != 2 || concat->out[0]->type.rank != 4) return;
  if (!lp_match_last_slice(lp_op_in(rotary, 0), &x[0], &from[0], &to[0])) return;
  if (!lp_match_last_slice(lp_op_in(concat, 1), &x[1], &from[1], &to[1])) return;
  if (x[0] != x[1] || from[0] != 0 || from[1] != to[0] || !lp_type_static_dim(x[0]->type, -1, &size) || to[1] != size)
    return;
  lp_value *in[] = {x[0], lp_op_in(rotary, 1), lp_op_in(rotary, 2)};
  lp_op *whole = lp_op_create(module, LP_ONNX_RotaryEmbedding, concat->loc, 3, in, 1, &concat->out[0]->type);
  lp_op_set_i64(module, whole, "rotary_embedding_dim", to[0]);
  lp_op_insert_before(concat, whole);
  lp_value_replace(concat->out[0], whole->out[0]);
}

lp_status lp_recognise_rotary(lp_module *module, lp_block *block, lp_diag *diag) {
  LP_FOR_OPS(op, block)
  if (op->kind == LP_ONNX_Add) LP_TRY(raise_rotary(module, op, diag));
  LP_FOR_OPS(op, block)
  if (op->kind == LP_ONNX_Concat) raise_partial(module, op);
  return LP_OK;
}
