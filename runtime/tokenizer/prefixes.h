/* A set of texts, and a search for those with which a text starts (prefixes.c). */
#pragma once

#include "base/base.h"

typedef struct {
  const char *text; /* borrowed, not empty */
  size_t size;
  int32_t value; /* of equal texts the one with the least value is kept */
} lp_prefix;

/* Add texts to `list`, then call lp_prefixes_complete; immutable after that. */
typedef struct {
  LP_VEC(lp_prefix) list;
  size_t starts[257]; /* [byte] the first text that begins with it or a larger one */
} lp_prefixes;

void lp_prefixes_complete(lp_prefixes *set);
void lp_prefixes_free(lp_prefixes *set);

/* Walks down a text byte by byte. Zero it and set `set`. */
typedef struct {
  const lp_prefixes *set;
  size_t low, high, depth;
  const lp_prefix *found; /* the text that equals the bytes so far, or NULL */
} lp_prefix_walk;

/* Takes one more byte; false: no text of the set begins with the bytes so far. */
bool lp_prefix_step(lp_prefix_walk *walk, uint8_t byte);
