/* OpenAI's responses: their answers (responses_answer.c), for their requests (responses.c). */
#pragma once

#include "runtime/serve/dialects/dialect.h"

void lp_responses_whole(const lp_telling *telling, lp_buf *out);
void lp_responses_piece(lp_telling *telling, const char *text, lp_buf *out);
void lp_responses_end(lp_telling *telling, lp_buf *out);
void lp_responses_fail(lp_telling *telling, const char *why, lp_buf *out);
char *lp_responses_error(unsigned status, const char *text);
