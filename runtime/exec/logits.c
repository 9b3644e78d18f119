/* Tokens drawn from logits, or from what a GPU found to be the greatest of them. */
#include <stdlib.h>

#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/logits.h"
#include "runtime/runtime.h"

static lp_sample draw_found(const float *found, int32_t wanted, int32_t vocab, const lp_sampling *sampling,
                            uint64_t sequence, uint64_t place, int64_t all, lp_buf *scratch) {
  int32_t *id = lp_alloc((size_t)wanted * sizeof *id);
  for (int32_t k = 0; k < wanted; k++)
    id[k] = found[1 + all + k] < (float)vocab ? (int32_t)found[1 + all + k] : -1;
  const lp_sampler_top from = {.count = wanted, .logit = found + 1, .id = id, .sum = (double)found[0]};
  lp_sample sample = lp_sampler_draw_top(sampling, &from, sequence, place, scratch);
  free(id);
  return sample;
}

lp_sample lp_logits_draw(const lp_logits *logits, int64_t row, const lp_sampling *sampling, uint64_t sequence,
                         uint64_t place, lp_buf *scratch) {
  int32_t vocab = logits->vocab;
  if (!logits->found) return lp_sampler_draw(sampling, logits->row + row * vocab, vocab, sequence, place, scratch);
  const float *found = logits->found + row * (1 + 2 * logits->wanted);
  return draw_found(found, lp_sampler_wants(sampling, vocab), vocab, sampling, sequence, place, logits->wanted,
                    scratch);
}

/* Logits of [b][r][vocab] f32. */
lp_status lp_logits_read(const lp_manifest *manifest, const int64_t *sym, const lp_span *span, lp_logits *out,
                         lp_diag *diag) {
  size_t batch = (size_t)sym[LP_SYM_B], rows = (size_t)sym[LP_SYM_R], vocab = (size_t)manifest->vocab;
  size_t wanted = 0;
  *out = (lp_logits){.row = span->data, .vocab = manifest->vocab};
  if (!lp_size_mul(batch * sizeof(float), rows, &wanted) || !lp_size_mul(wanted, vocab, &wanted) ||
      wanted != span->size || wanted == 0)
    return lp_error(diag, LP_LOC_FILE(manifest->file), "logits of %zu bytes; batch %zu, %zu rows and %zu ids take %zu",
                    span->size, batch, rows, vocab, wanted);
  return LP_OK;
}

void lp_logits_sample(const lp_logits *logits, const int64_t *sym, const lp_sampling *sampling, lp_sample *out,
                      lp_buf *scratch) {
  uint64_t place = (uint64_t)(sym[LP_SYM_P] + sym[LP_SYM_S]);
  for (int64_t i = 0; i < sym[LP_SYM_B]; i++)
    out[i] = lp_logits_draw(logits, (i + 1) * sym[LP_SYM_R] - 1, sampling, (uint64_t)i, place, scratch);
}
