/* Helpers of shape rules: checks of operands, setting of results, messages. */
#include "base/poly.h"
#include "ir/infer/infer.h"

/* ---- messages ---- */

lp_status lp_infer_fail(const lp_infer *c, const char *format, ...) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  va_list args;
  va_start(args, format);
  lp_buf_vprintf(&text, format, args);
  va_end(args);
  return lp_error(c->diag, c->op->loc, "%s", lp_buf_text(&text));
}

const char *lp_infer_text(const lp_infer *c, const lp_poly *dim) {
  if (!dim) return "?";
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_poly_print(dim, &c->m->symbols, &text);
  return lp_arena_strdup(c->m->arena, lp_buf_text(&text));
}

/* ---- operands ---- */

bool lp_infer_has(const lp_infer *c, int32_t index) {
  return lp_op_in(c->op, index) != NULL;
}

lp_status lp_infer_need(const lp_infer *c, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    if (!lp_infer_has(c, i)) return lp_infer_fail(c, "input %d is missing", i);
  return LP_OK;
}

lp_type lp_infer_in(const lp_infer *c, int32_t index) {
  return lp_op_in(c->op, index)->type;
}

lp_shape lp_infer_shape(const lp_infer *c, int32_t index) {
  lp_type type = lp_infer_in(c, index);
  lp_shape shape = {.rank = type.rank};
  for (int32_t i = 0; i < type.rank; i++)
    shape.dim[i] = type.dim[i];
  return shape;
}

lp_status lp_infer_rank(const lp_infer *c, int32_t index, int32_t rank) {
  int32_t found = lp_infer_in(c, index).rank;
  return found == rank ? LP_OK : lp_infer_fail(c, "input %d has %d axes, %d wanted", index, found, rank);
}

lp_status lp_infer_min_rank(const lp_infer *c, int32_t index, int32_t rank) {
  int32_t found = lp_infer_in(c, index).rank;
  return found >= rank ? LP_OK : lp_infer_fail(c, "input %d has %d axes, at least %d wanted", index, found, rank);
}

lp_status lp_infer_same_dtype(const lp_infer *c, int32_t first, int32_t second) {
  lp_dtype a = lp_infer_in(c, first).dtype, b = lp_infer_in(c, second).dtype;
  if (a == b) return LP_OK;
  return lp_infer_fail(c, "inputs %d and %d differ in type: %s and %s", first, second, lp_dtype_name(a),
                       lp_dtype_name(b));
}

lp_status lp_infer_integer(const lp_infer *c, int32_t index) {
  lp_dtype dtype = lp_infer_in(c, index).dtype;
  if (dtype != LP_BOOL && !lp_dtype_is_float(dtype)) return LP_OK;
  return lp_infer_fail(c, "input %d is of type %s, integers wanted", index, lp_dtype_name(dtype));
}

lp_status lp_infer_index(const lp_infer *c, int32_t index) {
  lp_dtype dtype = lp_infer_in(c, index).dtype;
  if (dtype == LP_I32 || dtype == LP_I64) return LP_OK;
  return lp_infer_fail(c, "input %d is of type %s, an index of i32 or i64 wanted", index, lp_dtype_name(dtype));
}

lp_status lp_infer_axis(const lp_infer *c, int64_t axis, int32_t rank, bool end, int32_t *out) {
  int64_t last = end ? rank : rank - 1;
  if (axis < -rank || axis > last) return lp_infer_fail(c, "axis %" PRId64 " of a tensor with %d axes", axis, rank);
  *out = (int32_t)(axis < 0 ? axis + rank : axis);
  return LP_OK;
}

/* ---- results ---- */

lp_status lp_infer_push(const lp_infer *c, lp_shape *shape, const lp_poly *dim) {
  if (shape->rank == LP_MAX_RANK) return lp_infer_fail(c, "its result has more than %d axes", LP_MAX_RANK);
  shape->dim[shape->rank++] = dim;
  return LP_OK;
}

/* The bytes of constant dimensions must fit 64 bits, or later sizes overflow; also beside an axis of size 0, because
 * products of some axes leave that one out. */
static bool is_countable(const lp_shape *shape) {
  int64_t product = 8, value;
  bool fits = true;
  for (int32_t i = 0; i < shape->rank; i++) {
    if (!lp_poly_is_const(shape->dim[i], &value)) continue;
    fits = fits && (value == 0 || lp_i64_mul(product, value, &product));
  }
  return fits;
}

lp_status lp_infer_set(const lp_infer *c, int32_t index, lp_dtype dtype, const lp_shape *shape) {
  lp_value *out = lp_op_out(c->op, index);
  int64_t value;
  if (!out) return LP_OK;
  for (int32_t i = 0; i < shape->rank; i++) {
    if (!shape->dim[i]) return lp_infer_fail(c, "axis %d of its result overflows", i);
    if (lp_poly_is_const(shape->dim[i], &value) && value < 0)
      return lp_infer_fail(c, "axis %d of its result would have the size %" PRId64, i, value);
  }
  if (!is_countable(shape)) return lp_infer_fail(c, "the size of its result overflows");
  lp_type type = {.dtype = dtype, .rank = shape->rank, .dim = shape->dim};
  if (!lp_type_equal(out->type, type)) out->type = lp_type_make(c->m, dtype, shape->rank, shape->dim);
  return LP_OK;
}
