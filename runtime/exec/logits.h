/* Draws tokens from logits. */
#ifndef LP_LOGITS_H
#define LP_LOGITS_H

#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/runtime.h"

/* Rows of logits, or what a GPU found of each (lp_gpu_find_top). Borrowed. */
typedef struct {
  const float *row;   /* [rows][vocab] */
  const float *found; /* [rows][1 + 2 * wanted]; NULL: all are there */
  int64_t wanted;
  int32_t vocab;
} lp_logits;
/* The bytes of logits [b][r][vocab] at these symbol values. */
LP_MUST_USE lp_status lp_logits_read(const lp_manifest *manifest, const int64_t *sym, const lp_span *span,
                                     lp_logits *out, lp_diag *diag);
/* A token behind one row, as number `place` of its sequence. */
lp_sample lp_logits_draw(const lp_logits *logits, int64_t row, const lp_sampling *sampling, uint64_t sequence,
                         uint64_t place, lp_buf *scratch);
/* One token per sequence from the last of its r rows: out[b]. */
void lp_logits_sample(const lp_logits *logits, const int64_t *sym, const lp_sampling *sampling, lp_sample *out,
                      lp_buf *scratch);

#endif
