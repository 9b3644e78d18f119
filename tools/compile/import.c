/* llmpart import: writes an ONNX model as IR text. Inputs that a user gives as constants. */
#include "frontend/frontend.h"
#include "tools/compile/pipeline.h"
#include "tools/generator.h"
#include "tools/tools.h"

typedef struct {
  const char *emit, *output, *subgraph;
  bool locations;
  lp_texts bind;
  lp_pass_flags flags;
} import_options;

static lp_status import_model(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const import_options *options = command->user;
  lp_module *module = NULL;
  lp_input_binding *bindings = NULL;
  const lp_compile_request request = {.isl = 512, .osl = 128, .batch = 1, .generation = true};
  LP_TRY(lp_tool_check_pass(&options->flags, diag));
  LP_TRY(lp_bindings_read(&options->bind, &bindings, diag));
  const lp_import_options import = {.weights_absent_ok = true,
                                    .bindings = bindings,
                                    .binding_count = options->bind.count,
                                    .subgraph = options->subgraph,
                                    .frees_lengths = lp_streq(options->emit, "layer-ir")};
  lp_status status = lp_generator_import(args->data[0], &import, &module, diag);
  lp_bindings_free(bindings, options->bind.count);
  if (status != LP_OK) return status;
  lp_run_options run = lp_tool_run_options(&options->flags);
  if (lp_streq(options->emit, "layer-ir"))
    status = lp_passes_run(module, lp_pipeline_layers, &request, &run, diag);
  else
    status = lp_module_verify(module, diag);
  if (status == LP_OK) status = lp_tool_write_module(module, options->locations, options->output, diag);
  lp_module_free(module);
  return status;
}

int lp_tool_import(int argc, char **argv) {
  import_options options = {.emit = "onnx-ir", .output = "-"};
  const lp_option table[] = {
      {"--emit", LP_OPTION_CHOICE, &options.emit, "onnx-ir|layer-ir",
       "choose the operators of the file, or layers (onnx-ir)"},
      LP_BIND_OPTION(options.bind),
      {"--subgraph", LP_OPTION_TEXT, &options.subgraph, "NAME",
       "take the graph that a node holds as attribute NAME instead"},
      {"--locations", LP_OPTION_FLAG, &options.locations, NULL, "print the ONNX node of each operator"},
      {"-o", LP_OPTION_TEXT, &options.output, "FILE", "write to FILE (stdout)"},
      LP_PASS_FLAG_OPTIONS(options.flags)};
  const lp_command command = {.usage = "llmpart import MODEL.onnx [--emit=onnx-ir|layer-ir] [-o FILE]",
                              .summary = "Prints a model as MLIR text. Reads no weights.",
                              LP_OPTIONS(table),
                              .args = {1, 1},
                              .act = import_model,
                              .user = &options};
  int status = lp_tool_main(&command, argc, argv);
  lp_vec_free(&options.bind);
  return status;
}

/* ---- bound inputs ------------------------------------------------------------------------------------------------ */

lp_status lp_bindings_read(const lp_texts *texts, lp_input_binding **out, lp_diag *diag) {
  lp_input_binding *bindings = lp_alloc((texts->count + 1) * sizeof *bindings);
  for (size_t i = 0; i < texts->count; i++) {
    const char *equals = strchr(texts->data[i], '=');
    if (!equals || equals == texts->data[i]) {
      lp_bindings_free(bindings, i);
      return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--bind"), "'%s' is not NAME=VALUES or NAME=FILE.pb",
                         texts->data[i]);
    }
    char *name = lp_strdup(texts->data[i]);
    name[equals - texts->data[i]] = '\0';
    bindings[i] = (lp_input_binding){.name = name, .value = equals + 1};
  }
  *out = bindings;
  return LP_OK;
}

void lp_bindings_free(lp_input_binding *bindings, size_t count) {
  for (size_t i = 0; i < count && bindings; i++)
    free((void *)(uintptr_t)bindings[i].name);
  free(bindings);
}
