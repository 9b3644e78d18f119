/* Arithmetic on known values: elementwise operators on polynomials. */
#include "base/poly.h"
#include "ir/infer/infer.h"

typedef const lp_poly *poly;

typedef enum { BELOW = -1, SAME = 0, ABOVE = 1, UNDECIDED = 2 } order;

/* Sizes are not negative, so the sign of the constant term may decide. */
static order compare(lp_arena *arena, poly a, poly b) {
  if (lp_poly_equal(a, b)) return SAME;
  poly one = lp_poly_const(arena, 1);
  if (lp_poly_ge(arena, a, lp_poly_add(arena, b, one))) return ABOVE;
  if (lp_poly_ge(arena, b, lp_poly_add(arena, a, one))) return BELOW;
  return UNDECIDED;
}

static poly truth(lp_arena *arena, bool value) {
  return lp_poly_const(arena, value);
}

static poly of_order(lp_arena *arena, order o, bool below, bool same, bool above) {
  return o == UNDECIDED ? NULL : truth(arena, o == BELOW ? below : o == SAME ? same : above);
}

static poly divided(lp_arena *arena, poly a, poly b, bool is_float) {
  int64_t x, y;
  if (lp_poly_is_i64(b, 0)) return NULL;
  poly exact = lp_poly_div(arena, a, b);
  if (exact || is_float || !lp_poly_is_const(a, &x) || !lp_poly_is_const(b, &y)) return exact;
  return y == -1 ? lp_poly_scale(arena, a, -1) : lp_poly_const(arena, x / y);
}

static poly remainder_of(lp_arena *arena, poly a, poly b, bool like_c) {
  int64_t x, y;
  if (lp_poly_is_i64(b, 0)) return NULL;
  if (lp_poly_div(arena, a, b)) return lp_poly_const(arena, 0);
  if (!lp_poly_is_const(a, &x) || !lp_poly_is_const(b, &y)) return NULL;
  if (y == -1) return lp_poly_const(arena, 0);
  int64_t left = x % y;
  return lp_poly_const(arena, !like_c && left != 0 && (left < 0) != (y < 0) ? left + y : left);
}

static poly power(lp_arena *arena, poly a, poly b) {
  int64_t exponent;
  if (!lp_poly_is_const(b, &exponent) || exponent < 0 || exponent > 62) return NULL;
  poly result = lp_poly_const(arena, 1);
  for (int64_t i = 0; i < exponent && result; i++)
    result = lp_poly_mul(arena, result, a);
  return result;
}

static poly logic(lp_arena *arena, lp_kind kind, poly a, poly b) {
  int64_t x, y;
  if (!lp_poly_is_const(a, &x) || !lp_poly_is_const(b, &y)) return NULL;
  return truth(arena, kind == LP_ONNX_And ? x && y : kind == LP_ONNX_Or ? x || y : !x != !y);
}

/* If a size cannot be compared with a number, the number is the length of a table, and the size is assumed to be
 * smaller, as the bounds of slices are. This does not hold for 1, because a batch may have any size. */
static poly least(const lp_infer *c, poly a, poly b) {
  lp_arena *arena = c->m->arena;
  if (lp_poly_ge(arena, b, a)) return a;
  if (lp_poly_ge(arena, a, b)) return b;
  if (lp_poly_is_i64(a, 1) || lp_poly_is_i64(b, 1))
    return lp_infer_is_positive(c, lp_poly_is_i64(a, 1) ? b : a) ? lp_poly_const(arena, 1) : NULL;
  return lp_poly_is_const(a, NULL) ? b : lp_poly_is_const(b, NULL) ? a : NULL;
}

/* Tells whether it is a number minus sizes of integer inputs, as the rest of a table after the tokens is. */
static bool is_left_over(const lp_infer *c, poly a, int64_t *whole) {
  *whole = 0;
  for (int32_t i = 0; i < a->count; i++) {
    lp_symbol symbol = a->term[i].symbol[0];
    if (!symbol)
      *whole = a->term[i].coef;
    else if (a->term[i].coef != -1 || a->term[i].symbol[1] || !lp_infer_sizes_integers(c, symbol))
      return false;
  }
  return true;
}

/* Compared with 0, the rest of a table after the tokens is assumed not to be negative, and there is at least one
 * token. */
static poly greatest(const lp_infer *c, poly a, poly b) {
  int64_t whole;
  if (lp_poly_ge(c->m->arena, b, a)) return b;
  if (lp_poly_ge(c->m->arena, a, b)) return a;
  poly left = lp_poly_is_i64(a, 0) ? b : lp_poly_is_i64(b, 0) ? a : NULL;
  if (!left || !is_left_over(c, left, &whole)) return NULL;
  return whole <= 1 ? lp_poly_const(c->m->arena, 0) : left;
}

