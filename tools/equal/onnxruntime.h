/* ONNX Runtime in a child process: Python runs onnxruntime.py, which is part of this program, with PyPI's onnxruntime.
 * Only `llmpart verify --against=onnxruntime` needs it. */
#pragma once

#include "ir/ir.h"

typedef struct lp_onnxruntime lp_onnxruntime;

typedef struct {
  const char *name; /* in the model */
  lp_array array;
} lp_named_array;

/* Loads an ONNX model, and the embedding beside it if it takes `inputs_embeds` instead of `input_ids`. Python is
 * $LLMPART_PYTHON or `python3`. Fails when Python cannot be started, or cannot load the package or the model. `threads`
 * 0: all cores. */
LP_MUST_USE lp_status lp_onnxruntime_open(const char *model, int64_t threads, lp_onnxruntime **out, lp_diag *diag);
void lp_onnxruntime_close(lp_onnxruntime *runtime); /* NULL is allowed */
/* Tells whether ONNX Runtime itself caused the last failure, because it cannot run the model on such inputs. */
bool lp_onnxruntime_refused(const lp_onnxruntime *runtime);
/* Runs the model once: found[wanted_count] receives the outputs of these names, their data in `arena`. */
LP_MUST_USE lp_status lp_onnxruntime_run(lp_onnxruntime *runtime, const lp_named_array *inputs, size_t count,
                                         const char *const *wanted, size_t wanted_count, lp_arena *arena,
                                         lp_array *found, lp_diag *diag);
