/* Loads the model of a specification: see model.h. */
#include "tools/plan/model.h"
#include "frontend/frontend.h"
#include "tools/generator.h"

lp_status lp_tool_plan_model(const char *path, const lp_decoder_shape *decoder, const lp_compile_request *request,
                             lp_module **out, lp_diag *diag) {
  const lp_run_options options = {.verify_each = true};
  const char *pipeline = "fuse,tie-weights,mark-sensitive,annotate";
  if (path) {
    const lp_import_options import = {.weights_absent_ok = true, .frees_lengths = true};
    LP_TRY(lp_generator_import(path, &import, out, diag));
    pipeline = lp_pipeline_ops;
  } else {
    lp_dtype kv_dtype = LP_F32;
    if (request->kv_dtype) (void)lp_dtype_parse(request->kv_dtype, &kv_dtype);
    *out = lp_decoder_create(decoder, &kv_dtype);
  }
  const lp_status status = lp_passes_run(*out, pipeline, request, &options, diag);
  if (status == LP_OK) return LP_OK;
  lp_module_free(*out);
  *out = NULL;
  return status;
}
