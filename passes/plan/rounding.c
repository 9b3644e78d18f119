/* The type of activations, where the request leaves it to llmpart. */
#include "passes/passes.h"

static bool multiplies_rounded(const char *dtype) {
  return lp_streq(dtype, "bf16") || lp_streq(dtype, "int8") || lp_streq(dtype, "int4");
}

bool lp_rounds_activations(const lp_compile_request *request) {
  if (request->activations) return lp_streq(request->activations, "auto");
  return multiplies_rounded(request->dtype_device) || multiplies_rounded(request->dtype_cloud);
}
