/* Holds text back while it may be the beginning of a stop sequence. */
#include "runtime/serve/stop.h"

#include <string.h>

static bool hand_on(lp_stopper *self, size_t size) {
  if (size == 0) return true;
  lp_buf piece = {0};
  lp_buf_append(&piece, self->held.data, size);
  bool more = self->sink(self->user, piece.data);
  lp_buf_free(&piece);
  return more;
}

/* Returns the byte at which the first stop sequence begins; -1: there is none. */
static ptrdiff_t find_stop(const lp_stopper *self) {
  const char *first = NULL;
  for (size_t i = 0; i < self->request->stop_count; i++) {
    const char *at = strstr(self->held.data, self->request->stop[i]);
    if (at && (!first || at < first)) first = at;
  }
  return first ? first - self->held.data : -1;
}

/* The number of bytes at the end of the text with which a stop sequence begins. */
static size_t open_end(const lp_stopper *self) {
  size_t most = 0;
  for (size_t i = 0; i < self->request->stop_count; i++) {
    size_t length = strlen(self->request->stop[i]);
    for (size_t n = length - 1; n > most; n--)
      if (n <= self->held.size && memcmp(self->held.data + self->held.size - n, self->request->stop[i], n) == 0)
        most = n;
  }
  return most;
}

bool lp_stopper_put(void *user, const char *text) {
  lp_stopper *self = user;
  if (self->stopped) return false;
  lp_buf_puts(&self->held, text);
  if (self->held.size == 0) return true;
  ptrdiff_t at = find_stop(self);
  if (at >= 0) {
    self->stopped = true;
    (void)hand_on(self, (size_t)at);
    return false;
  }
  size_t ready = self->held.size - open_end(self);
  bool more = hand_on(self, ready);
  memmove(self->held.data, self->held.data + ready, self->held.size - ready + 1);
  self->held.size -= ready;
  return more;
}

void lp_stopper_end(lp_stopper *self, bool whole) {
  if (whole && !self->stopped) (void)hand_on(self, self->held.size);
  lp_buf_free(&self->held);
}
