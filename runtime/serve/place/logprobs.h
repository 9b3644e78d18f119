/* Tokens with their log probabilities, in the API's format. */
#ifndef LP_SERVE_TOLD_H
#define LP_SERVE_TOLD_H

#include "base/json/writer.h"
#include "runtime/serve/place/site.h"

/* The layout of all answers: compact, with numbers that parse to the same double. */
lp_json_writer lp_answer_begin(lp_buf *out);

typedef LP_VEC(lp_told_token) lp_told;

lp_told_token lp_told_of_drawn(const lp_tokenizer *tokenizer, const lp_drawn *drawn, bool chat);
/* Appends the tokens of the member `logprobs` of another server's choice. */
void lp_told_read(const lp_json *logprobs, bool chat, lp_told *out);
lp_told_token lp_told_copy(const lp_told_token *token);
void lp_told_token_free(lp_told_token *token);
void lp_told_free(lp_told *told);
/* Writes the member `logprobs` of a choice. `characters`: of the choice's text before the first token. */
void lp_told_write(lp_json_writer *json, const lp_told_token *told, size_t count, bool chat, size_t characters);

#endif
