/* The reference interpreter: entry points, the table made from ops.def, and runs over a value's operands. */
#include "ir/eval/eval.h"
#include "base/poly.h"
#include "ir/ir_internal.h"

#include <math.h>

static lp_eval_rule eval_op_FUSED;

static lp_eval_rule *const rules[LP_OP_COUNT] = {
#define LP_ONNX(id, name, imin, imax, omin, omax, traits, attrs, infer, lower) [LP_ONNX_##id] = eval_onnx_##lower,
#define LP_OPERATOR(id, ...) [LP_OP_##id] = eval_op_##id,
#include "ir/ops.def"
};

lp_status lp_op_eval(lp_module *module, const lp_op *op, const lp_array *const *in, lp_array *out, const int64_t *sym,
                     lp_arena *arena, lp_diag *diag) {
  lp_eval e = {module, op, in, out, sym, arena, diag};
  const lp_op_info *info = lp_op_info_get(op->kind);
  if (!rules[op->kind]) return lp_eval_fail(&e, "'%s' cannot be evaluated", info->name);
  if (info->in_max >= 0) LP_TRY(lp_eval_need(&e, info->in_min));
  return rules[op->kind](&e);
}

bool lp_module_spend(lp_module *module, int64_t steps) {
  if (steps > module->eval_steps) return false;
  module->eval_steps -= steps;
  return true;
}

/* ---- environments: values by pointer ---- */

typedef struct {
  const lp_value *value;
  lp_array array;
} entry;

typedef struct {
  entry *slots; /* open addressing, a power of two */
  size_t capacity, count;
} lp_eval_env;

static size_t slot_of(const lp_eval_env *env, const lp_value *value) {
  size_t at = (size_t)((uintptr_t)value >> 4) * 0x9e3779b97f4a7c15u >> 20;
  while (env->slots[at & (env->capacity - 1)].value && env->slots[at & (env->capacity - 1)].value != value)
    at++;
  return at & (env->capacity - 1);
}

static const lp_array *env_get(const lp_eval_env *env, const lp_value *value) {
  if (env->capacity == 0) return NULL;
  const entry *found = &env->slots[slot_of(env, value)];
  return found->value ? &found->array : NULL;
}

static void env_put(lp_eval_env *env, const lp_value *value, const lp_array *array) {
  if (2 * env->count >= env->capacity) {
    lp_eval_env grown = {.capacity = env->capacity ? 2 * env->capacity : 64, .count = env->count};
    grown.slots = lp_alloc(grown.capacity * sizeof(entry));
    for (size_t i = 0; i < env->capacity; i++)
      if (env->slots[i].value) grown.slots[slot_of(&grown, env->slots[i].value)] = env->slots[i];
    free(env->slots);
    *env = grown;
  }
  entry *slot = &env->slots[slot_of(env, value)];
  if (!slot->value) env->count++;
  *slot = (entry){value, *array};
}

/* ---- runs ---- */

/* The data of a constant; a weight's bytes stay in its file where they are aligned. */
static lp_status constant_array(lp_module *module, const lp_value *value, lp_arena *arena, lp_array *out,
                                lp_diag *diag) {
  lp_tensor tensor;
  const size_t copies = module->shards.count;
  LP_TRY(lp_weight_data(module, value, &tensor, diag));
  *out = (lp_array){.dtype = tensor.type.dtype, .rank = tensor.type.rank};
  for (int32_t i = 0; i < tensor.type.rank; i++)
    if (!lp_type_static_dim(tensor.type, i, &out->dim[i]))
      return lp_error(diag, value->def->loc, "a constant has no size");
  if (lp_array_bytes(out) != tensor.bytes)
    return lp_error(diag, value->def->loc, "a constant's data does not fit its type");
  const bool copied = module->shards.count > copies;
  bool aligned = (uintptr_t)tensor.data % 8 == 0 && tensor.bytes > 0 && !copied;
  out->data = aligned ? (void *)(uintptr_t)tensor.data : lp_arena_alloc(arena, tensor.bytes + 1);
  if (!aligned && tensor.bytes > 0) memcpy(out->data, tensor.data, tensor.bytes);
  while (module->shards.count > copies)
    free(module->shards.data[--module->shards.count]);
  return LP_OK;
}

static lp_status run_op(lp_module *module, const lp_op *op, lp_eval_env *env, const int64_t *sym, lp_arena *arena,
                        lp_diag *diag);

static lp_status run_block(lp_module *module, const lp_block *block, lp_eval_env *env, const int64_t *sym,
                           lp_arena *arena, lp_diag *diag, const lp_op **end) {
  *end = NULL;
  LP_FOR_OPS(op, block) {
    if (lp_op_has(op, LP_TERMINATOR))
      *end = op;
    else
      LP_TRY(run_op(module, op, env, sym, arena, diag));
  }
  return *end ? LP_OK : lp_error(diag, LP_LOC_NONE, "a region does not end");
}

