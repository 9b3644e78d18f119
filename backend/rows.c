/* Row-wise operators and the rows of values, for batched passes. */
#include "backend/rows.h"

#include "backend/values.h"
#include "base/poly.h"

/* The number of leading axes that count rows, -1 when the type has no rows. They are b, then s or r, or one axis of
 * both; axes of 1 may stand among them. */
static int32_t rows_lead(const lp_module *module, lp_type type, lp_rows *rows) {
  lp_module *m = (lp_module *)(uintptr_t)module; /* the polynomials are allocated in its arena */
  const lp_poly *b = lp_dim_symbol(m, "b"), *one = lp_dim_const(m, 1), *lead = one;
  const lp_poly *all[] = {lp_poly_mul(m->arena, b, lp_dim_symbol(m, "s")),
                          lp_poly_mul(m->arena, b, lp_dim_symbol(m, "r"))};
  *rows = LP_ROWS_NONE;
  for (int32_t i = 0; i < type.rank; i++) {
    lead = lp_poly_mul(m->arena, lead, type.dim[i]);
    *rows = lp_poly_equal(lead, all[0]) ? LP_ROWS_NEW : lp_poly_equal(lead, all[1]) ? LP_ROWS_LAST : LP_ROWS_NONE;
    if (*rows != LP_ROWS_NONE) return i + 1;
    if (!lp_poly_equal(lead, b) && !lp_poly_equal(lead, one)) break;
  }
  return -1;
}

/* The number of elements of one row; false when a size is not constant. */
static bool row_elements(lp_type type, int32_t lead, int64_t *elements) {
  *elements = 1;
  for (int32_t i = lead; i < type.rank; i++) {
    int64_t size;
    if (!lp_type_static_dim(type, i, &size) || size < 1) return false;
    *elements *= size;
  }
  return true;
}

lp_rows lp_type_rows(const lp_module *module, lp_type type, int64_t *bytes) {
  lp_rows rows;
  int32_t lead = rows_lead(module, type, &rows);
  if (lead < 0 || lp_dtype_bits(type.dtype) < 8 || !row_elements(type, lead, bytes)) return LP_ROWS_NONE;
  *bytes *= lp_dtype_bits(type.dtype) / 8;
  return rows;
}

/* The value's rows, when they are the same for its readers and in memory; `inner` is the number of axes of one row. */
static lp_rows read_rows(const lp_module *module, lp_value *value, int32_t *inner) {
  lp_rows rows;
  int64_t bytes = 0;
  *inner = value->type.rank - rows_lead(module, value->type, &rows);
  if (lp_value_cache(value) || lp_type_rows(module, value->type, &bytes) == LP_ROWS_NONE) return LP_ROWS_NONE;
  return lp_type_rows(module, lp_value_base(value)->type, &bytes) == rows ? rows : LP_ROWS_NONE;
}

lp_rows lp_value_rows(const lp_module *module, lp_value *value) {
  int32_t inner;
  return read_rows(module, value, &inner);
}

/* `inner`: the number of axes of one row of the result. */
static bool keeps_rows(const lp_op *op, int32_t inner) {
  if (lp_op_has(op, LP_ELEMENTWISE)) return true;
  if (lp_op_has(op, LP_ROWWISE)) return inner > 0;
  if (op->kind == LP_OP_TOPK) return inner > 0 && lp_op_i64(op, "axis", 0) == op->out[0]->type.rank - 1;
  if (op->kind == LP_OP_ROTARY) return lp_streq(lp_op_str(op, "layout", "bshd"), "bshd");
  return op->kind == LP_OP_GATHER && lp_op_i64(op, "axis", 0) == 0 &&
         lp_value_is_constant(lp_value_base(lp_op_in(op, 0)));
}

/* Elementwise operators broadcast from the last axis, so their operands need rows of as many axes as the result's. */
bool lp_op_is_joint(const lp_module *module, const lp_op *op) {
  int32_t inner, result_inner = 0;
  lp_rows rows = op->out_count > 0 ? read_rows(module, op->out[0], &result_inner) : LP_ROWS_NONE;
  if (rows == LP_ROWS_NONE || !keeps_rows(op, result_inner)) return false;
  for (int32_t i = 1; i < op->out_count; i++)
    if (read_rows(module, op->out[i], &inner) != rows || inner != result_inner) return false;
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *value = lp_op_in(op, i);
    if (!value || lp_value_is_constant(lp_value_base(value))) continue;
    if (read_rows(module, value, &inner) != rows || (lp_op_has(op, LP_ELEMENTWISE) && inner != result_inner))
      return false;
  }
  return true;
}
