/* The merges of a SentencePiece vocabulary, which a GGUF file stores as scores of pieces. */
#ifndef LP_GGUF_MERGES_H
#define LP_GGUF_MERGES_H

#include "frontend/gguf/file.h"

typedef struct {
  const lp_gguf_value *tokens, *types, *scores; /* equally long */
} lp_gguf_pieces;

/* The tokens `left` and `right` become `merged`. The lowest rank merges first, and of equal ones the leftmost pair. */
typedef struct {
  uint32_t left, right, merged, rank;
} lp_gguf_merge;

typedef LP_VEC(lp_gguf_merge) lp_gguf_merges;

/* Appends the merges in the order of their ranks: the pair of the highest score merges first (Kudo and Richardson,
 * "SentencePiece", section 3.1), and pieces of one score have one rank. `out` is released with lp_vec_free. Reports
 * LP_FAILED, with `out` empty, when merges cannot make the pieces: a piece has a character that is not a piece. */
LP_MUST_USE lp_status lp_gguf_merges_find(const lp_gguf *file, const lp_gguf_pieces *pieces, lp_gguf_merges *out,
                                          lp_diag *diag);

#endif
