/* See change.h. */
#include "tests/passes/change.h"

#include <stdio.h>
#include <string.h>

typedef struct {
  lp_module *module;
  lp_op *func, *op;
  int64_t left; /* changes to pass over */
  char *name;
} change;

/* Tells whether this is the wanted change, and then describes it. */
static bool wanted(change *c, const char *what, int64_t index) {
  if (c->left-- != 0) return false;
  (void)snprintf(c->name, CHANGE_NAME_SIZE, "%s in line %d: %s %d", lp_op_info_get(c->op->kind)->name, c->op->loc.line,
                 what, (int)index);
  return true;
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

static const lp_kind others[][2] = {
    {LP_ONNX_Add, LP_ONNX_Sub},
    {LP_ONNX_Sub, LP_ONNX_Add},
    {LP_ONNX_Mul, LP_ONNX_Div},
    {LP_ONNX_Mul, LP_ONNX_Add},
    {LP_ONNX_Div, LP_ONNX_Mul},
    {LP_ONNX_Sqrt, LP_ONNX_Exp},
    {LP_ONNX_Reciprocal, LP_ONNX_Neg},
    {LP_ONNX_ReduceMean, LP_ONNX_ReduceMax},
    {LP_ONNX_ReduceSum, LP_ONNX_ReduceMax},
    {LP_ONNX_Sin, LP_ONNX_Cos},
    {LP_ONNX_Cos, LP_ONNX_Sin},
    {LP_ONNX_Sigmoid, LP_ONNX_Tanh},
    {LP_ONNX_Tanh, LP_ONNX_Sigmoid},
    {LP_ONNX_Erf, LP_ONNX_Tanh},
    {LP_ONNX_Relu, LP_ONNX_Sigmoid},
    {LP_ONNX_Softmax, LP_ONNX_LogSoftmax},
    {LP_ONNX_LessOrEqual, LP_ONNX_Less},
    {LP_ONNX_Less, LP_ONNX_GreaterOrEqual},
    {LP_ONNX_And, LP_ONNX_Or},
    {LP_ONNX_Min, LP_ONNX_Max},
    {LP_ONNX_Max, LP_ONNX_Min},
    {LP_ONNX_GreaterOrEqual, LP_ONNX_Less},
    {LP_ONNX_Greater, LP_ONNX_LessOrEqual},
    {LP_ONNX_Exp, LP_ONNX_Sqrt},
    {LP_ONNX_Neg, LP_ONNX_Relu},
    {LP_ONNX_Pow, LP_ONNX_Mul},
    {LP_ONNX_Or, LP_ONNX_And},
    {LP_ONNX_Not, LP_ONNX_Identity},
    {LP_ONNX_Softplus, LP_ONNX_Tanh},
    {LP_ONNX_ReduceMax, LP_ONNX_ReduceMin},
};

static bool change_kind(change *c) {
  for (size_t i = 0; i < LP_COUNT(others); i++)
    if (c->op->kind == others[i][0] && wanted(c, lp_op_info_get(others[i][1])->name, 0))
      return c->op->kind = others[i][1], true;
  return false;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static bool swap_operands(change *c) {
  for (int32_t i = 1; i < c->op->in_count; i++) {
    lp_value *a = lp_op_in(c->op, i - 1), *b = lp_op_in(c->op, i);
    if (!a || !b || a == b || !wanted(c, "swap operand", i)) continue;
    lp_op_set_in(c->op, i - 1, b);
    lp_op_set_in(c->op, i, a);
    return true;
  }
  return false;
}

/* Puts an operator with one operand in front of operand `index`. */
static void put_before(change *c, int32_t index, lp_kind kind) {
  lp_value *x = lp_op_in(c->op, index);
  lp_op *made = lp_op_create(c->module, kind, c->op->loc, 1, &x, 1, &x->type);
  lp_op_insert_before(c->op, made);
  lp_op_set_in(c->op, index, made->out[0]);
}

/* The nearest earlier value of the same type. */
static lp_value *another(const change *c, const lp_value *value) {
  for (const lp_op *op = c->op->prev; op; op = op->prev)
    for (int32_t i = 0; i < op->out_count; i++)
      if (op->out[i] != value && lp_type_equal(op->out[i]->type, value->type)) return op->out[i];
  for (int32_t i = 0; i < c->op->block->arg_count; i++)
    if (c->op->block->arg[i] != value && lp_type_equal(c->op->block->arg[i]->type, value->type))
      return c->op->block->arg[i];
  return NULL;
}

static bool change_operands(change *c) {
  const bool onnx = lp_op_info_get(c->op->kind)->level == LP_LEVEL_ONNX;
  for (int32_t i = 0; i < c->op->in_count; i++) {
    lp_value *x = lp_op_in(c->op, i), *other = x ? another(c, x) : NULL;
    if (!x) continue;
    if (other && wanted(c, "another operand", i)) return lp_op_set_in(c->op, i, other), true;
    if (onnx && wanted(c, "a copy of operand", i)) return put_before(c, i, LP_ONNX_Identity), true;
    const bool negative = onnx && lp_dtype_is_float(x->type.dtype);
    if (negative && wanted(c, "the negative of operand", i)) return put_before(c, i, LP_ONNX_Neg), true;
    if (i >= lp_op_info_get(c->op->kind)->in_min && wanted(c, "without operand", i))
      return lp_op_set_in(c->op, i, NULL), true;
  }
  return false;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static bool change_attributes(change *c) {
  if (c->op->kind == LP_OP_WEIGHT) return false; /* its place in its file */
  const bool onnx = lp_op_info_get(c->op->kind)->level == LP_LEVEL_ONNX;
  for (int32_t i = 0; i < c->op->attr_count; i++) {
    const lp_attr *a = &c->op->attr[i];
    const char *name = a->name;
    if (a->kind == LP_ATTR_I64) {
      if (wanted(c, "more attribute", i)) return lp_op_set_i64(c->module, c->op, name, a->i + 1), true;
      if (wanted(c, "less attribute", i)) return lp_op_set_i64(c->module, c->op, name, a->i - 1), true;
    }
    if (a->kind == LP_ATTR_BOOL && wanted(c, "not attribute", i))
      return lp_op_set_bool(c->module, c->op, name, !a->b), true;
    if (a->kind == LP_ATTR_F64 && wanted(c, "larger attribute", i))
      return lp_op_set_f64(c->module, c->op, name, 1.5 * a->f + 0.125), true;
    if (a->kind == LP_ATTR_I64S && a->count > 1 && wanted(c, "turned attribute", i)) {
      int64_t turned[LP_MAX_RANK] = {0};
      for (int32_t k = 0; k < a->count && k < LP_MAX_RANK; k++)
        turned[k] = a->is[(k + 1) % a->count];
      return lp_op_set_i64s(c->module, c->op, name, turned, a->count < LP_MAX_RANK ? a->count : LP_MAX_RANK), true;
    }
    if (onnx && a->kind != LP_ATTR_TENSOR && wanted(c, "without attribute", i))
      return lp_op_remove_attr(c->op, name), true;
  }
  return false;
}

/* Adds `more` to element `index` of a small constant. */
static void add_to_constant(change *c, int64_t index, double more) {
  lp_tensor tensor = lp_op_attr(c->op, "value")->tensor;
  lp_array array = {.dtype = tensor.type.dtype, .data = lp_arena_copy(c->module->arena, tensor.data, tensor.bytes)};
  lp_array_set_f64(&array, index, lp_tensor_f64(&tensor, index) + more);
  tensor.data = array.data;
  lp_op_set_tensor(c->module, c->op, "value", tensor);
}

static bool change_constant(change *c) {
  if (c->op->kind != LP_OP_CONSTANT) return false;
  const lp_tensor tensor = lp_op_attr(c->op, "value")->tensor;
  int64_t count = 0;
  if (!lp_type_static_numel(tensor.type, &count) || count < 1) return false;
  if (wanted(c, "more in element", 0)) return add_to_constant(c, 0, 1), true;
  if (wanted(c, "less in element", 0)) return add_to_constant(c, 0, -1), true;
  if (count > 1 && wanted(c, "more in the last element", 0)) return add_to_constant(c, count - 1, 1), true;
  if (lp_dtype_is_float(tensor.type.dtype) && wanted(c, "a little more in element", 0))
    return add_to_constant(c, 0, 0.0625), true;
  return false;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* A further result of the function, with empty names, so that a value has a use outside the pattern. */
static bool return_also(change *c) {
  static const char *const lists[] = {"outputs", "output_roles"};
  enum { MOST = 64 };
  lp_op *end = lp_block_terminator(c->func->region);
  lp_value *in[MOST];
  const char *names[MOST] = {NULL};
  for (int32_t r = 0; r < c->op->out_count; r++) {
    if (end->in_count >= MOST || !wanted(c, "returns result", r)) continue;
    for (int32_t i = 0; i < end->in_count; i++)
      in[i] = lp_op_in(end, i);
    in[end->in_count] = c->op->out[r];
    for (size_t k = 0; k < LP_COUNT(lists); k++) {
      const lp_attr *old = lp_op_attr(c->func, lists[k]);
      if (!old || old->count != end->in_count) continue;
      memcpy(names, old->ss, sizeof *names * (size_t)old->count);
      names[old->count] = k == 0 ? "further" : "";
      lp_op_set_strs(c->module, c->func, lists[k], names, old->count + 1);
    }
    lp_op_set_ins(c->module, end, end->in_count + 1, in);
    return true;
  }
  return false;
}

bool change_function(lp_module *module, lp_op *func, int64_t *number, char name[CHANGE_NAME_SIZE]) {
  change c = {.module = module, .func = func, .left = *number, .name = name};
  LP_FOR_OPS(op, func->region) {
    if (lp_op_has(op, LP_TERMINATOR)) continue;
    c.op = op;
    if (change_kind(&c) || swap_operands(&c) || change_operands(&c) || change_attributes(&c) || change_constant(&c) ||
        return_also(&c))
      return true;
  }
  *number = c.left;
  return false;
}
