/* Messages that wait to be sent, so that no sender does: see tcp_outbox.h. */
#include "runtime/link/tcp_outbox.h"
#include "runtime/exec/executor.h"

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
  lp_buf_free(&outbox->sealed);
  pthread_mutex_destroy(&outbox->mutex);
}

/* With the mutex held: what of the bytes was not sent waits. */
static void queue(lp_tcp_outbox *outbox, const lp_span *part, size_t count, size_t sent) {
  lp_tcp_piece piece = {0};
  for (size_t i = 0; i < count; i++)
    piece.size += part[i].size;
  if (sent >= piece.size) return;
  if (outbox->queue.count == 0) outbox->sent = sent;
  if (count == 1 && part[0].data == outbox->sealed.data) { /* no need for a copy */
    piece.data = part[0].data;
    outbox->sealed = (lp_buf){0};
  } else {
    piece.data = lp_alloc(piece.size);
    for (size_t i = 0, at = 0; i < count; at += part[i++].size)
      if (part[i].size > 0) memcpy(piece.data + at, part[i].data, part[i].size);
  }
  lp_vec_push(&outbox->queue, piece);
  outbox->bytes += piece.size;
}

/* With the mutex held; sets `broken`. The bytes go as they are. */
static void post(lp_tcp_outbox *outbox, const lp_span *part, size_t count) {
  size_t sent = 0;
  if (!outbox->busy) outbox->broken = !lp_tcp_stream_send_some(outbox->tcp, part, count, &sent);
  if (!outbox->broken) queue(outbox, part, count, sent);
}

/* With the mutex held. In TLS what was sealed must go out, and in this order: hence the queue's limit is judged before. */
static bool post_frame(lp_tcp_outbox *outbox, const lp_span *part, size_t count) {
  if (outbox->tcp->tls == NULL) {
    post(outbox, part, count);
  } else {
    lp_buf_clear(&outbox->sealed);
    outbox->broken = !lp_tls_seal(outbox->tcp->tls, part, count, &outbox->sealed);
    if (outbox->sealed.size > 0) post(outbox, &(lp_span){outbox->sealed.data, outbox->sealed.size}, 1);
  }
  return !outbox->broken;
}

/* Lets the mutex go. */
static void go_on(lp_tcp_outbox *outbox, bool first) {
  nng_iov iov;
  bool begin = first && next_iov(outbox, &iov), over = first && outbox->broken;
  pthread_mutex_unlock(&outbox->mutex);
  if (over) nng_stream_close(outbox->tcp->stream);
  if (begin) send_first(outbox, iov);
}

bool lp_tcp_outbox_put(lp_tcp_outbox *outbox, const void *head, size_t head_size, const void *body, size_t body_size) {
  lp_tcp_frame frame;
  lp_tcp_frame_begin(&frame, head, head_size, body, body_size);
  pthread_mutex_lock(&outbox->mutex);
  size_t size = LP_TCP_LENGTH + head_size + body_size;
  bool first = !outbox->busy, room = outbox->bytes <= most_bytes && size <= most_bytes - outbox->bytes;
  bool good = !outbox->broken && !outbox->finishing && room;
  good = good && post_frame(outbox, frame.part, LP_COUNT(frame.part));
  go_on(outbox, first);
  return good;
}

void lp_tcp_outbox_flush(lp_tcp_outbox *outbox) {
  if (outbox->tcp->tls == NULL || !lp_tls_waits(outbox->tcp->tls)) return;
  pthread_mutex_lock(&outbox->mutex);
  bool first = !outbox->busy;
  if (!outbox->broken) (void)post_frame(outbox, NULL, 0);
  go_on(outbox, first);
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
