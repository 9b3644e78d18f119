/* The tokens that may continue a text of a grammar. What was found for a state of a grammar is remembered for all
 * requests whose schema makes the same grammar. */
#pragma once

#include "runtime/grammar/automaton.h"
#include "runtime/grammar/vocabulary.h"

/* Immutable. Bit i % 64 of word i / 64 says whether token i may come next. */
typedef struct lp_mask {
  int32_t users; /* of the cache, and those that it was given to */
  uint64_t bits[];
} lp_mask;

/* The masks over a vocabulary that were used last; any number of threads may use it. It keeps up to LP_MASKS_BYTES, and
 * of one grammar a quarter of that: 1,024 masks over 128,000 tokens. */
enum { LP_MASKS_BYTES = 64 << 20 };
typedef struct lp_masks lp_masks;
/* Takes the vocabulary over. */
lp_masks *lp_masks_create(lp_vocabulary *vocabulary);
void lp_masks_free(lp_masks *masks); /* NULL is allowed */
const lp_vocabulary *lp_masks_vocabulary(const lp_masks *masks);
lp_match_pool *lp_masks_pool(lp_masks *masks); /* for the automata whose masks are asked for */
size_t lp_masks_held(lp_masks *masks);         /* bytes */

/* A mask that is being computed. */
typedef struct {
  lp_mask *mask; /* NULL: none is */
  const lp_slice *slice;
  size_t node;           /* of the slice's trie, where the walk goes on */
  lp_match_state *state; /* [depth + 1] after the bytes before each node on the way to it */
} lp_masking;
/* Gives the mask of the automaton's state, within the automaton's steps (LP_MATCH_YES, LP_MATCH_LATER or
 * LP_MATCH_TOO_MUCH). The caller returns *out with lp_masks_return. */
lp_match lp_masks_find(lp_masks *masks, lp_automaton *automaton, lp_masking *masking, lp_mask **out);
void lp_masks_return(lp_masks *masks, lp_mask *mask);
void lp_masking_release(lp_masking *masking);
