/* Recognises x * cos + rotate(x) * sin as RotaryEmbedding: of halves or of neighbouring pairs (GPT-J, GLM, Cohere),
 * with heads or positions first, and a partial one with a remainder that is concatenated after it. */
#include "base/poly.h"
#include "passes/recognise/recognise.h"

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

/* x of x[..., start::2] over the last axis; NULL for another value. */
static lp_value *every_other(lp_value *value, int64_t wanted) {
  lp_op *op = lp_match_def(value, LP_ONNX_Slice);
  int64_t axis, start, step, size, width;
  if (!op || op->in_count < 5 || !lp_known_i64(lp_op_in(op, 1), 0, &start) || start != wanted) return NULL;
  if (!lp_known_i64(lp_op_in(op, 3), 0, &axis) || !lp_known_i64(lp_op_in(op, 4), 0, &step) || step != 2) return NULL;
  lp_value *x = lp_match_peel(lp_op_in(op, 0));
  bool all = lp_type_static_dim(x->type, -1, &size) && lp_type_static_dim(value->type, -1, &width) &&
             lp_op_in(op, 3)->known_count == 1 && 2 * width == size;
  return all && (axis == -1 || axis == x->type.rank - 1) ? x : NULL;
}

/* The value without its new last axis of one; NULL when there is no such axis. */
static lp_value *before_new_axis(lp_value *value) {
  lp_op *op = lp_match_def(value, LP_ONNX_Unsqueeze);
  lp_value *in = op ? lp_op_in(op, 0) : NULL;
  int64_t size, before, one;
  bool last = in && value->type.rank == in->type.rank + 1 && lp_type_static_dim(in->type, -1, &size) &&
              lp_type_static_dim(value->type, -2, &before) && lp_type_static_dim(value->type, -1, &one);
  return last && one == 1 && before == size ? lp_match_peel(in) : NULL;
}

/* x of (-x[1], x[0], -x[3], x[2], ...): pairs along a new axis that is then joined with the last. */
static lp_value *rotated_pairs(lp_value *value) {
  lp_op *joined = lp_match_def(value, LP_ONNX_Reshape);
  lp_op *concat = joined ? lp_match_def(lp_op_in(joined, 0), LP_ONNX_Concat) : NULL;
  if (!concat || concat->in_count != 2) return NULL;
  int64_t axis = lp_op_i64(concat, "axis", 0);
  if (axis != -1 && axis != concat->out[0]->type.rank - 1) return NULL;
  lp_value *first = before_new_axis(lp_op_in(concat, 0)), *second = before_new_axis(lp_op_in(concat, 1));
  lp_op *negative = first ? lp_match_def(first, LP_ONNX_Neg) : NULL;
  lp_value *odd = negative ? every_other(lp_op_in(negative, 0), 1) : NULL;
  lp_value *even = second ? every_other(second, 0) : NULL;
  return odd && odd == even && lp_type_equal(lp_type_with_dtype(odd->type, value->type.dtype), value->type) ? odd
                                                                                                            : NULL;
}

/* Elements `i` and `i + apart` of a row that must be equal: halves, or pairs of neighbours. */
static bool equal_in_row(const lp_tensor *table, int64_t row, int64_t width, bool pairs) {
  for (int64_t i = 0; i < width / 2; i++) {
    int64_t at = row * width + (pairs ? 2 * i : i);
    if (lp_tensor_f64(table, at) != lp_tensor_f64(table, at + (pairs ? 1 : width / 2))) return false;
  }
  return true;
}

/* Tells whether the halves, or the neighbours, of the last axis are equal in a constant table. */
static bool constant_twins(lp_module *module, lp_value *value, bool pairs) {
  lp_tensor table;
  int64_t count, width;
  if (!lp_type_static_numel(value->type, &count) || !lp_type_static_dim(value->type, -1, &width) || width % 2)
    return false;
  if (lp_weight_data(module, value, &table, NULL) != LP_OK) return false;
  for (int64_t row = 0; row < count / width; row++)
    if (!equal_in_row(&table, row, width, pairs)) return false;
  return true;
}

/* Tells whether every element of the last axis was repeated: by a new last axis, expanded to two, then joined. */
static bool repeats_each(const lp_op *reshape) {
  const lp_value *wide = lp_match_peel(lp_op_in(reshape, 0)), *narrow;
  int64_t two, width;
  if (!lp_op_is(wide->def, LP_ONNX_Expand) && !lp_op_is(wide->def, LP_ONNX_Tile)) return false;
  narrow = before_new_axis(lp_op_in(wide->def, 0));
  return narrow && wide->type.rank == narrow->type.rank + 1 && lp_type_static_dim(wide->type, -1, &two) && two == 2 &&
         reshape->out[0]->type.rank == narrow->type.rank && lp_type_static_dim(narrow->type, -1, &width) &&
         lp_poly_is_const(reshape->out[0]->type.dim[narrow->type.rank - 1], &two) && two == 2 * width;
}

/* Tells whether both halves (or pairs) of the last axis are equal: the table was made from concat(f, f) or by repeating
 * each element, elementwise, or is such a constant. */
