/* Rules of fold that compute nothing: each finds a value that equals the operator's result. */
#include "passes/build.h"
#include "passes/recognise/fold.h"

/* ---- aliases ----------------------------------------------------------------------------------------------------- */

/* A chain of reshapes that ends in the shape it began with. */
static lp_value *through_views(const lp_op *op) {
  lp_value *value = lp_op_in(op, 0);
  while (value && !lp_type_equal(value->type, op->out[0]->type))
    value = value->def && lp_op_has(value->def, LP_ALIAS) ? lp_op_in(value->def, 0) : NULL;
  return value;
}

/* A weight under another shape is a weight of any size, because no data is read. */
static lp_value *viewed_constant(const lp_fold *f, lp_op *op) {
  int64_t count;
  lp_value *x = lp_op_in(op, 0);
  if (!lp_value_is_constant(x) || !lp_type_static_numel(op->out[0]->type, &count)) return NULL;
  lp_build build = lp_build_at(f->module, op, f->diag);
  return lp_build_reshaped_constant(&build, x, op->out[0]->type);
}

static lp_value *view(const lp_fold *f, lp_op *op) {
  lp_value *same = through_views(op);
  return same ? same : viewed_constant(f, op);
}

static bool same_type(const lp_op *op, const lp_value *value) {
  return value && lp_type_equal(value->type, op->out[0]->type);
}

/* A step other than 1 could reverse an axis and keep its size. */
static bool takes_all(const lp_op *op) {
  const lp_value *steps = lp_op_in(op, 4);
  for (int32_t i = 0; steps && steps->known && i < steps->known_count; i++) {
    int64_t step;
    if (!lp_known_i64(steps, i, &step) || step != 1) return false;
  }
  return !steps || steps->known;
}

/* Expand, Tile or Slice that keeps every size. */
static lp_value *unmoved(const lp_op *op) {
  lp_value *x = lp_op_in(op, 0);
  if (!same_type(op, x)) return NULL;
  return op->kind == LP_ONNX_Slice && !takes_all(op) ? NULL : x;
}

/* The part of a Concat that has the size of the whole, where the others are empty. */
static lp_value *only_part(const lp_op *op) {
  for (int32_t i = 0; i < op->in_count; i++)
    if (same_type(op, lp_op_in(op, i))) return lp_op_in(op, i);
  return NULL;
}

/* ---- transposes -------------------------------------------------------------------------------------------------- */

static void read_perm(const lp_op *op, int64_t *perm) {
  const lp_attr *attr = lp_op_attr(op, "perm");
  int32_t rank = op->out[0]->type.rank;
  for (int32_t i = 0; i < rank; i++)
    perm[i] = attr ? attr->is[i] : rank - 1 - i;
}

static bool is_identity(const int64_t *perm, int32_t rank) {
  for (int32_t i = 0; i < rank; i++)
    if (perm[i] != i) return false;
  return true;
}

/* Two transposes are joined into one; a transpose that keeps the order is removed. */
static lp_value *transposed(lp_fold *f, lp_op *op) {
  int64_t outer[LP_MAX_RANK] = {0}, inner[LP_MAX_RANK] = {0};
  int32_t rank = op->out[0]->type.rank;
  lp_value *x = lp_op_in(op, 0);
  read_perm(op, outer);
  if (is_identity(outer, rank)) return x;
  if (!lp_op_is(x->def, LP_ONNX_Transpose)) return NULL;
  read_perm(x->def, inner);
  for (int32_t i = 0; i < rank; i++)
    outer[i] = inner[outer[i]];
  lp_op_set_i64s(f->module, op, "perm", outer, rank);
  lp_op_set_in(op, 0, lp_op_in(x->def, 0));
  f->changed = true;
  return is_identity(outer, rank) ? lp_op_in(op, 0) : NULL;
}

/* ---- neutral operands -------------------------------------------------------------------------------------------- */

enum { MAX_DEPTH = 16, MAX_ELEMENTS = 4096 };

static bool same_element(const lp_tensor *tensor, double *out) {
  int64_t count;
  if (!lp_type_static_numel(tensor->type, &count) || count < 1 || count > MAX_ELEMENTS) return false;
  *out = lp_tensor_f64(tensor, 0);
  for (int64_t i = 1; i < count; i++)
    if (lp_tensor_f64(tensor, i) != *out) return false;
  return true;
}

