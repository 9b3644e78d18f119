/* Imports a Hugging Face folder into a module. */
#include "base/path.h"
#include "frontend/huggingface/huggingface.h"

/* The folder's own name, without slashes at its end. */
static const char *name_of(lp_arena *arena, const char *folder) {
  size_t size = strlen(folder);
  while (size > 1 && folder[size - 1] == '/')
    size--;
  return lp_path_base(lp_arena_strndup(arena, folder, size));
}

/* Predictors of further tokens that are no layers. */
static void leave_out_predictors(const lp_decoder *decoder, lp_weights *weights) {
  for (size_t i = 0; i < lp_map_count(weights->tensors); i++) {
    const char *name = lp_map_key_at(weights->tensors, i);
    lp_stored *tensor = lp_map_value_at(weights->tensors, i);
    if (decoder->predictors > 0 && lp_has_prefix(name, "mtp_")) tensor->used = true; /* of Ernie */
    if (decoder->scan.heads > 0 && lp_has_prefix(name, "mtp.")) tensor->used = true; /* of Qwen and Nemotron */
  }
}

static lp_status fill(lp_module *module, const char *folder, const lp_import_options *options, lp_diag *diag) {
  lp_decoder decoder;
  lp_weights weights = {.module = module,
                        .tensors = lp_map_create(),
                        .path = module->directory,
                        .absent_ok = options->weights_absent_ok,
                        .assumed = LP_DTYPE_COUNT,
                        .diag = diag};
  LP_OWNED(lp_free_at) char *config = lp_path_join(folder, "config.json");
  bool is_part = false;
  lp_packing packing = {0};
  lp_status status = lp_huggingface_config(config, module->arena, &decoder, &is_part, &packing, diag);
  if (status == LP_OK) status = lp_huggingface_checkpoint(folder, decoder.stored, &weights, diag);
  if (status == LP_OK) status = lp_packing_apply(&packing, &decoder, &weights);
  if (status == LP_OK) status = lp_huggingface_part_experts(&decoder, &weights);
  if (status == LP_OK) leave_out_predictors(&decoder, &weights);
  if (status == LP_OK && is_part) lp_huggingface_leave_out_images(&weights);
  for (size_t i = 0; i < options->adapter_count && status == LP_OK; i++)
    status = lp_huggingface_merge(&options->adapters[i], &decoder, &weights, diag);
  if (status == LP_OK) status = lp_decoder_build(module, &decoder, &weights, diag);
  lp_map_free(weights.tensors);
  return status;
}

lp_status lp_huggingface_import(const char *folder, const lp_import_options *options, lp_module **out, lp_diag *diag) {
  lp_arena *scratch = lp_arena_create();
  lp_module *module = lp_module_create(name_of(scratch, folder));
  lp_arena_free(scratch);
  module->directory = lp_arena_strdup(module->arena, folder);
  lp_status status = fill(module, folder, options, diag);
  if (status == LP_OK)
    *out = module;
  else
    lp_module_free(module);
  return status;
}
