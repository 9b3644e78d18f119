/* Finds the operators between one NonZero and the sum of its rows, and what they have to do with its coordinates. */
#include "frontend/onnx/bound.h"
#include "frontend/onnx/build.h"

/* ---- operators from NonZero to the sum --------------------------------------------------------------------------- */

bool lp_bound_is_sum(lp_kind kind) {
  return kind == LP_ONNX_ScatterElements || kind == LP_ONNX_ScatterND;
}

static int by_order(const void *a, const void *b) {
  const lp_op *const *x = a, *const *y = b;
  return ((*x)->order > (*y)->order) - ((*x)->order < (*y)->order);
}

/* Marks each operator by its scratch pointer, so that it is collected once. */
void lp_bound_collect(lp_bound *b) {
  lp_vec_push(&b->users, b->source);
  b->source->scratch = b;
  for (size_t i = 0; i < b->users.count; i++)
    for (int32_t k = 0; k < b->users.data[i]->out_count; k++) {
      const lp_value *value = b->users.data[i]->out[k];
      for (const lp_use *use = lp_rows_in(value, b->rows) ? value->uses : NULL; use; use = use->next) {
        if (use->owner->scratch == b) continue;
        use->owner->scratch = b;
        lp_vec_push(&b->users, use->owner);
      }
    }
  qsort(b->users.data, b->users.count, sizeof *b->users.data, by_order);
}

static bool are_own_rows(const lp_bound *b, const lp_op *op) {
  for (int32_t i = 0; i < op->in_count; i++) {
    const lp_value *x = lp_op_in(op, i);
    if (lp_rows_in(x, b->rows) && !(x->def && x->def->scratch == b)) return false;
  }
  return true;
}

/* Tells whether `data` has no rows, and `index` and `updates` have rows on the axis that the operator indexes. */
static bool is_own_sum(const lp_bound *b, const lp_op *op) {
  const lp_value *data = lp_op_in(op, 0), *index = lp_op_in(op, 1), *updates = lp_op_in(op, 2);
  int64_t axis = op->kind == LP_ONNX_ScatterND ? 0 : lp_op_i64(op, "axis", 0);
  if (axis < 0) axis += data->type.rank;
  return !lp_rows_in(data, b->rows) && lp_rows_axis(index, b->rows) == axis && lp_rows_axis(updates, b->rows) == axis;
}

const lp_op *lp_bound_find_other(const lp_bound *b) {
  LP_FOR_VEC_REFS(lp_op, op, &b->users) {
    bool good = lp_bound_is_sum(op->kind) ? is_own_sum(b, op) : lp_rows_kept(op, b->rows);
    if (op != b->source && !(good && are_own_rows(b, op))) return op;
  }
  return NULL;
}

void lp_bound_forget(lp_bound *b) {
  for (size_t i = 0; i < b->users.count; i++) {
    b->users.data[i]->scratch = NULL;
    for (int32_t k = 0; k < b->users.data[i]->out_count; k++)
      b->users.data[i]->out[k]->scratch = NULL;
  }
  lp_vec_free(&b->users);
}

/* ---- coordinates of rows ----------------------------------------------------------------------------------------- */

static const lp_row_place nowhere = {-1, -1};

lp_row_place lp_bound_place(const lp_value *value) {
  return value && value->scratch ? *(const lp_row_place *)value->scratch : nowhere;
}

/* The place of a Gather that takes one coordinate of each row from a value with all coordinates. */
static lp_row_place picked(const lp_op *op, lp_row_place from, const lp_value *index, int32_t rank) {
  lp_tensor tensor;
  int64_t count, axis = lp_op_i64(op, "axis", 0);
  if (axis < 0) axis += lp_op_in(op, 0)->type.rank;
  if (axis != from.matrix_axis || !lp_value_constant(index, &tensor)) return nowhere;
  if (!lp_type_static_numel(tensor.type, &count) || count != 1) return nowhere;
  int64_t at = lp_tensor_i64(&tensor, 0);
  return (lp_row_place){(int32_t)(at < 0 ? at + rank : at), -1};
}

