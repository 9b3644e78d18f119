/* Messages that wait to be sent, so that no sender does: see tcp_outbox.h. */
#include "runtime/link/tcp_outbox.h"

#include <stdlib.h>
#include <string.h>

/* A peer that takes nothing for so long is lost. NNG's streams wait for ever once they have failed, so there must be a limit. */
enum { SEND_TIMEOUT_MS = 30000 };
static const size_t most_bytes = (size_t)1 << 32;

/* With `busy` set by the caller, without the mutex: nobody else sends. */
static void send_first(lp_tcp_outbox *outbox, nng_iov iov) {
  nng_aio_set_iov(outbox->aio, 1, &iov);
  nng_stream_send(outbox->tcp->stream, outbox->aio);
}

/* With the mutex held. False: there is nothing to send, or no way to. */
static bool next_iov(lp_tcp_outbox *outbox, nng_iov *out) {
  outbox->busy = outbox->queue.count > 0 && !outbox->broken;
  if (!outbox->busy) return false;
  const lp_tcp_piece *first = &outbox->queue.data[0];
  *out = (nng_iov){first->data + outbox->sent, first->size - outbox->sent};
  return true;
}

/* With the mutex held. */
static void drop_first(lp_tcp_outbox *outbox) {
  outbox->bytes -= outbox->queue.data[0].size;
  free(outbox->queue.data[0].data);
  outbox->queue.count--;
  memmove(outbox->queue.data, outbox->queue.data + 1, outbox->queue.count * sizeof(*outbox->queue.data));
  outbox->sent = 0;
}

static void on_sent(void *user) {
  lp_tcp_outbox *outbox = user;
  nng_iov iov;
  pthread_mutex_lock(&outbox->mutex);
  outbox->broken = outbox->broken || nng_aio_result(outbox->aio) != 0;
  if (!outbox->broken) outbox->sent += nng_aio_count(outbox->aio);
  if (!outbox->broken && outbox->sent >= outbox->queue.data[0].size) drop_first(outbox);
  bool more = next_iov(outbox, &iov), over = outbox->broken || (!more && outbox->finishing);
  pthread_mutex_unlock(&outbox->mutex);
  if (over) nng_stream_close(outbox->tcp->stream);
  if (more) send_first(outbox, iov);
}

bool lp_tcp_outbox_init(lp_tcp_outbox *outbox, lp_tcp_stream *tcp) {
  *outbox = (lp_tcp_outbox){.tcp = tcp};
  if (nng_aio_alloc(&outbox->aio, on_sent, outbox) != 0) return false;
  nng_aio_set_timeout(outbox->aio, SEND_TIMEOUT_MS);
  pthread_mutex_init(&outbox->mutex, NULL);
  return true;
}

void lp_tcp_outbox_free(lp_tcp_outbox *outbox) {
  if (outbox->aio == NULL) return;
  pthread_mutex_lock(&outbox->mutex);
  outbox->broken = true;
  pthread_mutex_unlock(&outbox->mutex);
  nng_aio_stop(outbox->aio);
  nng_aio_free(outbox->aio);
  while (outbox->queue.count > 0)
    drop_first(outbox);
  lp_vec_free(&outbox->queue);
  pthread_mutex_destroy(&outbox->mutex);
}

/* With the mutex held: the frame waits, but for what of it was sent. */
static void queue_frame(lp_tcp_outbox *outbox, const void *head, size_t head_size, const void *body, size_t body_size,
                        size_t sent) {
  size_t size = LP_TCP_LENGTH + head_size + body_size;
  lp_tcp_piece piece = {.data = lp_alloc(size), .size = size};
  lp_tcp_put_length(piece.data, head_size + body_size);
  if (head_size > 0) memcpy(piece.data + LP_TCP_LENGTH, head, head_size);
  if (body_size > 0) memcpy(piece.data + LP_TCP_LENGTH + head_size, body, body_size);
  if (outbox->queue.count == 0) outbox->sent = sent;
  lp_vec_push(&outbox->queue, piece);
  outbox->bytes += size;
}

bool lp_tcp_outbox_put(lp_tcp_outbox *outbox, const void *head, size_t head_size, const void *body, size_t body_size) {
  size_t size = LP_TCP_LENGTH + head_size + body_size, sent = 0;
  nng_iov iov;
  pthread_mutex_lock(&outbox->mutex);
  bool good = !outbox->broken && !outbox->finishing && size <= most_bytes - outbox->bytes, first = !outbox->busy;
  if (good && first) {
    outbox->broken = lp_tcp_stream_send_some(outbox->tcp, head, head_size, body, body_size, &sent) != 0;
    good = !outbox->broken;
  }
  if (good && sent < size) queue_frame(outbox, head, head_size, body, body_size, sent);
  bool begin = good && first && next_iov(outbox, &iov), over = first && outbox->broken;
  pthread_mutex_unlock(&outbox->mutex);
  if (over) nng_stream_close(outbox->tcp->stream);
  if (begin) send_first(outbox, iov);
  return good;
}

void lp_tcp_outbox_beat(lp_tcp_outbox *outbox) {
  pthread_mutex_lock(&outbox->mutex);
  bool busy = outbox->busy;
  pthread_mutex_unlock(&outbox->mutex);
  if (!busy) (void)lp_tcp_outbox_put(outbox, NULL, 0, NULL, 0);
}

void lp_tcp_outbox_finish(lp_tcp_outbox *outbox) {
  pthread_mutex_lock(&outbox->mutex);
  outbox->finishing = true;
  bool idle = !outbox->busy;
  pthread_mutex_unlock(&outbox->mutex);
  if (idle) nng_stream_close(outbox->tcp->stream);
}

bool lp_tcp_outbox_ask(lp_tcp_outbox *outbox) {
  pthread_mutex_lock(&outbox->mutex);
  bool open = !outbox->broken && (!outbox->finishing || outbox->busy);
  if (open) lp_tcp_stream_ask(outbox->tcp);
  pthread_mutex_unlock(&outbox->mutex);
  return open;
}
