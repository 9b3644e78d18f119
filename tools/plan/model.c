/* Loads the model of a specification: see model.h. */
#include "tools/plan/model.h"
#include "frontend/frontend.h"
#include "tools/generator.h"

static lp_status import_model(const char *path, lp_loc loc, lp_module **out, lp_diag *diag) {
  const lp_import_options options = {.weights_absent_ok = true, .frees_lengths = true};
  LP_OWNED(lp_diag_free_at) lp_diag *inner = lp_diag_create();
  const lp_status status = lp_generator_import(path, &options, out, inner);
  if (status == LP_OK)
    lp_diag_append(diag, inner);
  else
    lp_diag_relay(diag, loc, "model", inner);
  return status;
}

lp_status lp_tool_plan_model(const char *path, const lp_decoder_shape *decoder, lp_loc loc,
                             const lp_compile_request *request, lp_module **out, lp_diag *diag) {
  const lp_run_options options = {.verify_each = true};
  const char *pipeline = "fuse,tie-weights,mark-sensitive,annotate";
  if (path) {
    LP_TRY(import_model(path, loc, out, diag));
    pipeline = lp_pipeline_ops;
  } else {
    lp_dtype kv_dtype = LP_F32;
    const int64_t width = decoder->hidden / decoder->heads;
    if (request->kv_dtype) (void)lp_cache_dtype_parse(request->kv_dtype, &kv_dtype);
    if (lp_cache_row(kv_dtype, width) < 0)
      return lp_error(diag, loc, "KV caches in codes have blocks of %d elements, and a head has %" PRId64 ": use f16",
                      LP_CACHE_BLOCK, width);
    *out = lp_decoder_create(decoder, &kv_dtype);
  }
  const lp_status status = lp_passes_run(*out, pipeline, request, &options, diag);
  if (status == LP_OK) return LP_OK;
  lp_module_free(*out);
  *out = NULL;
  return status;
}
