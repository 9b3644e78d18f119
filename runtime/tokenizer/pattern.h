/* Regular expressions of tokenizers and their added tokens (pattern.c). */
#pragma once

#include "base/base.h"

/* A regular expression in Oniguruma's syntax, as `tokenizers` reads it, or a literal text. Immutable. */
typedef struct lp_pattern lp_pattern;

/* After a failure *why is an allocated sentence, which the caller reports and frees. */
lp_pattern *lp_pattern_create(const char *text, size_t size, bool literal, char **why);
/* Appends the source of the pattern that matches runs of one script (parts.c). */
void lp_pattern_of_scripts(lp_buf *out);
void lp_pattern_free(lp_pattern *pattern);
/* Tells whether \w of Rust's regex matches the character, which `tokenizers` uses beside Oniguruma. */
bool lp_pattern_is_word(uint32_t code);

/* Walks the matches of a pattern in one text after another. */
typedef struct {
  const lp_pattern *pattern;
  const char *text;
  size_t size, from, last_end, searches;
  bool matched;
  double deadline;       /* in seconds of the thread's processor time */
  void *groups, *limits; /* Oniguruma's region and parameters, owned */
} lp_matcher;

void lp_matcher_init(lp_matcher *matcher, const lp_pattern *pattern);
void lp_matcher_free(lp_matcher *matcher);
void lp_matcher_reset(lp_matcher *matcher, const char *text, size_t size); /* valid UTF-8 */
/* Returns 1 and the match; 0: there is none; -1: the search exceeded a limit. */
int lp_matcher_next(lp_matcher *matcher, size_t *start, size_t *end);
