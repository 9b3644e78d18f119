/* Adds a product of two small matrices to a weight. */
#ifndef LP_DECODER_LOW_RANK_H
#define LP_DECODER_LOW_RANK_H

#include "frontend/decoder/weights.h"

/* scale * b a, where b is [out][rank] and a is [rank][in]. */
typedef struct {
  const lp_stored *a, *b;
  double scale;
  bool transposed; /* the weight lies as [in][out] */
} lp_low_rank;

/* Replaces the matrix by its sum with the product, in memory that the module keeps. Sums are of f32 and are rounded to
 * the matrix's own type: f32, f16 or bf16. Reports shapes and types that do not fit. With absent_ok it only checks. */
LP_MUST_USE lp_status lp_weights_add_low_rank(lp_weights *w, lp_stored *matrix, const lp_low_rank *update);

#endif
