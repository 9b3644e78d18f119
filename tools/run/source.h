/* The source of a model's encoder, from the flags of `llmpart run`. */
#pragma once

#include "runtime/runtime.h"
#include "tools/run/prompt.h"

typedef struct {
  lp_source source;       /* borrows from the members below */
  lp_run_prompt text;     /* the prompt, which the encoder reads */
  LP_VEC(float) features; /* [batch] times the features of one sequence */
} lp_run_source;

/* For a bundle with an encoder: moves the prompt into the encoder's source, or reads the file of features that `flags`
 * names, and replaces `prompt` by the tokens with which the decoder begins: those that `flags` gives, or the model's
 * own. For any other bundle it checks that the prompt's rows have one length. The function zeroes `out` first; the
 * caller releases it with lp_run_source_free, also after a failure. */
LP_MUST_USE lp_status lp_run_source_make(const lp_prompt_flags *flags, const lp_bundle *bundle, lp_run_prompt *prompt,
                                         lp_run_source *out, lp_diag *diag);
void lp_run_source_free(lp_run_source *source);
