/* Which keys of config.json, generation_config.json, genai_config.json, tokenizer_config.json and GGUF nothing reads,
 * for `llmpart support -v`. One thread at a time. */
#pragma once

#include "base/base.h"

typedef struct {
  struct lp_map *read;
} lp_unread;

void lp_unread_begin(lp_unread *unread); /* before the model is read */
/* Appends a line for each key of the files beside the model that was not read since; `out` NULL: lists nothing. */
void lp_unread_end(lp_unread *unread, const char *model, lp_buf *out);
