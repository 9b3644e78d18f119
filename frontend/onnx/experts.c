/* Finds the axis of an expert's mask that counts a token's choices. Exporters compare the indices of a TopK with the
 * expert's number, by OneHot or Equal, so that a token chooses each expert at most once. */
#include "frontend/onnx/rows.h"

/* The two axes of the mask, followed back to a value from which it is computed. */
typedef struct {
  const lp_value *value;
  int32_t axis[2];
  bool compared;          /* the value is an operand of the comparison, or before it */
  const lp_value *number; /* Equal's other operand, and the mask's axes in it, from the right; NULL: OneHot */
  int32_t number_axis[2];
} trace;

static int32_t axis_of(const lp_op *op, int64_t otherwise, int32_t rank) {
  int64_t axis = lp_op_i64(op, "axis", otherwise);
  return (int32_t)(axis < 0 ? axis + rank : axis);
}

/* The axes that a Squeeze or Unsqueeze names, of a tensor of `rank` axes. */
static bool named_axes(const lp_op *op, int32_t rank, bool named[LP_MAX_RANK]) {
  lp_tensor axes;
  int64_t count;
  if (!lp_op_in(op, 1) || !lp_value_constant(lp_op_in(op, 1), &axes) || !lp_type_static_numel(axes.type, &count))
    return false;
  for (int64_t i = 0; i < count; i++) {
    int64_t axis = lp_tensor_i64(&axes, i);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return false;
    named[axis] = true;
  }
  return true;
}

static bool through_transpose(trace *t, const lp_op *op) {
  const lp_attr *perm = lp_op_attr(op, "perm");
  int32_t rank = op->out[0]->type.rank;
  for (int i = 0; i < 2; i++)
    t->axis[i] = perm ? (int32_t)perm->is[t->axis[i]] : rank - 1 - t->axis[i];
  return true;
}

/* Follows a Gather of one element of an axis, which the result lacks or keeps with size 1. */
static bool through_gather(trace *t, const lp_op *op) {
  const lp_value *index = lp_op_in(op, 1);
  int32_t axis = axis_of(op, 0, lp_op_in(op, 0)->type.rank);
  int64_t count;
  if (!lp_type_static_numel(index->type, &count) || count != 1 || index->type.rank > 1) return false;
  for (int i = 0; i < 2; i++)
    if (index->type.rank == 0 && t->axis[i] >= axis) t->axis[i]++;
  return true;
}

static bool through_squeeze(trace *t, const lp_op *op) {
  bool gone[LP_MAX_RANK] = {false};
  int32_t rank = lp_op_in(op, 0)->type.rank, kept = 0, axis[2] = {-1, -1};
  if (!named_axes(op, rank, gone)) return false;
  for (int32_t i = 0; i < rank; i++) {
    if (gone[i]) continue;
    for (int k = 0; k < 2; k++)
      if (t->axis[k] == kept) axis[k] = i;
    kept++;
  }
  t->axis[0] = axis[0];
  t->axis[1] = axis[1];
  return axis[0] >= 0 && axis[1] >= 0;
}

static bool through_unsqueeze(trace *t, const lp_op *op) {
  bool fresh[LP_MAX_RANK] = {false};
  int32_t rank = op->out[0]->type.rank, shift[2] = {0, 0};
  if (!named_axes(op, rank, fresh)) return false;
  for (int k = 0; k < 2; k++) {
    if (fresh[t->axis[k]]) return false;
    for (int32_t i = 0; i < t->axis[k]; i++)
      shift[k] += fresh[i];
  }
  t->axis[0] -= shift[0];
  t->axis[1] -= shift[1];
  return true;
}

/* The mask must be that of one class: a Gather or Slice has reduced the axis of classes before. */
static bool through_one_hot(trace *t, const lp_op *op) {
  lp_tensor values;
  int32_t axis = axis_of(op, -1, op->out[0]->type.rank);
  if (t->compared || !lp_value_constant(lp_op_in(op, 2), &values) || lp_tensor_f64(&values, 0) != 0) return false;
  for (int i = 0; i < 2; i++) {
    if (t->axis[i] == axis) return false;
    t->axis[i] -= t->axis[i] > axis;
  }
  t->compared = true;
  return true;
}

static bool through_equal(trace *t, const lp_op *op) {
  int32_t side = lp_value_is_constant(lp_op_in(op, 0)) ? 1 : 0, rank = op->out[0]->type.rank;
  const lp_value *x = lp_op_in(op, side);
  t->number = lp_op_in(op, 1 - side);
  if (t->compared || !lp_value_is_constant(t->number)) return false;
  for (int i = 0; i < 2; i++) {
    t->number_axis[i] = rank - t->axis[i];
    t->axis[i] -= rank - x->type.rank;
    if (t->axis[i] < 0) return false;
  }
  t->value = x;
  t->compared = true;
  return true;
}

static bool go_back(trace *t) {
  const lp_op *op = t->value->def;
  t->value = lp_op_in(op, 0);
  switch (op->kind) {
  case LP_ONNX_Cast:
  case LP_ONNX_Identity:
    return true;
  case LP_ONNX_Slice:
    return !t->compared;
  case LP_ONNX_Transpose:
    return through_transpose(t, op);
  case LP_ONNX_Gather:
    return !t->compared && through_gather(t, op);
  case LP_ONNX_Squeeze:
    return through_squeeze(t, op);
  case LP_ONNX_Unsqueeze:
    return through_unsqueeze(t, op);
  case LP_ONNX_OneHot:
    return through_one_hot(t, op);
  case LP_ONNX_Equal:
    return through_equal(t, op);
  default:
    return false;
  }
}

/* Tells whether all choices of a token are compared with the same number. */
static bool is_one_number(const trace *t, int32_t choice) {
  int32_t axis = t->number ? t->number->type.rank - t->number_axis[choice] : -1;
  int64_t size;
  return axis < 0 || (lp_type_static_dim(t->number->type, axis, &size) && size == 1);
}

int32_t lp_choice_axis(const lp_value *mask) {
  trace t = {.value = mask, .axis = {0, 1}};
  if (mask->type.rank != 2) return -1;
  while (t.value->def && t.value->def->kind != LP_ONNX_TopK)
    if (!go_back(&t)) return -1;
  if (!t.value->def || !t.compared || t.value->index != 1) return -1;
  int32_t chosen = axis_of(t.value->def, -1, t.value->type.rank);
  for (int32_t i = 0; i < 2; i++)
    if (t.axis[i] == chosen && is_one_number(&t, i)) return i;
  return -1;
}