/* The place of a Slice that takes one coordinate of each row. */
static lp_row_place sliced(const lp_op *op, lp_row_place from) {
  const lp_type type = op->out[0]->type;
  int64_t at, one, axis = 0;
  if (!lp_import_number(lp_op_in(op, 1), &at) || (lp_op_in(op, 3) && !lp_import_number(lp_op_in(op, 3), &axis)))
    return nowhere;
  if (axis < 0) axis += type.rank;
  if (axis != from.matrix_axis || !lp_type_static_dim(type, (int32_t)axis, &one) || one != 1 || at < 0) return nowhere;
  return (lp_row_place){(int32_t)at, -1};
}

static lp_row_place place_of_result(const lp_bound *b, const lp_op *op, int32_t index) {
  lp_row_place from = lp_bound_place(lp_op_in(op, 0));
  int32_t rank = lp_op_in(b->source, 0)->type.rank;
  const lp_attr *perm = lp_op_attr(op, "perm");
  switch (op->kind) {
  case LP_ONNX_NonZero:
    return rank == 1 ? (lp_row_place){0, -1} : (lp_row_place){-1, 0};
  case LP_ONNX_Identity:
    return from;
  case LP_ONNX_Transpose:
    if (from.matrix_axis >= 0) from.matrix_axis = perm && perm->is[0] == 0 ? from.matrix_axis : 1 - from.matrix_axis;
    return from;
  case LP_ONNX_Split:
    if (from.matrix_axis >= 0 && op->out_count == rank) from = (lp_row_place){index, -1};
    return from;
  case LP_ONNX_Slice:
    return from.matrix_axis >= 0 ? sliced(op, from) : nowhere;
  case LP_ONNX_Gather:
    return from.matrix_axis >= 0 ? picked(op, from, lp_op_in(op, 1), rank) : nowhere;
  case LP_ONNX_Cast:
    return lp_op_i64(op, "to", 0) == lp_dtype_onnx(LP_I64) ? from : nowhere;
  case LP_ONNX_Squeeze:
  case LP_ONNX_Unsqueeze:
  case LP_ONNX_Reshape:
  case LP_ONNX_Expand:
    return from.coordinate >= 0 ? from : nowhere;
  default:
    return nowhere;
  }
}

void lp_bound_find_places(const lp_bound *b) {
  for (size_t i = 0; i < b->users.count; i++)
    for (int32_t k = 0; k < b->users.data[i]->out_count; k++) {
      lp_value *value = b->users.data[i]->out[k];
      if (!lp_rows_in_shape(value, b->rows)) continue;
      lp_row_place *at = LP_NEW(b->im->scratch, lp_row_place);
      *at = place_of_result(b, b->users.data[i], k);
      value->scratch = at;
    }
}

bool lp_bound_is_token(const lp_bound *b, const lp_value *value) {
  return value == b->token || lp_bound_place(value).coordinate == b->token_axis;
}

lp_value *lp_bound_choice_in(const lp_bound *b, const lp_value *index, const lp_poly *choices) {
  const lp_op *sum = index->def;
  for (int32_t i = 0; i < 2 && sum && sum->kind == LP_ONNX_Add; i++) {
    lp_value *choice = lp_op_in(sum, i);
    const lp_op *product = lp_op_in(sum, 1 - i)->def;
    if (lp_bound_place(choice).coordinate != 1 - b->token_axis || !product || product->kind != LP_ONNX_Mul) continue;
    for (int32_t k = 0; k < 2; k++) {
      const lp_value *factor = lp_op_in(product, k);
      int64_t number, wanted;
      bool counts = (factor->known_count == 1 && lp_poly_equal(factor->known[0], choices)) ||
                    (lp_import_number(factor, &number) && lp_poly_is_const(choices, &wanted) && number == wanted);
      if (counts && lp_bound_is_token(b, lp_op_in(product, 1 - k))) return choice;
    }
  }
  return NULL;
}
