/* Values known as polynomials: of constants, and of operands that the reference interpreter can compute. */
#include "base/poly.h"
#include "ir/infer/infer.h"
#include "ir/ir_internal.h"

typedef const lp_poly *poly;

/* ---- reading ---- */

bool lp_infer_whole(const lp_tensor *tensor, int64_t index, int64_t *out) {
  if (!lp_dtype_is_float(tensor->type.dtype)) {
    *out = lp_tensor_i64(tensor, index);
    return tensor->type.dtype != LP_U64 || *out >= 0;
  }
  double value = lp_tensor_f64(tensor, index);
  if (!(value >= -0x1p62 && value <= 0x1p62)) return false;
  *out = (int64_t)value;
  return (double)*out == value;
}

/* The polynomials of small tensors of whole numbers. */
poly *lp_infer_tensor(lp_module *module, const lp_tensor *tensor, int32_t *count) {
  int64_t numel, value;
  if (!lp_type_static_numel(tensor->type, &numel) || numel > LP_MAX_KNOWN) return NULL;
  poly *known = LP_NEW_ARRAY(module->arena, poly, numel + 1);
  for (int64_t i = 0; i < numel; i++) {
    if (!lp_infer_whole(tensor, i, &value)) return NULL;
    known[i] = lp_dim_const(module, value);
  }
  *count = (int32_t)numel;
  return known;
}

void lp_infer_constant_known(lp_module *module, lp_value *value) {
  lp_tensor tensor;
  int32_t count = 0;
  if (value->known || !lp_value_constant(value, &tensor)) return;
  value->known = lp_infer_tensor(module, &tensor, &count);
  value->known_count = count;
}

enum { MAX_CONE = 512, MAX_CONE_ELEMENTS = 65536 };

typedef struct {
  const lp_op *ops[MAX_CONE];
  size_t count;
} cone;

/* Tells whether the elements are known constants, such as the constant sizes of a tensor of input data. The interpreter
 * takes them unchanged. */
static bool is_known_constant(const lp_value *value) {
  int64_t element;
  for (int32_t i = 0; value->known && i < value->known_count; i++)
    if (!lp_poly_is_const(value->known[i], &element)) return false;
  return value->known != NULL;
}

/* Tells whether the operator computes with sizes that are not known, as the positions after the past are. */
static bool has_symbols(const lp_op *op) {
  LP_FOR_EACH(const lp_attr, attr, op->attr, op->attr_count) {
    if (attr->kind == LP_ATTR_POLY && !lp_poly_is_const(attr->poly, NULL)) return true;
    for (int32_t k = 0; attr->kind == LP_ATTR_POLYS && k < attr->count; k++)
      if (!lp_poly_is_const(attr->polys[k], NULL)) return true;
  }
  return false;
}

/* Tells whether everything that the value needs is constant and small, and collects the operators, each once. */
static bool is_constant_cone(const lp_value *value, cone *seen) {
  lp_op *op = value->def;
  int64_t numel;
  if (!op || !lp_op_has(op, LP_PURE) || op->region || has_symbols(op)) return false;
  if (!lp_type_static_numel(value->type, &numel) || numel > MAX_CONE_ELEMENTS) return false;
  if (is_known_constant(value)) return true;
  for (size_t i = 0; i < seen->count; i++)
    if (seen->ops[i] == op) return true;
  if (seen->count == MAX_CONE) return false;
  seen->ops[seen->count++] = op;
  for (int32_t i = 0; i < op->in_count; i++)
    if (lp_op_in(op, i) && !is_constant_cone(lp_op_in(op, i), seen)) return false;
  return true;
}

static bool evaluate_cone(lp_module *module, lp_value *value, lp_arena *arena, lp_array *out) {
  cone seen = {.count = 0};
  bool constant = module->eval_steps > 0 && is_constant_cone(value, &seen);
  bool afforded = lp_module_spend(module, (int64_t)(seen.count * seen.count / 16)); /* the search itself costs */
  if (!constant || !afforded) return false;
  int64_t *sym = LP_NEW_ARRAY(arena, int64_t, module->symbols.names.count + 1);
  return lp_value_eval(module, value, NULL, 0, sym, arena, out, NULL) == LP_OK;
}

void lp_infer_learn(lp_module *module, lp_value *value) {
  int64_t numel;
  lp_array array;
  if (!lp_type_static_numel(value->type, &numel) || numel > LP_MAX_KNOWN) return;
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  if (evaluate_cone(module, value, arena, &array)) {
    lp_tensor tensor = {.type = lp_type_static(module, array.dtype, array.rank, array.dim), .data = array.data};
    int32_t count = 0;
    value->known = lp_infer_tensor(module, &tensor, &count);
    value->known_count = count;
  }
}

bool lp_infer_evaluate(const lp_infer *c, int32_t index, lp_arena *arena, lp_array *out) {
  return evaluate_cone(c->m, lp_op_in(c->op, index), arena, out);
}

bool lp_infer_known(const lp_infer *c, int32_t index, const poly **values, int32_t *count) {
  lp_value *value = lp_op_in(c->op, index);
  if (!value) return false;
  if (!value->known) lp_infer_constant_known(c->m, value);
  if (!value->known) lp_infer_learn(c->m, value);
  *values = value->known;
  *count = value->known_count;
  return value->known != NULL;
}

lp_status lp_infer_need_known(const lp_infer *c, int32_t index, const poly **values, int32_t *count) {
  return lp_infer_known(c, index, values, count) ? LP_OK : lp_infer_refuse_data(c, index);
}

lp_status lp_infer_refuse_data(const lp_infer *c, int32_t index) {
  const lp_value *value = lp_op_in(c->op, index);
  const char *name = value && value->name ? value->name : "";
  if (c->m->eval_steps < LP_EVAL_STEPS / 64)
    return lp_infer_fail(c, "the graph has more arithmetic on constants and shapes than is computed at compile time");
  lp_status status = lp_infer_fail(
      c, "its result's shape depends on the data of input %d ('%s'), which is not known before it runs", index, name);
  lp_note_binding(c->diag, c->op->loc, value);
  return status;
}

lp_status lp_infer_need_i64s(const lp_infer *c, int32_t index, int64_t *values, int32_t *count) {
  const poly *known = NULL;
  LP_TRY(lp_infer_need_known(c, index, &known, count));
  for (int32_t i = 0; known && i < *count; i++)
    if (!lp_poly_is_const(known[i], &values[i]))
      return lp_infer_fail(c, "element %d of input %d is %s, a constant wanted", i, index, lp_infer_text(c, known[i]));
  return LP_OK;
}
