/* Compares a bundle with the model it was compiled from, on the steps of a generation. */
#pragma once

#include "frontend/frontend.h"
#include "tools/equal/results.h"

typedef struct {
  const char *model, *bundle;
  const lp_import_options *import; /* the options with which the model was imported for compilation */
  bool onnxruntime;                /* compares with ONNX Runtime (onnxruntime.h), not with the interpreter */
  int64_t threads;
  /* The greatest allowed difference, as a share of the greatest logit; less precise types of the graph raise it, unless
   * it is 0. */
  double limit;
} lp_check_request;

/* Runs a prompt, one more token, several tokens after a past, and one more, at batch 1 and 2, as far as the model's
 * sizes and its context allow, and compares all logits with the reference interpreter's or ONNX Runtime's. One result
 * per step. A step that ONNX Runtime does not run is LP_VERIFY_UNSUPPORTED; it is an error if it is the first. */
LP_MUST_USE lp_status lp_check_bundle(const lp_check_request *request, lp_verify_results *results, lp_diag *diag);
/* Does the same and reports the first difference as LP_MISMATCH. */
LP_MUST_USE lp_status lp_check_compiled(const lp_check_request *request, lp_diag *diag);
/* The difference that types of weights and caches ("int8"; NULL: as in the graph) allow, for `limit`; 0: none. */
double lp_check_limit(const char *const *types, size_t count);
