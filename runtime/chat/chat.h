/* Chat templates: the subset of Jinja that the templates of published models use. Private to runtime/.
 *
 *   source -> tokens (lex.c) -> tree (parse.c) -> text (render.c)
 *
 * The other files hold the operations on values. White space is trimmed with transformers' settings (trim_blocks,
 * lstrip_blocks). A construct outside the subset is an error, which names it, when it is reached; no template is
 * rendered in part. A rendering has limits of memory, steps and depth (budget.h). The room knows no tokenizer.
 */
#pragma once

#include "base/json/reader.h"
#include "runtime/runtime.h"

/* A special token that the tokenizer's files name: "bos_token". */
typedef struct {
  const char *name, *text;
} lp_chat_special;

typedef enum {
  LP_CHAT_NO_LIMIT,
  LP_CHAT_LIMIT_MEMORY,
  LP_CHAT_LIMIT_STEPS,
  LP_CHAT_LIMIT_DEPTH,
  LP_CHAT_LIMIT_TIME
} lp_chat_limit;

typedef struct {
  const char *file; /* the template's file, for messages */
  const lp_chat_special *specials;
  size_t special_count;
  const lp_chat_message *messages;
  size_t count;
  bool add_generation_prompt;
  /* an object; its members, such as messages and tools, take precedence over those above; NULL: none */
  const lp_json_value *variables;
  const lp_watch *watch; /* asked each millisecond; NULL: nothing stops the rendering */
  lp_chat_limit *broken; /* becomes the limit that a failed rendering broke; NULL: not wanted */
} lp_chat_input;

/* Appends the text that the template prints for the messages; appends nothing after a failure. */
LP_MUST_USE lp_status lp_chat_render(const char *source, size_t size, const lp_chat_input *input, lp_buf *out,
                                     lp_diag *diag);
