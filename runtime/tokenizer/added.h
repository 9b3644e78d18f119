/* Added tokens, which are cut out of the text before any other step (added.c). */
#pragma once

#include "runtime/tokenizer/prefixes.h"
#include "runtime/tokenizer/steps.h"

typedef struct {
  const char *text; /* the text to search for: the content, normalized if `normalized` is set */
  size_t size;
  int32_t id;
  bool lstrip, rstrip, single_word, normalized, special;
} lp_added;

typedef struct {
  LP_VEC(lp_added) list; /* no text is empty */
  lp_prefixes prefixes;  /* the tokens' texts; values are indices of `list` */
} lp_added_set;

void lp_added_complete(lp_added_set *set); /* after the last token */
void lp_added_free(lp_added_set *set);
/* Tells whether the text begins with a special token. */
bool lp_added_begins(const lp_added_set *set, const char *text, size_t size);
/* Cuts the tokens of `set` out of every piece of `work` that is still text: the leftmost first, and the longest of
 * several. */
void lp_added_split(const lp_added_set *set, lp_work *work);
