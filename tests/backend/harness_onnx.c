/* Writes the function as ONNX, imports the model again, and lets the reference interpreter compute it. */
#include "harness.h"

#include "base/dir.h"
#include "frontend/frontend.h"

#include <stdlib.h>
#include <string.h>

/* ---- operators that cannot be written ---------------------------------------------------------------------------- */

/* The texts of refusals that are meant; any other one fails the test. */
static const char *const refusals[] = {
    "the standard has no operators for it",
    "ONNX has no function 'bitcast'",
    "ONNX has no running product",
    "ONNX has no integers of 2 bits",
    "floats of 8 bits are not supported",
    "a cache that holds the keys of an encoder's states",
    "a cache in codes",
    "its step is not known",
    "need --opset=21",
    "opset 17: ONNX has no function 'bit", /* bitand, bitor, bitxor, bitnot */
};

static bool is_meant(const char *message) {
  for (size_t i = 0; i < LP_COUNT(refusals); i++)
    if (strstr(message, refusals[i])) return true;
  return false;
}

/* Locates each operator, and those in its region, by its number. */
static void number_operators(const harness *h) {
  int32_t number = 0;
  LP_FOR_OPS(op, h->block) {
    op->loc = (lp_loc){.file = "harness", .line = ++number};
    if (op->region)
      LP_FOR_OPS(inner, op->region)
        inner->loc = op->loc;
  }
}

