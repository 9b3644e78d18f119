/* Draws tokens from logits: greedy, or by temperature, top-k and top-p. A draw is a pure function of its arguments, so
 * either side can repeat one, in any order and on any thread. */
#pragma once

#include "base/span.h"
#include "runtime/bundle/manifest.h"
#include "runtime/runtime.h"

typedef struct {
  int32_t token;
  double confidence; /* the greatest softmax probability of the logits, at temperature 1 (P2) */
} lp_sample;

/* Draws one token from logits[vocab]. The random number is a pure function of (seed, sequence, position). `scratch`
 * grows as needed; the caller owns it and may pass it to any number of draws, one at a time. */
lp_sample lp_sampler_draw(const lp_sampling *sampling, const float *logits, int32_t vocab, uint64_t sequence,
                          uint64_t position, lp_buf *scratch);

/* Does the same over the tokens with at least `min_p` times the greatest probability. */
lp_sample lp_sampler_draw_likely(const lp_sampling *sampling, double min_p, const float *logits, int32_t vocab,
                                 uint64_t sequence, uint64_t position, lp_buf *scratch);

/* Returns the number of greatest logits on which a draw depends; 0: it depends on all logits. */
int32_t lp_sampler_wants(const lp_sampling *sampling, int32_t vocab);
/* The greatest logits in descending order; equal ones by ascending id. */
typedef struct {
  int32_t count;
  const float *logit; /* [count] */
  const int32_t *id;  /* [count]; -1 where the vocabulary has fewer */
  double sum;         /* of exp(logit - greatest) over the whole vocabulary */
} lp_sampler_top;
/* Makes the same draw as lp_sampler_draw, from lp_sampler_wants logits. */
lp_sample lp_sampler_draw_top(const lp_sampling *sampling, const lp_sampler_top *top, uint64_t sequence,
                              uint64_t position, lp_buf *scratch);

/* ---- logits of an output step ------------------------------------------------------------------------------------ */

/* Rows of logits, or the greatest logits that a GPU found in each row (lp_gpu_find_top). Borrowed. */
typedef struct {
  const float *row;   /* [rows][vocab]; not read when `found` is set */
  const float *found; /* [rows][1 + 2 * wanted], as lp_gpu_find_top gives them; NULL: all logits are in `row` */
  int64_t wanted;
  int32_t vocab;
} lp_logits;
/* Wraps the bytes of logits [b][r][vocab], f32, at the symbol values `sym`. Fails when their size is another. */
LP_MUST_USE lp_status lp_logits_read(const lp_manifest *manifest, const int64_t *sym, const lp_span *bytes,
                                     lp_logits *out, lp_diag *diag);
/* Draws the token that follows a row. `position` is that of the token in its sequence. */
lp_sample lp_logits_draw(const lp_logits *logits, int64_t row, const lp_sampling *sampling, uint64_t sequence,
                         uint64_t position, lp_buf *scratch);
/* Draws one token per sequence, from the last of its r rows: out[b]. The sequences are numbered from `first` on. */
void lp_logits_sample(const lp_logits *logits, const int64_t *sym, int64_t first, const lp_sampling *sampling,
                      lp_sample *out, lp_buf *scratch);
