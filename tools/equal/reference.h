/* Runs a model on the steps of a generation, by the reference interpreter of ir/ or by ONNX Runtime; bundles are
 * compared with it. Recognising and lowering have no part in it. It takes the names of tokens, logits, pasts and
 * presents from bind-inputs, on a second copy of the graph, and gives the graph masks and positions itself. */
#pragma once

#include "frontend/frontend.h"
#include "ir/ir.h"
#include "tools/equal/onnxruntime.h"
#include "tools/equal/run.h"

typedef struct lp_reference lp_reference;

/* Fails on a model with neither logits nor hidden states, and on an input with unknown content. `runtime` has loaded
 * the same model, borrowed until lp_reference_free; NULL: the interpreter evaluates the graph. */
LP_MUST_USE lp_status lp_reference_open(const char *model, const lp_import_options *import, lp_onnxruntime *runtime,
                                        lp_reference **out, lp_diag *diag);
void lp_reference_free(lp_reference *reference); /* NULL is allowed */
/* The constant sizes of the tokens' input, 0 where any size is allowed. */
int64_t lp_reference_batch(const lp_reference *reference);
int64_t lp_reference_length(const lp_reference *reference);
int64_t lp_reference_vocab(const lp_reference *reference); /* the number of tokens; 0: it is not known */
/* What is compared: "logits", or "hidden states" of a model without a head. */
const char *lp_reference_compared(const lp_reference *reference);
/* The type of the least precise floats that the graph computes with. */
lp_dtype lp_reference_dtype(const lp_reference *reference);

/* Begins `batch` new sequences, with new numbers in inputs that are neither tokens nor caches. */
LP_MUST_USE lp_status lp_reference_begin(lp_reference *reference, int64_t batch, lp_diag *diag);
/* Continues with tokens[batch][count]. `logits`, or the hidden states, are borrowed until the next call:
 * [batch][count][width], or [batch][1][width] of a graph that gives those of the last position only. */
LP_MUST_USE lp_status lp_reference_step(lp_reference *reference, const int64_t *tokens, int64_t count, lp_array *logits,
                                        lp_diag *diag);
/* Returns the number of inputs that are neither tokens nor caches and do not follow from the sizes. `out` (NULL is
 * allowed) receives them as they were in the last step, borrowed until the next, so that the bundle gets the same
 * data. */
size_t lp_reference_data(const lp_reference *reference, lp_verify_array *out);
/* The tokens' input with tokens[batch][count] in its element type, borrowed until the next step. */
lp_verify_array lp_reference_tokens(const lp_reference *reference);