/* A layer or a fused operator: its region's arguments, if it has any, are its operands. */
static lp_status run_region(lp_module *module, const lp_op *op, const lp_array *const *in, lp_eval_env *env,
                            const int64_t *sym, lp_arena *arena, lp_diag *diag, lp_array *out) {
  const lp_op *end;
  if (op->region->arg_count > op->in_count)
    return lp_error(diag, op->loc, "'%s' has %d operands for %d arguments", lp_op_info_get(op->kind)->name,
                    op->in_count, op->region->arg_count);
  for (int32_t i = 0; i < op->region->arg_count; i++)
    if (in[i]) env_put(env, op->region->arg[i], in[i]);
  LP_TRY(run_block(module, op->region, env, sym, arena, diag, &end));
  for (int32_t i = 0; i < op->out_count; i++) {
    const lp_array *found = lp_op_in(end, i) ? env_get(env, lp_op_in(end, i)) : NULL;
    if (!found) return lp_error(diag, op->loc, "result %d of a region is missing", i);
    out[i] = *found;
  }
  return LP_OK;
}

static lp_status eval_op_FUSED(const lp_eval *e) {
  lp_eval_env env = {0};
  lp_status status = e->op->region ? run_region(e->m, e->op, e->in, &env, e->sym, e->arena, e->diag, e->out)
                                   : lp_eval_fail(e, "its region is missing");
  free(env.slots);
  return status;
}

/* These operators read as many elements as they write. */
static bool picks(lp_kind kind) {
  return kind == LP_ONNX_Slice || kind == LP_ONNX_Gather || kind == LP_ONNX_GatherElements || kind == LP_ONNX_GatherND;
}

/* An upper estimate of the elements that an operator touches. Where two operands are large, each element of one may
 * meet each element of the other, as in a product. */
static int64_t steps_of(const lp_module *module, const lp_op *op, const lp_array *const *in, const int64_t *sym) {
  const double small = 64;
  double read = 0, largest = 1, made = 0;
  int large = 0;
  for (int32_t i = 0; i < op->in_count; i++) {
    double count = in[i] ? (double)lp_array_numel(in[i]) : 0;
    read += count;
    large += count > small;
    if (count > largest) largest = count;
  }
  for (int32_t i = 0; i < op->out_count; i++) {
    double count = 1;
    for (int32_t axis = 0; axis < op->out[i]->type.rank; axis++)
      count *= fmax(0, (double)lp_poly_eval(op->out[i]->type.dim[axis], sym, module->symbols.names.count));
    made += count; /* a size may be negative at these symbols: the operator itself will say so */
  }
  if (picks(op->kind)) read = 0;
  bool product = large > 1 && !picks(op->kind) && !lp_op_has(op, LP_ELEMENTWISE);
  double steps = read + made * (product ? largest : 1);
  return steps < 0x1p62 ? (int64_t)steps + 1 : INT64_MAX;
}

static lp_status run_op(lp_module *module, const lp_op *op, lp_eval_env *env, const int64_t *sym, lp_arena *arena,
                        lp_diag *diag) {
  lp_array *out = LP_NEW_ARRAY(arena, lp_array, op->out_count + 1);
  const lp_array **in = LP_NEW_ARRAY(arena, const lp_array *, op->in_count + 1);
  bool bound = op->out_count > 0;
  for (int32_t i = 0; i < op->out_count; i++)
    bound = bound && env_get(env, op->out[i]);
  if (bound) return LP_OK;
  for (int32_t i = 0; i < op->in_count; i++) {
    if (!lp_op_in(op, i)) continue;
    const lp_array *found = env_get(env, lp_op_in(op, i));
    if (!found) return lp_error(diag, op->loc, "operand %d has no value", i);
    lp_array *copy = LP_NEW(arena, lp_array); /* `env` moves when it grows, so the array is copied first. */
    *copy = *found;
    in[i] = copy;
  }
  if (!lp_module_spend(module, lp_op_has(op, LP_CONSTANT) ? 1 : steps_of(module, op, in, sym)))
    return lp_error(diag, op->loc, "it is too large to be evaluated at compile time");
  if (lp_op_has(op, LP_CONSTANT))
    LP_TRY(constant_array(module, op->out[0], arena, &out[0], diag));
  else if (op->region && lp_op_info_get(op->kind)->level == LP_LEVEL_LAYER)
    LP_TRY(run_region(module, op, in, env, sym, arena, diag, out));
  else
    LP_TRY(lp_op_eval(module, op, in, out, sym, arena, diag));
  for (int32_t i = 0; i < op->out_count; i++)
    if (out[i].data && !env_get(env, op->out[i])) env_put(env, op->out[i], &out[i]);
  return LP_OK;
}

