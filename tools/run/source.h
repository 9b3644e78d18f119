/* What the encoder of a model reads, from the flags of `llmpart run`. */
#ifndef LP_TOOLS_RUN_SOURCE_H
#define LP_TOOLS_RUN_SOURCE_H

#include "runtime/runtime.h"
#include "tools/run/prompt.h"

typedef struct {
  lp_source source;       /* borrows from the members below */
  lp_run_prompt text;     /* the prompt, which the encoder reads */
  LP_VEC(float) features; /* those of one sequence for each of the batch */
} lp_run_source;

/* For a bundle with an encoder: makes the prompt, or the file of features that `flags` names, the encoder's source, and
 * replaces `prompt` by what the decoder begins with: the tokens that `flags` gives, or the model's own. For any other
 * bundle checks that the prompt's rows are of one length. `out` is zeroed first; release it also after a failure. */
LP_MUST_USE lp_status lp_run_source_make(const lp_prompt_flags *flags, const lp_bundle *bundle, lp_run_prompt *prompt,
                                         lp_run_source *out, lp_diag *diag);
void lp_run_source_free(lp_run_source *source);

#endif
