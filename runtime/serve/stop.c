/* Holds text back while it may be the beginning of a stop sequence. */
#include "runtime/serve/stop.h"

/* The tokens that begin within the text that has been passed on; `all`: every token that is held. */
static size_t ready_tokens(lp_stopper *self, int32_t choice, bool all) {
  size_t count = 0, seen = self->choice[choice].seen;
  const lp_logprobs *logprobs = &self->choice[choice].logprobs;
  while (count < logprobs->count && (all || seen < self->choice[choice].passed))
    seen += logprobs->data[count++].size;
  self->choice[choice].seen = seen;
  return count;
}

/* Passes on the first `size` bytes that are held, with their tokens, and what else the piece has. */
static bool hand_on(lp_stopper *self, int32_t choice, size_t size, bool all, const lp_piece *rest) {
  lp_buf *held = &self->choice[choice].held, text = {0};
  lp_logprobs *logprobs = &self->choice[choice].logprobs;
  self->choice[choice].passed += size;
  size_t count = ready_tokens(self, choice, all);
  if (size == 0 && count == 0 && (!rest || rest->call_count == 0)) return true;
  lp_buf_append(&text, lp_buf_text(held), size);
  lp_piece piece = {.choice = choice, .text = lp_buf_text(&text), .logprobs = logprobs->data, .logprob_count = count};
  if (rest) {
    piece.calls = rest->calls;
    piece.call_count = rest->call_count;
    piece.machine = rest->machine;
  }
  bool more = self->sink(self->user, &piece);
  lp_buf_free(&text);
  for (size_t i = 0; i < count; i++)
    lp_answer_logprob_free(&logprobs->data[i]);
  if (count > 0) memmove(logprobs->data, logprobs->data + count, (logprobs->count - count) * sizeof *logprobs->data);
  logprobs->count -= count;
  if (size > 0) {
    memmove(held->data, held->data + size, held->size - size + 1);
    held->size -= size;
  }
  self->ended |= !more;
  return more;
}

/* Returns the byte at which the first stop sequence begins; -1: there is none. */
static ptrdiff_t find_stop(const lp_stopper *self, const char *held, const char **by) {
  const char *first = NULL;
  for (size_t i = 0; i < self->request->stop_count; i++) {
    const char *at = strstr(held, self->request->stop[i]);
    if (!at || (first && at >= first)) continue;
    first = at;
    *by = self->request->stop[i];
  }
  return first ? first - held : -1;
}

/* The number of bytes at the end of the text with which a stop sequence begins. */
static size_t open_end(const lp_stopper *self, const lp_buf *held) {
  size_t most = 0;
  for (size_t i = 0; i < self->request->stop_count; i++) {
    size_t length = strlen(self->request->stop[i]);
    for (size_t n = length - 1; n > most; n--)
      if (n <= held->size && memcmp(held->data + held->size - n, self->request->stop[i], n) == 0) most = n;
  }
  return most;
}

bool lp_stopper_put(void *user, const lp_piece *piece) {
  lp_stopper *self = user;
  int32_t choice = piece->choice;
  if (self->ended || self->choice[choice].stopped) return false;
  lp_buf *held = &self->choice[choice].held;
  lp_buf_puts(held, piece->text);
  for (size_t i = 0; i < piece->logprob_count; i++) {
    lp_answer_logprob copy = lp_answer_logprob_copy(&piece->logprobs[i]);
    lp_vec_push(&self->choice[choice].logprobs, copy);
  }
  ptrdiff_t at = find_stop(self, lp_buf_text(held), &self->choice[choice].by);
  if (at >= 0) {
    self->choice[choice].stopped = true;
    (void)hand_on(self, choice, (size_t)at, false, piece);
    return false;
  }
  return hand_on(self, choice, held->size - open_end(self, held), false, piece);
}

void lp_stopper_end(lp_stopper *self, bool whole) {
  for (int32_t i = 0; i < LP_MOST_CHOICES; i++) {
    if (whole && !self->ended && !self->choice[i].stopped)
      (void)hand_on(self, i, self->choice[i].held.size, true, NULL);
    lp_buf_free(&self->choice[i].held);
    lp_logprobs_free(&self->choice[i].logprobs);
  }
}
