/* Calls of tools in a model's text: a sink that passes text on, and calls in place of the text that spells them. */
#pragma once

#include "runtime/serve/place/site.h"

/* One for each choice. Models spell a call as {"name": NAME, "arguments": {...}} or with "parameters", or a list of
 * such objects, either alone or between <tool_call> and </tool_call>. */
typedef struct {
  const lp_completion *request;
  lp_piece_sink *sink;
  void *user;
  lp_usage *usage;
  struct {
    lp_buf held;  /* text that may spell a call */
    bool is_text; /* the answer did not begin as a call */
  } choice[LP_MOST_CHOICES];
} lp_tool_reader;

bool lp_tool_reader_put(void *reader, const lp_piece *piece); /* an lp_piece_sink */
/* Passes on the calls, or the text that turned out to be none, and frees it. */
void lp_tool_reader_end(lp_tool_reader *reader, bool whole);