static poly binary(const lp_infer *c, poly a, poly b) {
  lp_arena *arena = c->m->arena;
  order o;
  switch (c->op->kind) {
  case LP_ONNX_Add:
  case LP_ONNX_Sum:
    return lp_poly_add(arena, a, b);
  case LP_ONNX_Sub:
    return lp_poly_sub(arena, a, b);
  case LP_ONNX_Mul:
    return lp_poly_mul(arena, a, b);
  case LP_ONNX_Div:
    return divided(arena, a, b, lp_dtype_is_float(lp_infer_in(c, 0).dtype));
  case LP_ONNX_Mod:
    return remainder_of(arena, a, b, lp_op_i64(c->op, "fmod", 0) != 0);
  case LP_ONNX_Pow:
    return power(arena, a, b);
  case LP_ONNX_Min:
    return least(c, a, b);
  case LP_ONNX_Max:
    return greatest(c, a, b);
  case LP_ONNX_And:
  case LP_ONNX_Or:
  case LP_ONNX_Xor:
    return logic(arena, c->op->kind, a, b);
  default:
    break;
  }
  o = compare(arena, a, b);
  switch (c->op->kind) {
  case LP_ONNX_Equal:
    return of_order(arena, o, false, true, false);
  case LP_ONNX_Less:
    return of_order(arena, o, true, false, false);
  case LP_ONNX_LessOrEqual:
    return lp_poly_ge(arena, b, a) ? truth(arena, true) : of_order(arena, o, true, true, false);
  case LP_ONNX_Greater:
    return of_order(arena, o, false, false, true);
  case LP_ONNX_GreaterOrEqual:
    return lp_poly_ge(arena, a, b) ? truth(arena, true) : of_order(arena, o, false, true, true);
  default:
    return NULL;
  }
}

static poly to_bool(lp_arena *arena, poly a) {
  order o = compare(arena, a, lp_poly_const(arena, 0));
  return o == UNDECIDED ? NULL : truth(arena, o != SAME);
}

/* A size keeps its value in types that are wide enough. In other types only numbers that every type can hold are
 * known. */
static poly cast(lp_arena *arena, poly a, lp_dtype dtype) {
  int64_t value;
  if (dtype == LP_BOOL) return to_bool(arena, a);
  bool small = lp_poly_is_const(a, &value) && (value == 0 || value == 1);
  bool narrow = lp_dtype_is_mini(dtype) || (!lp_dtype_is_float(dtype) && lp_dtype_bits(dtype) < 32);
  return narrow && !small ? NULL : a;
}

static poly unary(const lp_infer *c, poly a) {
  lp_arena *arena = c->m->arena;
  poly zero = lp_poly_const(arena, 0);
  int64_t value;
  switch (c->op->kind) {
  case LP_ONNX_Neg:
    return lp_poly_scale(arena, a, -1);
  case LP_ONNX_Abs:
    return lp_poly_ge(arena, a, zero) ? a : lp_poly_ge(arena, zero, a) ? lp_poly_scale(arena, a, -1) : NULL;
  case LP_ONNX_Relu:
    return lp_poly_ge(arena, a, zero) ? a : lp_poly_ge(arena, zero, a) ? zero : NULL;
  case LP_ONNX_Floor:
  case LP_ONNX_Ceil:
  case LP_ONNX_Round:
    return a;
  case LP_ONNX_Not:
    return lp_poly_is_const(a, &value) ? truth(arena, value == 0) : NULL;
  case LP_ONNX_Cast:
  case LP_ONNX_CastLike:
    return cast(arena, a, lp_op_out(c->op, 0)->type.dtype);
  default:
    return NULL;
  }
}

/* ---- elementwise ---- */

/* The element of operand `index` that broadcasts to the result's flat element `at`. */
static bool broadcast_element(const lp_infer *c, int32_t index, int64_t at, poly *out) {
  const poly *known;
  int32_t count;
  if (!lp_infer_known(c, index, &known, &count)) return false;
  lp_type in = lp_infer_in(c, index), result = lp_op_out(c->op, 0)->type;
  int64_t stride = 1, offset = 0;
  for (int32_t i = 1; i <= result.rank; i++) {
    int64_t size, own;
    if (!lp_type_static_dim(result, -i, &size)) return false;
    if (i <= in.rank) {
      if (!lp_type_static_dim(in, -i, &own)) return false;
      if (own > 1) offset += at % size * stride;
      stride *= own;
    }
    at /= size;
  }
  if (offset >= count) return false;
  *out = known[offset];
  return true;
}

const lp_poly *lp_infer_element(const lp_infer *c, int64_t at) {
  poly a, b;
  int64_t condition;
  if (c->op->kind == LP_ONNX_Where) {
    if (!broadcast_element(c, 0, at, &a) || !lp_poly_is_const(a, &condition)) return NULL;
    return broadcast_element(c, condition ? 1 : 2, at, &b) ? b : NULL;
  }
  if (!broadcast_element(c, 0, at, &a)) return NULL;
  if (c->op->in_count == 1 || c->op->kind == LP_ONNX_CastLike)
    return c->op->kind == LP_ONNX_Min || c->op->kind == LP_ONNX_Max || c->op->kind == LP_ONNX_Sum ? a : unary(c, a);
  for (int32_t i = 1; i < c->op->in_count && a; i++)
    a = broadcast_element(c, i, at, &b) ? binary(c, a, b) : NULL;
  return a;
}
