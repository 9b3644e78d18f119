/* Finds the axis of an expert's mask that counts a token's choices, and the expert's number. Exporters compare the
 * indices of a TopK with the number, by OneHot or Equal, so that a token chooses each expert at most once. */
#include "frontend/onnx/build.h"
#include "frontend/onnx/rows.h"

/* The two axes of the mask, followed back to a value from which it is computed. */
typedef struct {
  const lp_value *value;
  int32_t axis[2];
  int32_t class_axis; /* the axis of experts, of which `expert` is taken; -1: it is not known */
  int64_t expert;
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
  if (t->class_axis >= 0) t->class_axis = perm ? (int32_t)perm->is[t->class_axis] : rank - 1 - t->class_axis;
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
  t->class_axis = t->class_axis < 0 && lp_import_number(index, &t->expert) ? axis : -1;
  return true;
}

/* A Slice of one element takes the expert's. */
static void note_slice(trace *t, const lp_op *op) {
  int64_t axis = 0;
  bool named = !lp_op_in(op, 3) || lp_import_number(lp_op_in(op, 3), &axis);
  if (axis < 0) axis += op->out[0]->type.rank;
  bool first = t->class_axis < 0 && axis != t->axis[0] && axis != t->axis[1];
  t->class_axis = named && first && lp_import_number(lp_op_in(op, 1), &t->expert) ? (int32_t)axis : -1;
}

static bool through_squeeze(trace *t, const lp_op *op) {
  bool gone[LP_MAX_RANK] = {false};
  int32_t rank = lp_op_in(op, 0)->type.rank, kept = 0, axis[2] = {-1, -1}, class_axis = -1;
  if (!named_axes(op, rank, gone)) return false;
  for (int32_t i = 0; i < rank; i++) {
    if (gone[i]) continue;
    for (int k = 0; k < 2; k++)
      if (t->axis[k] == kept) axis[k] = i;
    if (t->class_axis == kept) class_axis = i;
    kept++;
  }
  t->class_axis = class_axis;
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
  int32_t before = 0;
  for (int32_t i = 0; i < t->class_axis; i++)
    before += fresh[i];
  t->class_axis = t->class_axis < 0 || fresh[t->class_axis] ? -1 : t->class_axis - before;
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
  if (t->class_axis != axis) t->expert = -1;
  t->class_axis = -1;
  t->compared = true;
  return true;
}

/* The number that Equal compares with, if it is one: of all classes, that of the class that is taken. */
static int64_t compared_with(const trace *t, int32_t rank) {
  lp_tensor number;
  int64_t count, classes, at = 0;
  const int32_t axis = t->class_axis < 0 ? -1 : t->number->type.rank - (rank - t->class_axis);
  if (!lp_value_constant(t->number, &number) || lp_dtype_is_float(number.type.dtype) ||
      !lp_type_static_numel(number.type, &count))
    return -1;
  if (count != 1) {
    if (axis < 0 || !lp_type_static_dim(number.type, axis, &classes) || classes != count) return -1;
    at = t->expert < 0 ? t->expert + count : t->expert;
    if (at < 0 || at >= count) return -1;
  }
  return lp_tensor_i64(&number, at);
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
  t->expert = compared_with(t, rank);
  t->class_axis = -1;
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
    note_slice(t, op);
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

bool lp_choice_find(const lp_value *mask, lp_choice *out) {
  trace t = {.value = mask, .axis = {0, 1}, .class_axis = -1, .expert = -1};
  if (mask->type.rank != 2) return false;
  while (t.value->def && t.value->def->kind != LP_ONNX_TopK)
    if (!go_back(&t)) return false;
  if (!t.value->def || !t.compared || t.value->index != 1) return false;
  int32_t chosen = axis_of(t.value->def, -1, t.value->type.rank);
  for (int32_t i = 0; i < 2; i++) {
    if (t.axis[i] != chosen || !is_one_number(&t, i)) continue;
    *out = (lp_choice){.index = t.value, .axis = i, .expert = t.expert};
    return true;
  }
  return false;
}
