/* The branch of a merged decoder. The one with a past serves prompts as well, unless its exporter traced it with one
 * new token and left out the mask that hides later ones; the exporter's own runtime reads prompts with the other
 * branch. */
#include "tools/generator.h"

#include "passes/passes.h"

static bool main_has(const lp_module *module, const char *attr) {
  const lp_op *main = lp_module_find_func(module, "main");
  return main && lp_op_i64(main, attr, 0) != 0;
}

/* Tells whether the branch with a past is right for one new token only, as the pass kv-cache finds. */
static bool takes_one_token(const char *model, const lp_import_options *options) {
  const lp_compile_request request = {.isl = 512, .osl = 128, .batch = 1, .generation = true};
  lp_import_options graph = *options;
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  lp_module *module = NULL;
  bool found = false;
  graph.weights_absent_ok = true;
  if (lp_model_import(model, &graph, &module, quiet) == LP_OK) {
    found = lp_passes_run(module, lp_pipeline_ops, &request, NULL, quiet) != LP_OK && main_has(module, "one_token");
    lp_module_free(module);
  }
  return found;
}

lp_status lp_generator_import(const char *model, const lp_import_options *options, lp_module **out, lp_diag *diag) {
  LP_TRY(lp_model_import(model, options, out, diag));
  if (!options || !options->frees_lengths || !main_has(*out, "cache_switch") || !takes_one_token(model, options))
    return LP_OK;
  lp_import_options chosen = *options;
  chosen.without_past = true;
  lp_note(diag, LP_LOC_FILE(model),
          "its branch with a past is right for one token at a time: the other branch is taken, and gets KV caches");
  lp_module_free(*out);
  *out = NULL;
  return lp_model_import(model, &chosen, out, diag);
}
