/* Compiles a model for verification: unchanged or, where a size depends on inputs, with these inputs bound to the
 * values of a data set. */
#include "tools/verify/compile.h"
#include "base/path.h"
#include "tools/generator.h"

#include "backend/backend.h"
#include "frontend/frontend.h"
#include "tools/compile/pipeline.h"

static const char bind_option[] = "--bind=";

typedef LP_VEC(lp_input_binding) binding_list;

/* ---- one attempt ------------------------------------------------------------------------------------------------- */

static lp_status compile_module(lp_module *module, const lp_verify_compilation *c, lp_diag *diag) {
  const char *split = c->options->split, *march = c->options->march;
  const lp_compile_request request = {.isl = 128,
                                      .osl = 1,
                                      .batch = 1,
                                      .scheduler = split ? "cut" : "device-only",
                                      .cut_node = split,
                                      .generation = c->options->against != NULL,
                                      .objective = "cost"};
  const lp_run_options run = {.verify_each = true};
  LP_TRY(lp_passes_run(module, lp_pipeline_full, &request, &run, diag));
  const lp_op *prefill = lp_module_find_func(module, "prefill");
  lp_bundle_request write = {.vocab = c->options->against ? lp_tool_vocab(module) : 0,
                             .context = prefill ? lp_op_i64(prefill, "context", 0) : 0};
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    write.backend[i] = lp_backend_find("cpu");
    write.options[i] = (lp_emit_options){.side = i, .march = march, .opt_level = c->options->opt_level[0] - '0'};
  }
  return lp_bundle_write(module, &write, c->bundle, diag);
}

static int32_t find_input(const lp_verify_graph *graph, const char *name) {
  for (size_t i = 0; i < graph->count; i++)
    if (lp_streq(graph->input[i].name, name)) return (int32_t)i;
  return -1;
}

/* Records the types of the remaining inputs, because some test data stores them in other types. */
static void keep_types(const lp_module *module, lp_verify_graph *graph) {
  const lp_op *main = lp_module_find_func(module, "main");
  const lp_attr *inputs = main ? lp_op_attr(main, "inputs") : NULL;
  for (int32_t i = 0; inputs && inputs->kind == LP_ATTR_STRS && i < inputs->count; i++) {
    int32_t at = find_input(graph, inputs->ss[i]);
    if (at >= 0) graph->input[at].dtype = main->region->arg[i]->type.dtype;
  }
}

static lp_status attempt(const lp_verify_compilation *c, const binding_list *bindings, lp_diag *diag) {
  const lp_import_options import = {.bindings = bindings->data,
                                    .binding_count = bindings->count,
                                    .encoder = c->encoder,
                                    .frees_lengths = c->options->against != NULL};
  lp_module *module = NULL;
  LP_TRY(lp_generator_import(c->model, &import, &module, diag));
  keep_types(module, c->graph);
  lp_status status = compile_module(module, c, diag);
  lp_module_free(module);
  return status;
}

/* ---- inputs that a refusal asks for ------------------------------------------------------------------------------ */

static bool is_bound(const binding_list *bindings, const char *name) {
  return LP_FIND(bindings->data, bindings->count, name) != NULL;
}

/* Binds the inputs that notes in `diag` name to the set's values; returns the number of new bindings. */
static size_t bind_needed(const lp_verify_compilation *c, const char *set, const lp_diag *diag,
                          binding_list *bindings) {
  size_t before = bindings->count;
  for (size_t i = 0; i < lp_diag_count(diag); i++) {
    const char *option = lp_diag_get(diag, i)->option;
    if (!option || !lp_has_prefix(option, bind_option)) continue;
    const char *name = option + strlen(bind_option);
    int32_t at = find_input(c->graph, name);
    if (at < 0 || is_bound(bindings, name)) continue;
    const char *path = lp_arena_format(c->graph->arena, "%s/input_%d.pb", set, (int)at);
    lp_input_binding binding = {.name = c->graph->input[at].name, .value = path};
    if (lp_path_exists(path)) lp_vec_push(bindings, binding);
  }
  return bindings->count - before;
}

static bool asks_for_inputs(const lp_diag *diag) {
  for (size_t i = 0; i < lp_diag_count(diag); i++)
    if (lp_diag_get(diag, i)->option && lp_has_prefix(lp_diag_get(diag, i)->option, bind_option)) return true;
  return false;
}

static void mark_bound(lp_verify_graph *graph, const binding_list *bindings) {
  for (size_t i = 0; i < graph->count; i++)
    graph->input[i].bound = is_bound(bindings, graph->input[i].name);
}

/* ---- entry points ------------------------------------------------------------------------------------------------ */

lp_status lp_verify_read_graph(const char *model, lp_arena *arena, lp_verify_graph *out, lp_diag *diag) {
  const char *const *names = NULL;
  LP_TRY(lp_onnx_input_names(model, arena, &names, &out->count, diag));
  out->arena = arena;
  out->input = LP_NEW_ARRAY(arena, lp_verify_input, out->count + 1);
  for (size_t i = 0; i < out->count; i++)
    out->input[i].name = names[i];
  return LP_OK;
}

static lp_status add_given(const lp_verify_compilation *c, binding_list *bindings, lp_input_binding **given,
                           lp_diag *diag) {
  LP_TRY(lp_bindings_read(&c->options->bind, given, diag));
  for (size_t i = 0; i < c->options->bind.count; i++)
    lp_vec_push(bindings, (*given)[i]);
  return LP_OK;
}

lp_status lp_verify_compile(const lp_verify_compilation *c, const char *set, bool *wants_set, lp_diag *diag) {
  LP_OWNED(lp_free_at) binding_list bindings = {0};
  lp_input_binding *given = NULL;
  lp_diag *own = lp_diag_create();
  if (wants_set) *wants_set = false;
  lp_status status = add_given(c, &bindings, &given, own);
  if (status == LP_OK) status = attempt(c, &bindings, own);
  while (status == LP_FAILED && set && bind_needed(c, set, own, &bindings) > 0) {
    lp_diag_clear(own);
    status = attempt(c, &bindings, own);
  }
  mark_bound(c->graph, &bindings);
  if (status == LP_FAILED && wants_set && asks_for_inputs(own))
    *wants_set = true;
  else
    lp_diag_append(diag, own);
  lp_diag_free(own);
  lp_bindings_free(given, c->options->bind.count);
  return status;
}
