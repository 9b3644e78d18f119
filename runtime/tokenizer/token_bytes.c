/* The bytes of a single token, which need not be whole characters. */
#include "runtime/tokenizer/internal.h"

/* Runs a step that works on each piece by itself. The piece follows another one: what decoders do to the first piece of
 * a text does not apply. */
static void run_after_another(const lp_tokenizer_step *step, lp_buf *bytes) {
  lp_work work = {.keep_empty = true};
  lp_work_begin(&work);
  lp_buf_puts(&work.next.text, "a");
  lp_work_add(&work, 0, -1, false);
  lp_buf_append(&work.next.text, lp_buf_text(bytes), bytes->size);
  lp_work_add(&work, 1, -1, false);
  lp_work_swap(&work);
  if (step->run(step, &work) == LP_OK && work.now.list.count == 2) {
    const lp_piece last = work.now.list.data[1];
    lp_buf_clear(bytes);
    lp_buf_append(bytes, lp_buf_text(&work.now.text) + last.start, last.size);
  }
  lp_work_free(&work);
}

void lp_tokenizer_token_bytes(const lp_tokenizer *tokenizer, int32_t id, lp_buf *out, bool *special) {
  size_t size = 0;
  const char *text = lp_vocab_text(&tokenizer->vocab, id, &size);
  lp_buf bytes = {0};
  *special = text && tokenizer->special.data[id];
  if (!text) return;
  lp_buf_append(&bytes, text, size);
  for (size_t i = 0; !*special && i < tokenizer->decoder.count; i++) {
    const lp_tokenizer_step *step = &tokenizer->decoder.data[i];
    if (step->run == lp_step_fuse || step->run == lp_step_cut || step->run == lp_step_ctc)
      continue; /* of whole texts */
    if (step->run == lp_step_unbytes)
      lp_step_take_bytes(&bytes);
    else if (step->run == lp_step_byte_fallback)
      lp_step_take_fallback(&bytes);
    else
      run_after_another(step, &bytes);
  }
  if (!*special && !tokenizer->has_decoder) lp_buf_puts(out, " ");
  lp_buf_append(out, lp_buf_text(&bytes), bytes.size);
  lp_buf_free(&bytes);
}
