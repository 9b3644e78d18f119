/* Matches operators through casts and copies that exporters put between them. */
#include "passes/recognise/recognise.h"

static bool is_through(const lp_op *op) {
  if (!op) return false;
  if (op->kind == LP_ONNX_Identity) return true;
  return op->kind == LP_ONNX_Cast && lp_op_in(op, 0) && lp_dtype_is_float(lp_op_in(op, 0)->type.dtype) &&
         lp_dtype_is_float(op->out[0]->type.dtype);
}

lp_value *lp_match_peel(lp_value *value) {
  while (value && is_through(value->def))
    value = lp_op_in(value->def, 0);
  return value;
}

lp_op *lp_match_def(lp_value *value, lp_kind kind) {
  value = lp_match_peel(value);
  return value && lp_op_is(value->def, kind) ? value->def : NULL;
}

lp_op *lp_match_user(lp_value *value) {
  while (value && lp_value_has_one_use(value)) {
    lp_op *user = value->uses->owner;
    if (!is_through(user)) return user;
    value = user->out[0];
  }
  return NULL;
}

lp_value *lp_match_other(const lp_op *op, lp_value *value) {
  if (op->in_count != 2) return NULL;
  lp_value *wanted = lp_match_peel(value);
  if (lp_match_peel(lp_op_in(op, 0)) == wanted) return lp_op_in(op, 1);
  if (lp_match_peel(lp_op_in(op, 1)) == wanted) return lp_op_in(op, 0);
  return NULL;
}

bool lp_match_scalar(const lp_op *op, double *number, lp_value **rest) {
  if (op->in_count != 2) return false;
  for (int32_t i = 0; i < 2; i++)
    if (lp_scalar_constant(lp_match_peel(lp_op_in(op, i)), number)) {
      *rest = lp_op_in(op, 1 - i);
      return true;
    }
  return false;
}

bool lp_match_last_axis(const lp_op *reduce) {
  const lp_value *x = lp_op_in(reduce, 0), *axes = lp_op_in(reduce, 1);
  int64_t axis;
  if (!axes || axes->known_count != 1 || !lp_known_i64(axes, 0, &axis)) return false;
  return (axis == -1 || axis == x->type.rank - 1) && lp_op_i64(reduce, "keepdims", 1);
}

/* The result is memoised in the scratch of the operators' first results; `visited` lists them, to be cleared. */
static const char is_free, is_bound;

typedef LP_VEC(lp_value *) value_list;

/* The answer for an operator that is decided without its operands: &is_free, &is_bound, or NULL. */
static const char *decided(const lp_op *op) {
  if (!op || op->out_count == 0 || lp_op_has(op, LP_STATEFUL)) return &is_bound;
  if (lp_op_has(op, LP_CONSTANT)) return &is_free;
  return op->out[0]->scratch;
}

/* The first operand that is bound or undecided; NULL when all are free. */
static lp_value *undecided(const lp_op *op, const char **is) {
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *in = lp_op_in(op, i);
    *is = !in || in->known ? &is_free : decided(in->def);
    if (*is != &is_free) return in;
  }
  return NULL;
}

bool lp_match_input_free(lp_value *value) {
  value_list visited = {0}, stack = {0}; /* an explicit stack, because graphs are deep */
  const char *is = value->known ? &is_free : decided(value->def);
  if (!is) lp_vec_push(&stack, value->def->out[0]);
  while (stack.count > 0) {
    lp_value *top = stack.data[stack.count - 1], *in = undecided(top->def, &is);
    if (in && !is) {
      lp_vec_push(&stack, in->def->out[0]);
      continue;
    }
    is = in ? &is_bound : &is_free;
    top->scratch = (void *)(uintptr_t)is;
    lp_vec_push(&visited, top);
    stack.count--;
  }
  for (size_t i = 0; i < visited.count; i++)
    visited.data[i]->scratch = NULL;
  lp_vec_free(&stack);
  lp_vec_free(&visited);
  return is == &is_free;
}

bool lp_match_last_slice(lp_value *value, lp_value **x, int64_t *from, int64_t *to) {
  lp_op *op = value->def;
  int64_t size, width;
  if (!op || op->out_count == 0 || !lp_op_in(op, 0)) return false;
  lp_type type = lp_op_in(op, 0)->type;
  if (!lp_type_static_dim(type, -1, &size) || !lp_type_static_dim(value->type, -1, &width)) return false;
  *x = lp_op_in(op, 0);
  if (op->kind == LP_ONNX_Split) {
    int64_t axis = lp_op_i64(op, "axis", 0), start = 0;
    if (axis != -1 && axis != type.rank - 1) return false;
    for (int32_t i = 0; i < value->index; i++) {
      if (!lp_type_static_dim(op->out[i]->type, -1, &width)) return false;
      start += width;
    }
    (void)lp_type_static_dim(value->type, -1, &width);
    *from = start;
    *to = start + width;
    return true;
  }
  if (op->kind != LP_ONNX_Slice || op->in_count < 4) return false;
  int64_t axis, start, step = 1;
  if (!lp_op_in(op, 3) || lp_op_in(op, 3)->known_count != 1 || !lp_known_i64(lp_op_in(op, 3), 0, &axis)) return false;
  if (!lp_known_i64(lp_op_in(op, 1), 0, &start)) return false;
  if (lp_op_in(op, 4) && !lp_known_i64(lp_op_in(op, 4), 0, &step)) return false;
  if ((axis != -1 && axis != type.rank - 1) || step != 1) return false;
  *from = start < 0 ? start + size : start;
  *to = *from + width;
  return true;
}