static bool keeps_elements(const lp_op *op) {
  switch (op->kind) {
  case LP_ONNX_Expand:
  case LP_ONNX_Tile:
  case LP_ONNX_Transpose:
  case LP_ONNX_Slice:
  case LP_ONNX_Gather:
  case LP_ONNX_GatherElements:
  case LP_ONNX_GatherND:
    return true;
  default:
    return lp_op_has(op, LP_ALIAS);
  }
}

/* Tells whether all elements of the value equal one number, at any size. */
static bool is_uniform(const lp_value *value, int depth, double *out) {
  lp_tensor tensor;
  if (!value || !value->def || depth > MAX_DEPTH) return false;
  if (lp_value_constant(value, &tensor)) return same_element(&tensor, out);
  const lp_op *op = value->def;
  if (op->kind == LP_ONNX_ConstantOfShape) {
    const lp_attr *fill = lp_op_attr(op, "value");
    *out = 0;
    return !fill || same_element(&fill->tensor, out);
  }
  if (op->kind == LP_ONNX_Cast) {
    if (!is_uniform(lp_op_in(op, 0), depth + 1, out)) return false;
    if (value->type.dtype == LP_BOOL) *out = *out != 0;
    return *out == 0 || *out == 1; /* every type can represent 0 and 1 */
  }
  return keeps_elements(op) && is_uniform(lp_op_in(op, 0), depth + 1, out);
}

static bool is_uniformly(const lp_value *value, double wanted) {
  double found;
  return is_uniform(value, 0, &found) && found == wanted;
}

/* Returns x when the other operand neither changes nor broadcasts it. */
static lp_value *without_neutral(const lp_op *op, double neutral) {
  lp_value *x = lp_op_in(op, 0), *y = lp_op_in(op, 1);
  if (same_type(op, x) && is_uniformly(y, neutral)) return x;
  return lp_op_has(op, LP_COMMUTES) && same_type(op, y) && is_uniformly(x, neutral) ? y : NULL;
}

static lp_value *selected(const lp_op *op) {
  double condition;
  if (!is_uniform(lp_op_in(op, 0), 0, &condition)) return NULL;
  lp_value *taken = lp_op_in(op, condition != 0 ? 1 : 2);
  return same_type(op, taken) ? taken : NULL;
}

/* ---- all rules --------------------------------------------------------------------------------------------------- */

static lp_value *neutral_rules(const lp_op *op) {
  switch (op->kind) {
  case LP_ONNX_Add:
  case LP_ONNX_Or:
  case LP_ONNX_Sub:
    return without_neutral(op, 0);
  case LP_ONNX_Mul:
  case LP_ONNX_And:
  case LP_ONNX_Div:
  case LP_ONNX_Pow:
    return without_neutral(op, 1);
  case LP_ONNX_Where:
    return selected(op);
  default:
    return NULL;
  }
}

lp_value *lp_fold_simplify(lp_fold *f, lp_op *op) {
  lp_value *x = lp_op_in(op, 0);
  switch (op->kind) {
  case LP_ONNX_Identity:
    return x;
  case LP_ONNX_Dropout:
    return op->out_count > 1 && op->out[1]->uses ? NULL : x;
  case LP_ONNX_Cast:
  case LP_ONNX_CastLike:
    return same_type(op, x) ? x : NULL;
  case LP_ONNX_Reshape:
  case LP_ONNX_Flatten:
  case LP_ONNX_Squeeze:
  case LP_ONNX_Unsqueeze:
    return view(f, op);
  case LP_ONNX_Expand:
  case LP_ONNX_Tile:
  case LP_ONNX_Slice:
    return unmoved(op);
  case LP_ONNX_Transpose:
    return transposed(f, op);
  case LP_ONNX_Concat:
    return only_part(op);
  case LP_ONNX_Sum:
  case LP_ONNX_Mean:
  case LP_ONNX_Min:
  case LP_ONNX_Max:
    return op->in_count == 1 ? x : NULL;
  case LP_ONNX_Split:
    return op->out_count == 1 && same_type(op, x) ? x : NULL;
  default:
    return neutral_rules(op);
  }
}
