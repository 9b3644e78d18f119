/* Tells whether an operator computes rows independently of each other. */
#include "frontend/onnx/rows.h"

static bool any_has(const lp_poly *const *list, int32_t count, lp_symbol rows) {
  for (int32_t i = 0; i < count; i++)
    if (list[i] && lp_poly_has(list[i], rows)) return true;
  return false;
}

bool lp_rows_in_shape(const lp_value *value, lp_symbol rows) {
  return value && any_has(value->type.dim, value->type.rank, rows);
}

bool lp_rows_in(const lp_value *value, lp_symbol rows) {
  return lp_rows_in_shape(value, rows) || (value && value->known && any_has(value->known, value->known_count, rows));
}

int32_t lp_rows_axis(const lp_value *value, lp_symbol rows) {
  int32_t found = -1;
  for (int32_t i = 0; value && i < value->type.rank; i++) {
    const lp_poly *dim = value->type.dim[i];
    if (!lp_poly_has(dim, rows)) continue;
    bool lone = dim->count == 1 && dim->term[0].coef == 1 && !dim->term[0].symbol[1];
    if (found >= 0 || !lone) return -1;
    found = i;
  }
  return found;
}

/* ---- one operator ------------------------------------------------------------------------------------------------ */

/* An operator, the symbol for the number of rows, and the axis of its first result that counts them. */
typedef struct {
  const lp_op *op;
  lp_symbol rows;
  int32_t out;
} step;

static int32_t in_axis(const step *s, int32_t index) {
  return lp_rows_axis(lp_op_in(s->op, index), s->rows);
}

static int32_t in_rank(const step *s, int32_t index) {
  return lp_op_in(s->op, index)->type.rank;
}

/* The axis that the attribute names, of a tensor of `rank` axes. */
static int32_t axis_of(const step *s, int64_t otherwise, int32_t rank) {
  int64_t axis = lp_op_i64(s->op, "axis", otherwise);
  return (int32_t)(axis < 0 ? axis + rank : axis);
}

/* The axis that counts the rows, counted from the right, as broadcasting aligns axes. */
static int32_t from_right(const step *s, int32_t index) {
  return in_rank(s, index) - in_axis(s, index);
}

static bool only_first_has_rows(const step *s) {
  for (int32_t i = 1; i < s->op->in_count; i++)
    if (lp_rows_in_shape(lp_op_in(s->op, i), s->rows)) return false;
  return lp_rows_in_shape(lp_op_in(s->op, 0), s->rows);
}

static bool aligned(const step *s) {
  for (int32_t i = 0; i < s->op->in_count; i++)
    if (lp_rows_in_shape(lp_op_in(s->op, i), s->rows) && from_right(s, i) != s->op->out[0]->type.rank - s->out)
      return false;
  return true;
}

static const lp_poly *leading(const step *s, const lp_value *value, int32_t axis) {
  lp_arena *arena = s->op->block->module->arena;
  const lp_poly *product = lp_poly_const(arena, 1);
  for (int32_t i = 0; i < axis; i++)
    product = lp_poly_mul(arena, product, value->type.dim[i]);
  return product;
}

static bool reshapes_rows(const step *s) {
  const lp_value *x = lp_op_in(s->op, 0);
  return in_axis(s, 0) >= 0 && lp_poly_equal(leading(s, x, in_axis(s, 0)), leading(s, s->op->out[0], s->out));
}

/* Tells whether the operator takes rows of a table by an index with rows, or elements along another axis of data with
 * rows. */
static bool gathers(const step *s) {
  bool data = lp_rows_in_shape(lp_op_in(s->op, 0), s->rows), index = lp_rows_in_shape(lp_op_in(s->op, 1), s->rows);
  int32_t axis = axis_of(s, 0, in_rank(s, 0));
  if (s->op->kind == LP_ONNX_GatherElements)
    return data && index && in_axis(s, 0) == in_axis(s, 1) && in_axis(s, 0) != axis;
  if (s->op->kind == LP_ONNX_GatherND)
    return !data && in_axis(s, 1) < in_rank(s, 1) - 1 && lp_op_i64(s->op, "batch_dims", 0) == 0;
  return data != index && (index || in_axis(s, 0) != axis);
}

/* Tells whether the product does not sum over rows. */
static bool multiplies(const step *s) {
  bool second = lp_rows_in_shape(lp_op_in(s->op, 1), s->rows);
  if (lp_rows_in_shape(lp_op_in(s->op, 0), s->rows) && from_right(s, 0) == 1) return false;
  return !second || (from_right(s, 1) > 2 && from_right(s, 1) == s->op->out[0]->type.rank - s->out);
}

static bool multiplies_rows_of_first(const step *s) {
  return only_first_has_rows(s) && in_axis(s, 0) < in_rank(s, 0) - 1;
}

