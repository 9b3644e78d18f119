/* Tokens of generic MLIR assembly, for parser.c. */
#pragma once

#include "base/base.h"

typedef enum {
  LP_TOK_END,
  LP_TOK_PUNCT,  /* one of ( ) { } [ ] < > , : = - * ? or "->" */
  LP_TOK_STRING, /* text is unescaped */
  LP_TOK_NUMBER, /* decimal, with or without fraction and exponent, or 0x... */
  LP_TOK_WORD,   /* identifier, dots included */
  LP_TOK_VALUE,  /* %name, %name#2: text without % */
  LP_TOK_BLOCK,  /* ^bb0 */
  LP_TOK_HASH,   /* #llmpart.poly: text without # */
  LP_TOK_BAD     /* `word` is the reason */
} lp_token_kind;

typedef struct {
  const char *file, *text, *at, *end;
  int32_t line, col;
  lp_arena *arena;
  lp_token_kind kind; /* the current token */
  const char *word;   /* its text, in the arena */
  lp_loc loc;
} lp_lexer;

void lp_lexer_init(lp_lexer *lexer, const char *file, const char *text, size_t size, lp_arena *arena);
void lp_lexer_next(lp_lexer *lexer);
/* Reads a dimension list such as "4x?x" inside tensor< >, because such lists are not tokens. Afterwards the lexer
 * stands at the first character of the element type. Returns false at a malformed list. A dim of -1 is '?', a rank of
 * -1 is '*'. */
bool lp_lexer_dims(lp_lexer *lexer, int64_t *dims, int32_t max, int32_t *rank);
