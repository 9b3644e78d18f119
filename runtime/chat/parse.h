/* What the parsers of expressions (expression.c) and statements (parse.c) of chat templates share. */
#pragma once

#include "runtime/chat/syntax.h"

enum { LP_CHAT_MAX_DEPTH = 100 }; /* of bodies and expressions in each other */

typedef struct {
  const lp_chat *chat;
  const lp_chat_token *token; /* the next */
  int depth;
  lp_chat_node *node; /* the next of those that are left, which are enough for all tokens */
} lp_chat_parser;

/* Counts a level of depth, which the caller takes back. */
LP_MUST_USE lp_status lp_chat_parse_deeper(lp_chat_parser *p);
/* The token is this operator or bracket. */
bool lp_chat_is_symbol(const lp_chat_parser *p, const char *text);
/* The token is this name. */
bool lp_chat_is_word(const lp_chat_parser *p, const char *text);
/* Passes the token if it is this operator or bracket, or this name. */
bool lp_chat_accept_symbol(lp_chat_parser *p, const char *text);
bool lp_chat_accept_word(lp_chat_parser *p, const char *text);
/* Reports the token: `wanted` was expected. */
LP_MUST_USE lp_status lp_chat_unexpected(const lp_chat_parser *p, const char *wanted);
LP_MUST_USE lp_status lp_chat_expect_symbol(lp_chat_parser *p, const char *text);
LP_MUST_USE lp_status lp_chat_expect_name(lp_chat_parser *p, const lp_chat_token **out);
/* A node with the text and the number of the token. */
LP_NEVER_NULL lp_chat_node *lp_chat_make_node(lp_chat_parser *p, lp_chat_node_kind kind, const lp_chat_token *token);
/* Parses items up to and including `close`; keyword arguments are allowed if `keywords` is set. */
LP_MUST_USE lp_status lp_chat_parse_items(lp_chat_parser *p, const char *close, bool keywords, lp_chat_node **out);
/* Parses the filters and tests that follow an expression. */
LP_MUST_USE lp_status lp_chat_parse_filters(lp_chat_parser *p, lp_chat_node **out);
/* Parses an expression of binary operators from that level on; 0: the loosest. */
LP_MUST_USE lp_status lp_chat_parse_level(lp_chat_parser *p, size_t level, lp_chat_node **out);
LP_MUST_USE lp_status lp_chat_parse_expression(lp_chat_parser *p, lp_chat_node **out);