/* Removes the operator with this number, those that read its results, and their results from those that are kept. */
static void remove_operator(harness *h, int32_t number) {
  lp_op *dead[HARNESS_MOST_VALUES];
  int32_t count = 0, kept = 0;
  LP_FOR_OPS(op, h->block) {
    bool dies = op->loc.line == number;
    for (int32_t i = 0; i < op->in_count && !dies && !lp_op_has(op, LP_TERMINATOR); i++)
      for (int32_t k = 0; k < count && !dies; k++)
        dies = lp_op_in(op, i) && lp_op_in(op, i)->def == dead[k];
    if (dies) dead[count++] = op;
  }
  ck_assert_int_gt(count, 0);
  for (int32_t i = 0; i < h->result_count; i++) {
    bool dies = false;
    for (int32_t k = 0; k < count; k++)
      dies |= h->result[i]->def == dead[k];
    if (!dies) h->result[kept++] = h->result[i];
  }
  h->result_count = kept;
  lp_op_erase(lp_block_terminator(h->block));
  lp_op_append(h->block, lp_op_create(h->module, LP_OP_RETURN, LP_LOC_NONE, kept, h->result, 0, NULL));
  while (count > 0)
    lp_op_erase(dead[--count]);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Ports are in.0, in.1, .. and out.0, out.1, .. */
static void name_ports(harness *h) {
  const char *in[HARNESS_MOST_VALUES], *out[HARNESS_MOST_VALUES];
  for (int32_t i = 0; i < HARNESS_MOST_VALUES; i++) {
    in[i] = lp_arena_format(h->arena, "in.%d", i);
    out[i] = lp_arena_format(h->arena, "out.%d", i);
  }
  lp_op_set_strs(h->module, h->func, "inputs", in, h->input_count);
  lp_op_set_strs(h->module, h->func, "outputs", out, h->result_count);
}

/* The writer wants two programs. The other one computes something that this one does not. */
static void add_prefill(harness *h) {
  if (lp_module_find_func(h->module, "prefill")) return;
  const lp_type type = harness_type(h, LP_F32, "3");
  lp_op *func = lp_module_add_func(h->module, "prefill", 1, &type);
  lp_op *op = lp_op_create(h->module, LP_OP_MAP, LP_LOC_NONE, 1, &func->region->arg[0], 1, &type);
  lp_op_set_str(h->module, op, "fn", "neg");
  lp_op_set_str(h->module, op, "side", "device");
  lp_op_append(func->region, op);
  lp_op_append(func->region, lp_op_create(h->module, LP_OP_RETURN, LP_LOC_NONE, 1, op->out, 0, NULL));
}

/* Removes operators until the rest can be written; false: nothing is left. */
static bool write_rest(harness *h, int64_t opset, const char *folder) {
  const lp_onnx_options options = {.opset = opset};
  while (h->result_count > 0) {
    lp_diag *diag = lp_diag_create();
    name_ports(h);
    number_operators(h);
    lp_status status = lp_onnx_write(h->module, &options, folder, diag);
    if (status != LP_OK) {
      const lp_diag_entry *entry = lp_diag_get(diag, 0);
      ck_assert_msg(is_meant(entry->text), "opset %d: %s", (int)opset, entry->text);
      remove_operator(h, entry->loc.line);
    }
    lp_diag_free(diag);
    if (status == LP_OK) return true;
  }
  return false;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* ONNX has few operators for integers under 8 bits, so ports have whole bytes. */
static lp_array in_bytes(harness *h, const lp_array *array) {
  lp_array wide = *array;
  if (lp_dtype_bits(array->dtype) < 8 && array->dtype != LP_BOOL)
    harness_widen(h, array->dtype == LP_I4 || array->dtype == LP_I2 ? LP_I8 : LP_U8, &wide);
  return wide;
}

/* The rows of the cache before this step. */
static lp_array past_rows(harness *h, const harness_state *state) {
  const lp_type type = state->result->type;
  const int64_t past = h->sym[LP_SYM_P], capacity = h->sym[LP_SYM_C];
  lp_array array = {.dtype = type.dtype, .rank = 4};
  for (int32_t i = 0; i < 4; i++)
    array.dim[i] = i == 2 ? past : lp_poly_eval(type.dim[i], h->sym, LP_SYM_COUNT);
  const size_t row = (size_t)(array.dim[3] * lp_dtype_bits(type.dtype) / 8), rows = (size_t)past * row;
  char *data = lp_arena_alloc(h->arena, (size_t)(array.dim[0] * array.dim[1]) * rows + 1);
  for (int64_t i = 0; i < array.dim[0] * array.dim[1]; i++)
    memcpy(data + (size_t)i * rows, (const char *)state->before + (size_t)(i * capacity) * row, rows);
  array.data = data;
  return array;
}

static lp_array input_named(harness *h, const char *name) {
  const char *number = strrchr(name, '.') + 1;
  if (lp_has_prefix(name, "in.")) return in_bytes(h, &h->array[atoi(number)]);
  if (lp_has_prefix(name, "past.state.")) return past_rows(h, &h->state[atoi(number)]);
  ck_abort_msg("an input '%s'", name);
}

/* A size that no input shows is an input, which decides shapes: it is bound to its number. */
static lp_module *import(harness *h, const char *path) {
  lp_input_binding sizes[LP_SYM_COUNT];
  lp_import_options options = {.bindings = sizes};
  lp_module *module = NULL;
  const char *const *names;
  size_t count;
  lp_status status = lp_onnx_input_names(path, h->arena, &names, &count, h->diag);
  for (size_t i = 0; status == LP_OK && i < count; i++) {
    if (!lp_has_prefix(names[i], "size.")) continue;
    const lp_symbol symbol = lp_symbols_find(&h->module->symbols, names[i] + 5);
    const char *value = lp_arena_format(h->arena, "%" PRId64, h->sym[symbol - 1]);
    sizes[options.binding_count++] = (lp_input_binding){.name = names[i], .value = value};
  }
  if (status == LP_OK) status = lp_onnx_import(path, &options, &module, h->diag);
  if (status != LP_OK) harness_fail(h, "the model that was written cannot be imported");
  module->eval_steps = INT64_MAX;
  return module;
}

static void bind_symbols(int64_t *sym, const lp_type *type, const lp_array *array) {
  for (int32_t i = 0; i < type->rank; i++) {
    const lp_poly *dim = type->dim[i];
    if (dim->count == 1 && dim->term[0].coef == 1 && dim->term[0].symbol[0] && !dim->term[0].symbol[1])
      sym[dim->term[0].symbol[0] - 1] = array->dim[i];
  }
}

static void run(harness *h, const char *path, lp_array *out) {
  static lp_binding bindings[HARNESS_MOST_VALUES];
  lp_module *module = import(h, path);
  const lp_op *func = lp_module_find_func(module, "main"), *end = lp_block_terminator(func->region);
  const lp_attr *inputs = lp_op_attr(func, "inputs"), *outputs = lp_op_attr(func, "outputs");
  int64_t *sym = LP_NEW_ARRAY(h->arena, int64_t, module->symbols.names.count + 1);
  for (int32_t i = 0; i < inputs->count; i++) {
    bindings[i] = (lp_binding){func->region->arg[i], input_named(h, inputs->ss[i])};
    bind_symbols(sym, &func->region->arg[i]->type, &bindings[i].array);
  }
  for (int32_t i = 0; i < end->in_count; i++) {
    lp_array got;
    if (!lp_has_prefix(outputs->ss[i], "out.")) continue; /* a cache */
    if (lp_value_eval(module, lp_op_in(end, i), bindings, (size_t)inputs->count, sym, h->arena, &got, h->diag) != LP_OK)
      harness_fail(h, "the model that was written cannot be computed");
    got.data = lp_arena_copy(h->arena, got.data, (size_t)harness_array_bytes(&got)); /* it may lie in the module */
    out[atoi(outputs->ss[i] + 4)] = got;
  }
  lp_module_free(module);
}

bool harness_run_onnx(harness *h, int64_t opset, lp_array *out) {
  char *folder = harness_temporary("-onnx");
  add_prefill(h);
  h->sym[LP_SYM_R] = h->sym[LP_SYM_S]; /* the writer computes all rows */
  bool any = write_rest(h, opset, folder);
  if (any) run(h, lp_arena_format(h->arena, "%s/decode.device.onnx", folder), out);
  lp_dir_abandon(folder);
  free(folder);
  return any;
}
