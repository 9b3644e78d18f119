/* Types and attributes in text: the part of the parser below operators. */
#pragma once

#include "base/map.h"
#include "ir/ir.h"
#include "ir/text/lexer.h"

typedef struct {
  lp_lexer lexer;
  lp_module *module;
  lp_arena *scratch;
  lp_map *values;               /* name -> group of results; NULL after its scope has ended */
  LP_VEC(const char *) visible; /* names in order of definition, innermost scope last */
  int32_t nesting;
  lp_diag *diag;
} lp_parser;

/* lp_parse_at tells whether the current token is this punctuation. lp_parse_accept also consumes it. lp_parse_expect
 * reports any other token. */
bool lp_parse_at(const lp_parser *p, const char *punct);
bool lp_parse_accept(lp_parser *p, const char *punct);
LP_MUST_USE lp_status lp_parse_expect(lp_parser *p, const char *punct);
/* Reports the current token where `wanted` ("an operand") was expected. */
LP_MUST_USE lp_status lp_parse_unexpected(lp_parser *p, const char *wanted);
LP_MUST_USE lp_status lp_parse_type(lp_parser *p, lp_type *out);
/* Fills everything but the name. */
LP_MUST_USE lp_status lp_parse_attr(lp_parser *p, lp_attr *attr);
/* Tells whether the text has only letters, digits and _, and does not begin with a digit. */
bool lp_parse_is_symbol(const char *text);
