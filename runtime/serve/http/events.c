/* Writes events of streams to pipes, and waits for readers. */
#include "runtime/serve/http/events.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"

enum { POLL_MS = 50, READER_MS = 60000, END_MS = 3000 };

/* Waits until the pipe takes more; false: it has taken nothing for too long. */
static bool await_reader(int pipe, const volatile int *stop, double since_ms) {
  struct pollfd writable = {.fd = pipe, .events = POLLOUT};
  if (lp_now_ms() - since_ms > (lp_flag_get(stop) ? END_MS : READER_MS)) return false;
  return poll(&writable, 1, POLL_MS) >= 0 || errno == EINTR;
}

static bool write_all(int pipe, const volatile int *stop, const char *text, size_t size) {
  double since_ms = lp_now_ms();
  for (size_t at = 0; at < size;) {
    ssize_t wrote = write(pipe, text + at, size - at);
    if (wrote < 0 && (errno == EAGAIN || errno == EINTR) && await_reader(pipe, stop, since_ms)) continue;
    if (wrote <= 0) return false;
    at += (size_t)wrote;
  }
  return true;
}

bool lp_events_write(int pipe, const volatile int *stop, char *json) {
  lp_buf event = {0};
  lp_buf_printf(&event, "data: %s\n\n", json);
  free(json);
  bool wrote = write_all(pipe, stop, event.data, event.size);
  lp_buf_free(&event);
  return wrote;
}