static bool equal_twins(lp_module *module, lp_value *value, bool pairs) {
  double number;
  for (int step = 0; step < 32 && value; step++) {
    lp_op *op = value->def;
    if (!op) return false;
    if (lp_value_is_constant(value)) return constant_twins(module, value, pairs);
    lp_value *rest = NULL;
    switch (op->kind) {
    case LP_ONNX_Concat: {
      int64_t axis = lp_op_i64(op, "axis", 0);
      bool last = axis == -1 || axis == value->type.rank - 1;
      if (last) return !pairs && op->in_count == 2 && lp_op_in(op, 0) == lp_op_in(op, 1);
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
    case LP_ONNX_Reshape: { /* the last axis is kept */
      if (pairs && op->kind == LP_ONNX_Reshape && repeats_each(op)) return true;
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

/* A match of the sum: x [B, H, S, D], or [B, S, H, D] where tables have one head after the positions. */
typedef struct {
  lp_value *x, *table[2]; /* cosine, sine */
  bool pairs, heads_last;
} rotation;

/* A table of equal halves over one of them: by the functions of single elements after the concatenation that repeats
 * it. NULL: it is made otherwise. */
static lp_value *before_twins(lp_build *b, const lp_value *table) {
  lp_op *op = table->def;
  lp_value *rest = lp_op_in(op, 0);
  double number;
  if (op->kind == LP_ONNX_Concat) return rest;
  bool is_scaled = op->kind == LP_ONNX_Mul && lp_match_scalar(op, &number, &rest);
  bool is_view = op->kind == LP_ONNX_Unsqueeze && op->in_count == 2;
  if (!is_scaled && !is_view && op->kind != LP_ONNX_Cos && op->kind != LP_ONNX_Sin && op->kind != LP_ONNX_Cast)
    return NULL;
  lp_value *half = before_twins(b, rest), *in[2] = {NULL};
  if (!half || op->kind == LP_ONNX_Cast) return half ? lp_build_cast(b, half, table->type.dtype) : NULL;
  for (int32_t i = 0; i < op->in_count; i++)
    in[i] = lp_op_in(op, i) == rest ? half : lp_op_in(op, i);
  return lp_build_value(b, op->kind, op->in_count, in);
}

/* One of each two equal elements of a table [B, 1, S, D], [B, S, 1, D], [1, S, D] or [S, D] as [B, S, D / 2]; NULL when
 * it has another shape. */
static lp_value *half_table(lp_build *b, const rotation *r, lp_value *table) {
  lp_type type = table->type, x = r->x->type;
  int64_t width;
  int32_t rows = r->heads_last ? 1 : type.rank - 2, heads = r->heads_last ? 2 : 1;
  bool four = type.rank == 4 && is_one(type.dim[heads]), three = type.rank == 3 && is_one(type.dim[0]);
  if ((!four && (r->heads_last || (!three && type.rank != 2))) || !lp_type_static_dim(type, -1, &width) || width % 2)
    return NULL;
  if (!lp_poly_equal(type.dim[rows], x.dim[r->heads_last ? 1 : 2]) || !lp_poly_equal(type.dim[type.rank - 1], x.dim[3]))
    return NULL;
  int64_t numbers[] = {0, r->pairs ? width : width / 2, -1, r->pairs ? 2 : 1, heads};
  lp_value *half = r->pairs ? NULL : before_twins(b, table), *in[5] = {table};
  for (int i = 0; i < 4 && !half; i++)
    in[i + 1] = lp_build_i64s(b, &numbers[i], 1);
  if (!half) half = lp_build_value(b, LP_ONNX_Slice, 5, in);
  if (!half || three) return half;
  lp_value *which = lp_build_i64s(b, &numbers[four ? 4 : 0], 1), *shape_in[] = {half, which};
  lp_op *shaped = lp_build_onnx(b, four ? LP_ONNX_Squeeze : LP_ONNX_Unsqueeze, 2, shape_in, 1);
  return shaped ? shaped->out[0] : NULL;
}

static bool match_rotated(lp_value *value, rotation *r) {
  r->x = rotated_half(value);
  r->pairs = !r->x;
  if (!r->x) r->x = rotated_pairs(value);
  return r->x != NULL;
}

/* Finds which of the two products of the sum rotates; fills x and the two tables. */
static bool match_products(lp_op *sum, rotation *r) {
  for (int32_t turned = 0; turned < 2; turned++) {
    lp_op *sin_mul = lp_match_def(lp_op_in(sum, turned), LP_ONNX_Mul);
    lp_op *cos_mul = lp_match_def(lp_op_in(sum, 1 - turned), LP_ONNX_Mul);
    if (!sin_mul || !cos_mul) return false;
    for (int32_t i = 0; i < 2; i++) {
      if (!match_rotated(lp_op_in(sin_mul, i), r)) continue;
      r->table[0] = lp_match_other(cos_mul, r->x);
      r->table[1] = lp_op_in(sin_mul, 1 - i);
      if (r->table[0]) return true;
    }
  }
  return false;
}

static lp_value *swap_heads(lp_build *b, lp_value *x) {
  static const int64_t perm[] = {0, 2, 1, 3};
  lp_op *op = lp_op_create(b->module, LP_ONNX_Transpose, b->loc, 1, &x, 1, &x->type);
  lp_op_set_i64s(b->module, op, "perm", perm, 4);
  return lp_build_place(b, op) == LP_OK ? op->out[0] : NULL;
}

static lp_status raise_rotary(lp_module *module, lp_op *sum, lp_diag *diag) {
  rotation r = {0};
  if (!match_products(sum, &r) || r.x->type.rank != 4) return LP_OK;
  if (!equal_twins(module, r.table[0], r.pairs) || !equal_twins(module, r.table[1], r.pairs)) return LP_OK;
  lp_type table = r.table[0]->type;
  r.heads_last = table.rank == 4 && is_one(table.dim[2]) && !is_one(table.dim[1]);
  lp_build b = lp_build_at(module, sum, diag);
  lp_dtype dtype = sum->out[0]->type.dtype; /* the match looked through casts */
  lp_value *in[3] = {NULL};
  for (int i = 0; i < 2; i++) {
    lp_value *half = half_table(&b, &r, r.table[i]);
    if (!half) return LP_OK;
    in[i + 1] = lp_build_cast(&b, half, dtype);
  }
  in[0] = lp_build_cast(&b, r.x, dtype);
  if (r.heads_last && in[0]) in[0] = swap_heads(&b, in[0]);
  if (!in[0] || !in[1] || !in[2]) return LP_FAILED;
  lp_op *rotary = lp_op_create(module, LP_ONNX_RotaryEmbedding, sum->loc, 3, in, 1, &in[0]->type);
  if (r.pairs) lp_op_set_i64(module, rotary, "interleaved", 1);
  lp_op_insert_before(sum, rotary);
  lp_value *result = r.heads_last ? swap_heads(&b, rotary->out[0]) : rotary->out[0];
  if (!result) return LP_FAILED;
  lp_value_replace(sum->out[0], result);
  return LP_OK;
}

/* The operator that makes the value, found through a swap of heads and positions. */
static lp_value *through_swap(lp_value *value, bool *swapped) {
  static const int64_t swap[] = {0, 2, 1, 3};
  const lp_attr *perm = lp_op_is(value->def, LP_ONNX_Transpose) ? lp_op_attr(value->def, "perm") : NULL;
  *swapped = perm && perm->count == 4 && memcmp(perm->is, swap, sizeof swap) == 0;
  return *swapped ? lp_op_in(value->def, 0) : value;
}

/* concat(rotary(x[..., :r]), x[..., r:]) is a partial rotary of x: the remainder is copied. */
static lp_status raise_partial(lp_module *module, lp_op *concat, lp_diag *diag) {
  bool swapped, swapped_in;
  lp_op *rotary = lp_match_def(through_swap(lp_op_in(concat, 0), &swapped), LP_ONNX_RotaryEmbedding);
  int64_t from[2], to[2], size;
  lp_value *x[2];
  if (!rotary || concat->in_count != 2 || concat->out[0]->type.rank != 4) return LP_OK;
  lp_value *part = swapped ? through_swap(lp_op_in(rotary, 0), &swapped_in) : lp_op_in(rotary, 0);
  if (swapped && !swapped_in) return LP_OK;
  if (!lp_match_last_slice(part, &x[0], &from[0], &to[0])) return LP_OK;
  if (!lp_match_last_slice(lp_op_in(concat, 1), &x[1], &from[1], &to[1])) return LP_OK;
  if (x[0] != x[1] || from[0] != 0 || from[1] != to[0] || !lp_type_static_dim(x[0]->type, -1, &size) || to[1] != size)
    return LP_OK;
  lp_build b = lp_build_at(module, concat, diag);
  lp_value *in[] = {swapped ? swap_heads(&b, x[0]) : x[0], lp_op_in(rotary, 1), lp_op_in(rotary, 2)};
  if (!in[0]) return LP_FAILED;
  lp_op *whole = lp_op_create(module, LP_ONNX_RotaryEmbedding, concat->loc, 3, in, 1, &in[0]->type);
  lp_op_set_i64(module, whole, "rotary_embedding_dim", to[0]);
  if (lp_op_i64(rotary, "interleaved", 0)) lp_op_set_i64(module, whole, "interleaved", 1);
  lp_op_insert_before(concat, whole);
  lp_value *result = swapped ? swap_heads(&b, whole->out[0]) : whole->out[0];
  if (!result) return LP_FAILED;
  lp_value_replace(concat->out[0], result);
  return LP_OK;
}

lp_status lp_recognise_rotary(lp_module *module, lp_block *block, lp_diag *diag) {
  LP_FOR_OPS(op, block)
    if (op->kind == LP_ONNX_Add) LP_TRY(raise_rotary(module, op, diag));
  LP_FOR_OPS(op, block)
    if (op->kind == LP_ONNX_Concat) LP_TRY(raise_partial(module, op, diag));
  return LP_OK;
}
