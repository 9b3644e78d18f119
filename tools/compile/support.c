/* llmpart support: reports for each operator of a model whether it runs, and the share of the model that is recognised
 * as layers. */
#include "base/dir.h"
#include "base/path.h"
#include "base/poly.h"
#include "tools/compile/pipeline.h"
#include "tools/compile/unread.h"
#include "tools/generator.h"

#include "backend/backend.h"
#include "frontend/frontend.h"
#include "passes/passes.h"
#include "runtime/runtime.h"

typedef struct {
  const char *output, *subgraph, *encoder;
  lp_texts bind;
} support_options;

typedef struct {
  lp_operator_count count;
  const char *status; /* runs, decomposes, inlined, refused */
  const char *reason; /* the reason of a refusal; NULL otherwise */
} support_row;

typedef struct {
  lp_arena *arena;
  support_row *row;
  size_t count;
  bool compiles;
  bool runs; /* whether `llmpart run` generates with the bundle */
  /* The reason why the model does not compile or run when no operator is the reason; NULL otherwise. */
  const char *reason;
  const char *folder;       /* of the model's settings */
  double flops, recognised; /* at a prompt of 512 tokens; 0 when it cannot be compiled */
} support_table;

enum { PROMPT = 512 };

/* ---- the status of operators ------------------------------------------------------------------------------------- */

static const char *status_of(const lp_operator_count *count) {
  if (count->is_function) return "inlined";
  if (count->is_built) return "decomposes";
  if (!count->is_known) return "refused";
  return lp_kind_decomposes(count->kind) ? "decomposes" : "runs";
}

static support_row *find_row(const support_table *table, lp_loc loc) {
  const char *domain = loc.domain && loc.domain[0] ? loc.domain : "ai.onnx";
  for (size_t i = 0; i < table->count; i++)
    if (lp_streq(table->row[i].count.name, loc.op) && lp_streq(table->row[i].count.domain, domain))
      return &table->row[i];
  return NULL;
}

/* Only the first reason is kept. */
static void refuse(support_table *table, lp_loc loc, const char *why) {
  support_row *row = find_row(table, loc);
  if (!row && !table->reason) table->reason = lp_arena_strdup(table->arena, why);
  if (!row || row->reason) return;
  row->status = "refused";
  row->reason = lp_arena_format(table->arena, "%s: %s", loc.node ? loc.node : "", why);
}

static void refuse_as(support_table *table, const lp_diag *diag) {
  for (size_t i = 0; i < lp_diag_count(diag); i++)
    if (lp_diag_get(diag, i)->severity == LP_ERROR)
      refuse(table, lp_diag_get(diag, i)->loc, lp_diag_get(diag, i)->text);
}

static void check_code(support_table *table, const lp_module *module, bool *runs) {
  const lp_backend *cpu = lp_backend_find("cpu");
  const lp_op *func = lp_module_find_func(module, "main");
  LP_FOR_OPS(op, func->region) {
    char why[64] = "";
    if (lp_op_info_get(op->kind)->level != LP_LEVEL_OP || cpu->runs(op, why)) continue;
    refuse(table, op->loc, why);
    *runs = false;
  }
}

/* Counts the FLOPs of one prompt, in total and in recognised layers. */
static void count_flops(support_table *table, const lp_module *module) {
  size_t count = module->symbols.names.count;
  int64_t *values = LP_NEW_ARRAY(table->arena, int64_t, count + 1);
  lp_symbol batch = lp_symbols_find(&module->symbols, "b"), past = lp_symbols_find(&module->symbols, "p");
  for (size_t i = 0; i < count; i++)
    values[i] = PROMPT;
  if (batch) values[batch - 1] = 1;
  if (past) values[past - 1] = 0;
  LP_FOR_OPS(op, lp_module_find_func(module, "main")->region) {
    const lp_poly *flops = lp_op_poly(op, "flops");
    if (!flops) continue;
    double number = (double)lp_poly_eval(flops, values, count);
    table->flops += number;
    if (!lp_streq(lp_op_str(op, "layer_kind", "generic"), "generic")) table->recognised += number;
  }
}

/* ---- asking the runtime ------------------------------------------------------------------------------------------ */

static lp_status emit_nothing(lp_module *module, const lp_emit_options *options, lp_emit_form form, lp_buf *out,
                              lp_diag *diag) {
  (void)module, (void)options, (void)form, (void)out, (void)diag;
  return LP_OK;
}

static lp_status describe_code(lp_module *module, const lp_emit_options *options, lp_arena *arena, lp_code *out,
                               lp_diag *diag) {
  LP_TRY(lp_backend_find("cpu")->describe(module, options, arena, out, diag));
  out->weight_bytes = 0;
  return LP_OK;
}

/* Writes the bundle of `llmpart compile` without code and weights, and asks the runtime whether it can generate with
 * it, as every generation does. */
