/* Tokens with their log probabilities, in the API's format. */
#pragma once

#include "base/json/writer.h"
#include "runtime/serve/place/site.h"

/* The layout of all answers: compact, with numbers that parse to the same double. */
lp_json_writer lp_answer_begin(lp_buf *out);

typedef LP_VEC(lp_answer_logprob) lp_logprobs;

lp_answer_logprob lp_answer_logprob_of(const lp_tokenizer *tokenizer, const lp_drawn *drawn, bool chat);
/* Appends the tokens of the member `logprobs` of another server's choice. */
void lp_logprobs_read(const lp_json *logprobs, bool chat, lp_logprobs *out);
lp_answer_logprob lp_answer_logprob_copy(const lp_answer_logprob *token);
void lp_answer_logprob_free(lp_answer_logprob *token);
void lp_logprobs_free(lp_logprobs *logprobs);
/* Writes the member `logprobs` of a choice. `characters`: of the choice's text before the first token. */
void lp_logprobs_write(lp_json_writer *json, const lp_answer_logprob *logprobs, size_t count, bool chat,
                       size_t characters);