static bool slices_others(const step *s) {
  lp_tensor steps;
  int64_t count = 0;
  if (!only_first_has_rows(s) || in_axis(s, 0) != s->out) return false;
  if (!lp_op_in(s->op, 4)) return true;
  if (!lp_value_constant(lp_op_in(s->op, 4), &steps) || !lp_type_static_numel(steps.type, &count)) return false;
  for (int64_t i = 0; i < count; i++)
    if (lp_tensor_i64(&steps, i) != 1) return false;
  return true;
}

static bool concatenates_others(const step *s) {
  for (int32_t i = 0; i < s->op->in_count; i++)
    if (in_axis(s, i) != s->out) return false;
  return s->out != axis_of(s, 0, s->op->out[0]->type.rank);
}

/* Tells whether the rows lie before the axes that the norm runs over, those from the attribute `axis` on. */
static bool before_axis(const step *s, int64_t otherwise) {
  return only_first_has_rows(s) && in_axis(s, 0) < axis_of(s, otherwise, in_rank(s, 0));
}

static bool softens_others(const step *s) {
  int32_t axis = axis_of(s, -1, in_rank(s, 0));
  return lp_op_bool(s->op, "flatten", false) ? in_axis(s, 0) < axis : in_axis(s, 0) != axis;
}

static bool keeps(const step *s) {
  switch (s->op->kind) {
  case LP_ONNX_Identity:
  case LP_ONNX_Transpose:
  case LP_ONNX_Unsqueeze:
  case LP_ONNX_Squeeze:
  case LP_ONNX_MsFastGelu:
  case LP_ONNX_MsGelu:
  case LP_ONNX_MsBiasGelu:
  case LP_ONNX_MsQuickGelu:
  case LP_ONNX_ReduceSum:
  case LP_ONNX_ReduceMean:
  case LP_ONNX_ReduceMax:
  case LP_ONNX_ReduceMin:
    return only_first_has_rows(s); /* the result still has the axis */
  case LP_ONNX_Reshape:
  case LP_ONNX_Flatten:
    return reshapes_rows(s);
  case LP_ONNX_Expand:
    return aligned(s);
  case LP_ONNX_ConstantOfShape:
    return true;
  case LP_ONNX_Gather:
  case LP_ONNX_GatherElements:
  case LP_ONNX_GatherND:
    return gathers(s);
  case LP_ONNX_MatMul:
    return multiplies(s);
  case LP_ONNX_Gemm:
    return only_first_has_rows(s) && lp_op_i64(s->op, "transA", 0) == 0 && in_axis(s, 0) == 0;
  case LP_ONNX_MsFusedMatMul:
    return multiplies_rows_of_first(s) && !lp_op_i64(s->op, "transA", 0) && !lp_op_i64(s->op, "transBatchA", 0);
  case LP_ONNX_MatMulInteger:
  case LP_ONNX_MsMatMulNBits:
  case LP_ONNX_MsMatMulBnb4:
  case LP_ONNX_MsMatMulIntegerToFloat:
  case LP_ONNX_DequantizeLinear:
    return multiplies_rows_of_first(s);
  case LP_ONNX_Slice:
    return slices_others(s);
  case LP_ONNX_Split:
    return only_first_has_rows(s) && in_axis(s, 0) != axis_of(s, 0, in_rank(s, 0));
  case LP_ONNX_Concat:
    return concatenates_others(s);
  case LP_ONNX_Softmax:
  case LP_ONNX_LogSoftmax:
    return softens_others(s);
  case LP_ONNX_LayerNormalization:
  case LP_ONNX_RMSNormalization:
  case LP_ONNX_SimplifiedLayerNormalization:
  case LP_ONNX_MsSimplifiedLayerNormalization:
    return before_axis(s, -1);
  default:
    return lp_op_has(s->op, LP_ELEMENTWISE) && aligned(s);
  }
}

/* Tells whether the operand is a shape of the result, and not data. */
static bool is_shape_operand(lp_kind kind, int32_t index) {
  return (kind == LP_ONNX_ConstantOfShape && index == 0) ||
         (index == 1 && (kind == LP_ONNX_Reshape || kind == LP_ONNX_Expand)) || (kind == LP_ONNX_Slice && index == 2);
}

bool lp_rows_kept(const lp_op *op, lp_symbol rows) {
  bool sizes = op->out_count > 0;
  for (int32_t i = 0; i < op->out_count; i++)
    sizes = sizes && op->out[i]->known;
  if (sizes) return true;
  for (int32_t i = 0; i < op->in_count; i++) {
    const lp_value *x = lp_op_in(op, i);
    if (lp_rows_in_shape(x, rows) ? lp_rows_axis(x, rows) < 0 : lp_rows_in(x, rows) && !is_shape_operand(op->kind, i))
      return false;
  }
  if (op->out_count == 0) return false;
  for (int32_t i = 0; i < op->out_count; i++)
    if (lp_rows_axis(op->out[i], rows) < 0) return false;
  step s = {op, rows, lp_rows_axis(op->out[0], rows)};
  return keeps(&s);
}
