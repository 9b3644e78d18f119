/* The queue of a connection (outbox.h). */
#include "runtime/link/outbox.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

static const size_t most_bytes = (size_t)1 << 32;

/* Copies the frame's bytes after the first `sent`. */
static void queue_rest(lp_outbox *outbox, const lp_frame_parts *frame, size_t sent) {
  struct iovec rest = {lp_alloc(frame->size - sent), 0};
  for (size_t i = 0; i < LP_COUNT(frame->part); i++) {
    size_t skip = sent < frame->part[i].iov_len ? sent : frame->part[i].iov_len, size = frame->part[i].iov_len - skip;
    if (size > 0) memcpy((char *)rest.iov_base + rest.iov_len, (const char *)frame->part[i].iov_base + skip, size);
    rest.iov_len += size;
    sent -= skip;
  }
  if (outbox->queue.count == 0) outbox->moved_ms = lp_now_ms();
  lp_vec_push(&outbox->queue, rest);
  outbox->bytes += rest.iov_len;
}

bool lp_outbox_put(lp_outbox *outbox, lp_stream *stream, const lp_frame_parts *frame) {
  if (stream->broken || frame->size > most_bytes || outbox->bytes > most_bytes - frame->size) return false;
  ssize_t sent = outbox->queue.count > 0 ? 0 : lp_stream_write(stream, frame->part, LP_COUNT(frame->part), 0);
  if (sent >= 0 && (size_t)sent < frame->size) queue_rest(outbox, frame, (size_t)sent);
  return sent >= 0;
}

static void drop_first(lp_outbox *outbox) {
  outbox->bytes -= outbox->queue.data[0].iov_len;
  free(outbox->queue.data[0].iov_base);
  outbox->queue.count--;
  memmove(outbox->queue.data, outbox->queue.data + 1, outbox->queue.count * sizeof *outbox->queue.data);
  outbox->sent = 0;
}

bool lp_outbox_flush(lp_outbox *outbox, lp_stream *stream) {
  while (outbox->queue.count > 0) {
    ssize_t sent = lp_stream_write(stream, &outbox->queue.data[0], 1, outbox->sent);
    if (sent <= 0) return sent == 0;
    outbox->moved_ms = lp_now_ms();
    outbox->sent += (size_t)sent;
    if (outbox->sent == outbox->queue.data[0].iov_len) drop_first(outbox);
  }
  return true;
}

void lp_outbox_free(lp_outbox *outbox) {
  while (outbox->queue.count > 0)
    drop_first(outbox);
  lp_vec_free(&outbox->queue);
}