static lp_status check_bundle(lp_module *module, const char *settings, const char *folder, lp_diag *diag) {
  const lp_op *prefill = lp_module_find_func(module, "prefill");
  const lp_backend described = {.name = "cpu", .emits_code = true, .emit = emit_nothing, .describe = describe_code};
  const lp_bundle_request request = {.backend = {&described},
                                     .options = {{.march = "native"}},
                                     .folder = settings,
                                     .vocab = lp_tool_vocab(module),
                                     .context = prefill ? lp_op_i64(prefill, "context", 0) : 0};
  const lp_bundle_options options = {0};
  lp_bundle *bundle = NULL;
  LP_OWNED(lp_free_at) char *path = lp_path_join(folder, "model.llmpart");
  lp_status status = lp_bundle_write(module, &request, path, diag);
  if (status == LP_OK) status = lp_bundle_load(path, &options, &bundle, diag);
  if (status == LP_OK) status = lp_bundle_check_generates(bundle, diag);
  lp_bundle_free(bundle);
  return status;
}

static bool generates(support_table *table, lp_module *module) {
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  char *folder = NULL;
  lp_status status = lp_dir_temporary("llmpart-support", &folder, diag);
  if (status == LP_OK) status = check_bundle(module, table->folder, folder, diag);
  lp_dir_abandon(folder);
  free(folder);
  if (status != LP_OK) refuse_as(table, diag);
  return status == LP_OK;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* Runs the pipelines of `llmpart compile --device`, except that code and weights are not written. */
static lp_status run_pipelines(support_table *table, lp_module *module, lp_diag *diag) {
  const lp_compile_request request = {
      .isl = PROMPT, .osl = 1, .batch = 1, .generation = true, .scheduler = "device-only", .objective = "cost"};
  const lp_run_options run = {.verify_each = true};
  LP_TRY(lp_passes_run(module, lp_pipeline_ops, &request, &run, diag));
  table->compiles = true;
  check_code(table, module, &table->compiles);
  count_flops(table, module);
  LP_TRY(lp_passes_run(module, "place", &request, &run, diag));
  return lp_passes_run(module, lp_pipeline_split, &request, &run, diag);
}

static void try_compiling(support_table *table, const char *path, const lp_import_options *import) {
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  LP_OWNED(lp_module_free_at) lp_module *module = NULL;
  lp_status status = lp_generator_import(path, import, &module, diag);
  if (status == LP_OK) status = run_pipelines(table, module, diag);
  if (status != LP_OK) {
    table->compiles = false;
    refuse_as(table, diag);
  }
  if (table->compiles) table->runs = generates(table, module);
}

static int compare_rows(const void *a, const void *b) {
  const lp_operator_count *x = &((const support_row *)a)->count, *y = &((const support_row *)b)->count;
  int order = strcmp(x->domain, y->domain);
  return order ? order : strcmp(x->name, y->name);
}

/* Adds the operators of the encoder's file. An operator that the decoder has too gets one row. */
static lp_status add_encoder(support_table *table, const lp_import_options *import, lp_operator_count **counts,
                             lp_diag *diag) {
  const lp_import_options whole = {.weights_absent_ok = true};
  lp_operator_count *own = NULL;
  size_t count = 0;
  LP_TRY(lp_onnx_census(import->encoder, &whole, table->arena, &own, &count, diag));
  lp_operator_count *all = LP_NEW_ARRAY(table->arena, lp_operator_count, table->count + count + 1);
  for (size_t i = 0; i < table->count; i++)
    all[i] = (*counts)[i];
  for (size_t i = 0; i < count; i++) {
    size_t k = 0;
    while (k < table->count && !(lp_streq(all[k].name, own[i].name) && lp_streq(all[k].domain, own[i].domain)))
      k++;
    if (k < table->count)
      all[k].count += own[i].count;
    else
      all[table->count++] = own[i];
  }
  *counts = all;
  return LP_OK;
}

/* A Hugging Face folder and a GGUF file hold no operators: llmpart builds the graph, and the table says what becomes of
 * it. */
static lp_status make_table(support_table *table, const char *path, const lp_import_options *import, lp_diag *diag) {
  lp_operator_count *counts = NULL;
  if (lp_model_form_of(path) != LP_MODEL_ONNX) {
    try_compiling(table, path, import);
    return LP_OK;
  }
  LP_TRY(lp_onnx_census(path, import, table->arena, &counts, &table->count, diag));
  if (import->encoder) LP_TRY(add_encoder(table, import, &counts, diag));
  table->row = LP_NEW_ARRAY(table->arena, support_row, table->count + 1);
  for (size_t i = 0; i < table->count; i++) {
    table->row[i] = (support_row){.count = counts[i], .status = status_of(&counts[i])};
    if (!counts[i].is_known && lp_streq(table->row[i].status, "refused"))
      table->row[i].reason = "there is no such operator in llmpart";
  }
  qsort(table->row, table->count, sizeof *table->row, compare_rows);
  try_compiling(table, path, import);
  return LP_OK;
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static double share(const support_table *table) {
  return table->flops > 0 ? 100 * table->recognised / table->flops : 0;
}

static void put_text(const support_table *table, lp_buf *out) {
  if (table->count > 0) lp_buf_printf(out, "%-40s %6s %8s  %s\n", "operator", "opset", "count", "status");
  LP_FOR_EACH(const support_row, row, table->row, table->count) {
    char name[128];
    (void)snprintf(name, sizeof name, "%s.%s", row->count.domain, row->count.name);
    lp_buf_printf(out, "%-40s %6" PRId64 " %8" PRId64 "  %s%s%s\n", name, row->count.opset, row->count.count,
                  row->status, row->reason ? ": " : "", row->reason ? row->reason : "");
  }
  const char *outcome = table->runs ? "compiles" : table->compiles ? "compiles, but does not run" : "does not compile";
  lp_buf_printf(out, "%s%s%s\n", outcome, table->reason ? ": " : "", table->reason ? table->reason : "");
  if (table->flops > 0) lp_buf_printf(out, "%.1f %% of the FLOPs are in recognised layers\n", share(table));
}

static void put_json(const support_table *table, lp_buf *out) {
  lp_json_writer json = lp_tool_json(out, 6, "llmpart.support/1");
  lp_json_put_bool(&json, "compiles", table->compiles);
  lp_json_put_bool(&json, "runs", table->runs);
  lp_json_put_text(&json, "reason", table->reason);
  lp_json_put_array(&json, "operators");
  LP_FOR_EACH(const support_row, row, table->row, table->count) {
    lp_json_put_object(&json, NULL);
    lp_json_put_text(&json, "domain", row->count.domain);
    lp_json_put_text(&json, "name", row->count.name);
    lp_json_put_integer(&json, "opset", row->count.opset);
    lp_json_put_integer(&json, "count", row->count.count);
    lp_json_put_text(&json, "status", row->status);
    lp_json_put_text(&json, "reason", row->reason);
    lp_json_put_end(&json);
  }
  lp_json_put_end(&json);
  if (table->flops > 0) lp_json_put_number(&json, "recognised_flops_pct", share(table));
  lp_json_document_end(&json);
}

static lp_status support(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const support_options *options = command->user;
  lp_input_binding *bindings = NULL;
  char *decoder = NULL, *encoder = NULL;
  LP_TRY(lp_bindings_read(&options->bind, &bindings, diag));
  (void)lp_model_find_files(args->data[0], &decoder, &encoder);
  const char *used = lp_streq(options->encoder, "none") ? NULL : options->encoder ? options->encoder : encoder;
  const lp_import_options import = {.weights_absent_ok = true,
                                    .bindings = bindings,
                                    .binding_count = options->bind.count,
                                    .subgraph = options->subgraph,
                                    .encoder = used,
                                    .frees_lengths = true};
  const char *model = decoder ? decoder : args->data[0];
  char *folder = lp_model_form_of(model) == LP_MODEL_ONNX ? lp_path_dir(model) : NULL;
  support_table table = {.arena = lp_arena_create(), .folder = folder ? folder : args->data[0]};
  lp_unread unread;
  lp_buf out = {0};
  lp_unread_begin(&unread);
  lp_status status = make_table(&table, model, &import, diag);
  lp_unread_end(&unread, model, command->voice->verbose && lp_streq(options->output, "text") ? &out : NULL);
  if (status == LP_OK) {
    if (lp_streq(options->output, "json"))
      put_json(&table, &out);
    else
      put_text(&table, &out);
    status = lp_tool_write("-", &out, diag);
  }
  lp_buf_free(&out);
  free(folder);
  lp_bindings_free(bindings, options->bind.count);
  free(decoder);
  free(encoder);
  lp_arena_free(table.arena);
  return status;
}

int lp_tool_support(int argc, char **argv) {
  support_options options = {.output = "text"};
  const lp_option table[] = {
      LP_BIND_OPTION(options.bind),
      {"--subgraph", LP_OPTION_TEXT, &options.subgraph, "NAME",
       "take the graph that a node holds as attribute NAME instead"},
      {"--encoder", LP_OPTION_TEXT, &options.encoder, "FILE|none",
       "take this encoder with the decoder (encoder_model.onnx beside decoder_model.onnx)"},
      {"-o", LP_OPTION_CHOICE, &options.output, "text|json", "choose the form of the table (text)"}};
  const lp_command command = {
      .usage = "llmpart support MODEL [--encoder=FILE|none] [--subgraph=NAME] [-o text|json]",
      .summary = "Lists every operator of a model with its count: it runs, decomposes into others, is inlined, or is\n"
                 "refused and why; whether it compiles, and whether `llmpart run` generates with it; and the share of "
                 "FLOPs in\n"
                 "recognised layers. With -v also the keys of the model's files that nothing reads. Reads no weights.",
      LP_OPTIONS(table),
      .args = {1, 1},
      .act = support,
      .user = &options};
  int status = lp_tool_main(&command, argc, argv);
  lp_vec_free(&options.bind);
  return status;
}
