/* Elementwise operators: one kernel each, a fused one with a line per function. */
#include "backend/gpu/rules/element.h"

#include "backend/gpu/rules.h"
#include "backend/values.h"
#include "base/map.h"

enum { EACH = 4 }; /* enough loads at once for the memory's speed */

static bool fused_runs(const lp_op *op, char why[64]) {
  if (op->in_count + op->out_count > GPU_MOST_ARGS / 2)
    return snprintf(why, 64, "more values than a kernel takes"), false;
  LP_FOR_OPS(inner, op->region) {
    if (lp_op_has(inner, LP_TERMINATOR) || lp_op_has(inner, LP_CONSTANT)) continue;
    if (inner->kind != LP_OP_MAP || !gpu_function_runs(inner, why)) return false;
  }
  return true;
}

/* An operand's element, as a literal or loaded. */
static const char *operand(gpu_element *e, int32_t index) {
  lp_value *value = lp_op_in(e->b->op, index);
  if (!value) return NULL;
  const char *literal = gpu_literal(e->b->list, lp_value_base(value));
  if (literal) return literal;
  const char *pointer = gpu_element_pointer(e, gpu_ref_value(e->b, value, GPU_FORM_RAW), value->type.dtype, false);
  return gpu_element_load(e, pointer, value->type.dtype, gpu_element_index(e, value->type));
}

static void lower_map(gpu_builder *b) {
  gpu_element e;
  const char *in[3] = {NULL};
  lp_dtype types[3] = {LP_F32};
  gpu_element_begin(&e, b, b->op->out[0]->type);
  e.each = EACH;
  for (int32_t i = 0; i < b->op->in_count && i < 3; i++) {
    const lp_value *value = lp_op_in(b->op, i);
    in[i] = operand(&e, i);
    types[i] = value ? value->type.dtype : LP_F32;
    if (!in[i]) continue;
    gpu_element_line(&e, "const %s v%d = %s;", lp_dtype_is_float(types[i]) ? "float" : "long", i, in[i]);
    in[i] = gpu_format(b->list, "v%d", i);
  }
  const char *value = gpu_function(b->list, b->op, in, types, b->op->in_count);
  const char *y = gpu_element_pointer(&e, gpu_ref_out(b, 0), e.type.dtype, true);
  gpu_element_store(&e, y, e.type.dtype, "i", value);
  gpu_element_end(&e, gpu_format(b->list, "map_%s", lp_op_str(b->op, "fn", "")));
}

/* Names of the region's values, by value. */
typedef struct {
  gpu_element *e;
  lp_map *names;
  int count;
} scope;

static const char *key_of(const scope *s, const lp_value *value) {
  return gpu_format(s->e->b->list, "%p", (const void *)value);
}

static void define(scope *s, const lp_value *value, const char *expression) {
  const char *name = gpu_format(s->e->b->list, "v%d", s->count++);
  gpu_element_line(s->e, "const %s %s = %s;", lp_dtype_is_float(value->type.dtype) ? "float" : "long", name,
                   expression);
  lp_map_put(s->names, key_of(s, value), (void *)(uintptr_t)name);
}

static const char *name_of(const scope *s, const lp_value *value) {
  const char *name = lp_map_get(s->names, key_of(s, value));
  return name ? name : gpu_literal(s->e->b->list, value);
}

static void lower_inner(scope *s, const lp_op *inner) {
  const char *in[3] = {NULL};
  lp_dtype types[3] = {LP_F32};
  for (int32_t i = 0; i < inner->in_count && i < 3; i++) {
    if (!lp_op_in(inner, i)) continue;
    in[i] = name_of(s, lp_op_in(inner, i));
    types[i] = lp_op_in(inner, i)->type.dtype;
  }
  define(s, inner->out[0], gpu_function(s->e->b->list, inner, in, types, inner->in_count));
}

static void lower_fused(gpu_builder *b) {
  gpu_element e;
  scope s = {.e = &e, .names = lp_map_create()};
  gpu_element_begin(&e, b, b->op->out[0]->type);
  e.each = EACH;
  for (int32_t i = 0; i < b->op->in_count; i++) {
    const char *value = operand(&e, i);
    if (value) define(&s, b->op->region->arg[i], value);
  }
  LP_FOR_OPS(inner, b->op->region)
    if (inner->kind == LP_OP_MAP) lower_inner(&s, inner);
  const lp_op *end = lp_block_terminator(b->op->region);
  for (int32_t i = 0; i < b->op->out_count; i++) {
    lp_dtype dtype = b->op->out[i]->type.dtype;
    const char *y = gpu_element_pointer(&e, gpu_ref_out(b, i), dtype, true);
    gpu_element_store(&e, y, dtype, "i", name_of(&s, lp_op_in(end, i)));
  }
  gpu_element_end(&e, "fused");
  lp_map_free(s.names);
}

const gpu_rule gpu_rule_map = {LP_OP_MAP, gpu_function_runs, lower_map, NULL};
const gpu_rule gpu_rule_fused = {LP_OP_FUSED, fused_runs, lower_fused, NULL};
