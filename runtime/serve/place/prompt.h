/* What a request says to a bundle: the tokens of its prompt, its sampling, bias and grammar. Pure; any thread. */
#ifndef LP_SERVE_PROMPT_H
#define LP_SERVE_PROMPT_H

#include "runtime/engine/grammar.h"
#include "runtime/serve/request.h"

/* Appends the prompt's tokens: those of the request, or of its text, or of its messages by the chat template. */
LP_MUST_USE lp_status lp_prompt_encode(const lp_bundle *bundle, const lp_completion *request, lp_tokens *out,
                                       lp_diag *diag);
lp_sampling lp_prompt_sampling(const lp_bundle *bundle, const lp_completion *request);
/* LP_USAGE: `logit_bias` has a token that the model lacks. */
LP_MUST_USE lp_status lp_prompt_check_bias(const lp_bundle *bundle, const lp_completion *request, lp_diag *diag);
/* The grammar of the answer, which the caller frees; *out stays NULL where any text will do. */
LP_MUST_USE lp_status lp_prompt_grammar(const lp_completion *request, lp_grammar **out, lp_diag *diag);

#endif
