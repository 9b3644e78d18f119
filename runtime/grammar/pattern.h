/* Patterns of text (ECMA-262, as JSON Schema has them) as automata over characters, and those as nodes of a grammar. */
#pragma once

#include "runtime/grammar/grammar.h"

enum { LP_REGEX_SPLIT = -1, LP_REGEX_END = -2 };

typedef struct {
  int32_t low, high; /* code points */
} lp_code_range;
typedef LP_VEC(lp_code_range) lp_code_set; /* sorted, apart from each other */

/* Takes a character of a set and goes on; or goes two ways; or ends. */
typedef struct {
  int32_t set; /* an index of `sets`, or LP_REGEX_SPLIT, LP_REGEX_END */
  int32_t next, other;
} lp_regex_state;

typedef struct {
  LP_VEC(lp_regex_state) states;
  LP_VEC(lp_code_set) sets;
  int32_t start;
} lp_regex;

/* ---- reading (pattern.c) ----------------------------------------------------------------------------------------- */

/* A pattern without ^ or $ takes any text before or after it. The automaton may take fewer texts than the pattern:
 * \w, \d, \s and what excludes them take characters of ASCII, on which all dialects agree. False: *why says, as static
 * text, what the pattern has that is not supported. Release with lp_regex_free in both cases. */
LP_MUST_USE bool lp_regex_read(const char *text, lp_regex *out, const char **why);
void lp_regex_free(lp_regex *pattern);

/* ---- nodes (strings.c) ------------------------------------------------------------------------------------------- */
