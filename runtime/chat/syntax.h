/* What the lexer and the parser of chat templates make: tokens and the tree. */
#pragma once

#include "runtime/chat/budget.h"

/* ---- source (lex.c) ---------------------------------------------------------------------------------------------- */

/* Copies the source to the arena as Jinja reads it: every kind of newline is \n, and one at the end is dropped. */
void lp_chat_set_source(lp_chat *chat, const char *source, size_t size);

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

typedef enum {
  LP_CHAT_DATA,   /* text between tags, already trimmed */
  LP_CHAT_OUTPUT, /* {{ */
  LP_CHAT_BLOCK,  /* {% */
  LP_CHAT_CLOSE,  /* }} or %} */
  LP_CHAT_NAME,
  LP_CHAT_TEXT, /* a string literal, unescaped */
  LP_CHAT_INTEGER,
  LP_CHAT_FLOAT,
  LP_CHAT_SYMBOL, /* an operator or bracket */
  LP_CHAT_END
} lp_chat_token_kind;

typedef struct {
  lp_chat_token_kind kind;
  size_t at;
  const char *text; /* NUL-terminated */
  size_t size;
  int64_t integer;
  double real;
} lp_chat_token;

/* *out lies in the arena and ends in LP_CHAT_END. */
LP_MUST_USE lp_status lp_chat_tokenize(const lp_chat *chat, const lp_chat_token **out);

/* ---- tree -------------------------------------------------------------------------------------------------------- */

typedef enum {
  /* statements, a list by `next` */
  LP_CHAT_DO_TEXT,   /* text */
  LP_CHAT_DO_OUTPUT, /* a */
  LP_CHAT_DO_IF,     /* a: condition, b: body, c: otherwise */
  /* targets: variables by `next`, a: sequence, d: the items' condition or NULL, b: body, c: otherwise */
  LP_CHAT_DO_FOR,
  LP_CHAT_DO_SET,     /* targets: variables, the first with b: NULL or the attribute's name; a: value */
  LP_CHAT_DO_CAPTURE, /* targets: NULL or one variable, b: body, a: filters of IS_CAPTURED, or NULL */
  LP_CHAT_DO_MACRO,   /* text: name, targets: parameters with defaults in a, b: body, integer: it names `caller` */
  LP_CHAT_DO_WITH,    /* targets: variables with values in a, b: body */
  LP_CHAT_DO_CALL,    /* a: the call, b: DO_MACRO of the body, which the called macro knows as `caller` */
  LP_CHAT_DO_BREAK,
  LP_CHAT_DO_CONTINUE,
  LP_CHAT_DO_REFUSE, /* text: the reason why this statement cannot run */
  /* expressions */
  LP_CHAT_IS_TEXT,
  LP_CHAT_IS_INTEGER,
  LP_CHAT_IS_NAME,
  LP_CHAT_IS_REAL,
  LP_CHAT_IS_CAPTURED, /* the text of the block around the expression */
  LP_CHAT_IS_LIST,     /* b: items by `next` */
  LP_CHAT_IS_DICT,     /* b: alternating keys and values */
  LP_CHAT_IS_MEMBER,   /* a.text */
  LP_CHAT_IS_INDEX,    /* a[b] */
  LP_CHAT_IS_SLICE,    /* a[b:c:d], each of b, c and d may be NULL */
  LP_CHAT_IS_CALL,     /* a(b...); a keyword argument is KEYWORD */
  LP_CHAT_IS_KEYWORD,  /* text=a */
  LP_CHAT_IS_FILTER,   /* a | text(b...) */
  LP_CHAT_IS_TEST,     /* a is text(b...); integer: negated */
  LP_CHAT_IS_NOT,      /* a */
  LP_CHAT_IS_MINUS,    /* a */
  LP_CHAT_IS_CHAIN,    /* a < b < ...: b has the comparisons by `next`, c is the last; a of each is its right side */
  LP_CHAT_IS_BINARY,   /* a text b; `and`, `or`, `in`, `not in` too */
  LP_CHAT_IS_CHOICE    /* a if b else c; c may be NULL */
} lp_chat_node_kind;

typedef struct lp_chat_node {
  lp_chat_node_kind kind;
  size_t at;
  const char *text;
  size_t size;
  int64_t integer;
  double real;
  struct lp_chat_node *a, *b, *c, *d, *targets, *next;
} lp_chat_node;

LP_MUST_USE lp_status lp_chat_parse(const lp_chat *chat, const lp_chat_token *tokens, lp_chat_node **out);