/* ---- the operators that a value depends on ---- */

typedef struct {
  const lp_op *op;
  bool expanded;
} task;

typedef LP_VEC(task) task_list;
typedef LP_VEC(const lp_op *) op_list;

typedef struct {
  task_list tasks;
  lp_eval_env *env;
  const int64_t *sym;
  size_t sym_count;
  lp_arena *arena;
} plan;

/* A value known as polynomials needs no operands: the polynomials at the sizes are its elements. */
static bool put_known(const plan *p, const lp_value *value) {
  lp_array array = {.dtype = value->type.dtype, .rank = value->type.rank};
  if (!value->known || lp_value_is_constant(value)) return false;
  for (int32_t i = 0; i < array.rank; i++)
    if (!lp_type_static_dim(value->type, i, &array.dim[i])) return false;
  if (lp_array_numel(&array) != value->known_count) return false;
  array.data = lp_arena_alloc(p->arena, lp_array_bytes(&array) + 1);
  for (int32_t i = 0; i < value->known_count; i++)
    lp_array_set_i64(&array, i, lp_poly_eval(value->known[i], p->sym, p->sym_count));
  env_put(p->env, value, &array);
  return true;
}

static void push_task(plan *p, const lp_value *value) {
  if (!value || env_get(p->env, value) || put_known(p, value) || !value->def) return;
  task t = {value->def, false};
  lp_vec_push(&p->tasks, t);
}

/* A layer also needs the values from outside that its region uses. */
static void push_region(plan *p, const lp_block *block) {
  LP_FOR_OPS(op, block) {
    for (int32_t i = 0; i < op->in_count; i++) {
      const lp_value *value = lp_op_in(op, i);
      if (value && value->block != block) push_task(p, value);
    }
    if (op->region) push_region(p, op->region);
  }
}

/* Lists the operators that a value depends on, operands first, each once. The stack is explicit because models are
 * deep. */
static void order_ops(plan *p, const lp_value *value, op_list *order) {
  lp_eval_env seen = {0};
  lp_array none = {0};
  push_task(p, value);
  while (p->tasks.count > 0) {
    task *top = &p->tasks.data[p->tasks.count - 1];
    const lp_op *op = top->op;
    if (top->expanded || env_get(&seen, op->out[0])) {
      if (top->expanded) lp_vec_push(order, op);
      p->tasks.count--;
      continue;
    }
    top->expanded = true;
    env_put(&seen, op->out[0], &none);
    for (int32_t i = 0; i < op->in_count; i++)
      push_task(p, lp_op_in(op, i));
    if (op->region) push_region(p, op->region);
  }
  lp_vec_free(&p->tasks);
  free(seen.slots);
}

/* Computes those operators that the value needs and `env` lacks. */
static lp_status run_needed(lp_module *module, lp_value *value, plan *p, lp_array *out, lp_diag *diag) {
  op_list order = {0};
  lp_status status = LP_OK;
  order_ops(p, value, &order);
  for (size_t i = 0; i < order.count && status == LP_OK; i++)
    status = run_op(module, order.data[i], p->env, p->sym, p->arena, diag);
  lp_vec_free(&order);
  LP_TRY(status);
  const lp_array *found = env_get(p->env, value);
  if (!found)
    return lp_error(diag, LP_LOC_NONE, "value '%s' is neither computed nor bound", value->name ? value->name : "");
  *out = *found;
  return LP_OK;
}

lp_status lp_values_eval(lp_module *module, lp_value *const *values, size_t value_count, const lp_binding *bindings,
                         size_t count, const int64_t *sym, lp_arena *arena, lp_array *out, lp_diag *diag) {
  lp_eval_env env = {0};
  for (size_t i = 0; i < count; i++)
    env_put(&env, bindings[i].value, &bindings[i].array);
  plan p = {.env = &env, .sym = sym, .sym_count = module->symbols.names.count, .arena = arena};
  lp_status status = LP_OK;
  for (size_t i = 0; i < value_count && status == LP_OK; i++)
    status = run_needed(module, values[i], &p, &out[i], diag);
  free(env.slots);
  return status;
}

lp_status lp_value_eval(lp_module *module, lp_value *value, const lp_binding *bindings, size_t count,
                        const int64_t *sym, lp_arena *arena, lp_array *out, lp_diag *diag) {
  return lp_values_eval(module, &value, 1, bindings, count, sym, arena, out, diag);
}
