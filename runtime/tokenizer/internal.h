/* The struct of a tokenizer (tokenizer.c). */
#pragma once

#include "runtime/chat/chat.h"
#include "runtime/tokenizer/added.h"
#include "runtime/tokenizer/steps.h"
#include "runtime/tokenizer/vocab.h"

/* How a token decodes that the normalizer changes. */
typedef struct {
  const char *text; /* NULL: as the vocabulary has it */
  size_t size;
  bool special; /* skip_special leaves it out: the text is that of a special token */
} lp_decoded;

/* The source of a chat template, and its file. */
typedef struct {
  const char *source, *file; /* NULL: none */
  size_t size;
} lp_chat_template;

struct lp_tokenizer {
  lp_arena *arena;
  lp_vocab vocab;
  lp_added_set raw, normalized; /* added tokens: found before and after the normalizer */
  LP_VEC(bool) special;         /* [id] set for special tokens */
  LP_VEC(lp_decoded) decoded;   /* [id] */
  lp_steps normalizer, pre_tokenizer, decoder;
  bool has_decoder;                 /* if there is none, tokens are joined with spaces */
  lp_tokens before, after;          /* the post-processor's special tokens around the text */
  const char *bos, *eos;            /* texts; NULL: none */
  LP_VEC(lp_chat_special) specials; /* those and the others that the files name: pad_token, ... */
  lp_chat_template chat, tool_chat; /* the template, and that of requests with tools */
};

/* Appends what the template prints; `input` needs neither file nor special tokens. `with_tools`: there is a list of
 * tools. */
LP_MUST_USE lp_status lp_tokenizer_render(const lp_tokenizer *tokenizer, lp_chat_input input, bool with_tools,
                                          lp_buf *out, lp_diag *diag);

/* Loads a tokenizer from a tokenizer.json in memory; `file` names it in messages. */
LP_MUST_USE lp_status lp_tokenizer_parse(const char *file, const char *data, size_t size, lp_tokenizer **out,
                                         lp_diag *diag);

/* A mark is a noncharacter that none of the texts contains. It is put after the first character of every special token
 * that a text spells, so that it stays text, and lp_tokenizer_encode_marked drops it. */
void lp_tokenizer_choose_mark(const lp_chat_message *messages, size_t count, lp_buf *out);
void lp_tokenizer_mark(const lp_tokenizer *tokenizer, const char *text, size_t size, const char *mark, lp_buf *out);
LP_MUST_USE lp_status lp_tokenizer_encode_marked(const lp_tokenizer *tokenizer, const lp_buf *text, const char *mark,
                                                 lp_tokens *out, lp_diag *diag);
