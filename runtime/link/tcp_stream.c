/* Frames over one connection, sealed and opened by the threads that send and want them (tcp_stream.h). */
#include "runtime/link/tcp_stream.h"
#include "runtime/exec/executor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  SEND_MS =
      1000, /* at most, unless the owner sets another limit: NNG never completes what a closed stream is asked for */
  SLICE = 256 << 10, /* of a long body, sealed at once */
  MOST_PARTS = 3
};

bool lp_tcp_stream_init(lp_tcp_stream *tcp, nng_stream *stream, int socket, lp_tls *tls, void (*on_received)(void *),
                        void *user, uint64_t most) {
  memset(tcp, 0, offsetof(lp_tcp_stream, ahead));
  tcp->stream = stream;
  tcp->socket = socket;
  tcp->tls = tls;
  tcp->most = most;
  if (nng_aio_alloc(&tcp->receive, on_received, user) != 0 || nng_aio_alloc(&tcp->send, NULL, NULL) != 0) {
    lp_tcp_stream_close(tcp);
    return false;
  }
  nng_aio_set_timeout(tcp->receive, NNG_DURATION_INFINITE);
  nng_aio_set_timeout(tcp->send, SEND_MS);
  return true;
}

void lp_tcp_stream_close(lp_tcp_stream *tcp) {
  if (tcp->stream == NULL) return;
  nng_stream_close(tcp->stream);
  if (tcp->receive != NULL) {
    nng_aio_stop(tcp->receive);
    nng_aio_free(tcp->receive);
  }
  if (tcp->send != NULL) nng_aio_free(tcp->send);
  if (tcp->socket >= 0) close(tcp->socket);
  nng_stream_free(tcp->stream);
  lp_tls_free(tcp->tls);
  lp_buf_free(&tcp->sealed);
  free(tcp->frame);
  memset(tcp, 0, offsetof(lp_tcp_stream, ahead));
}

/* ---- receiving ------------------------------------------------------------------------------------------------------------- */

/* Copies from `ahead` what the target still lacks. */
static void fill(lp_tcp_stream *tcp, uint8_t *target, size_t wanted) {
  size_t here = tcp->ahead_end - tcp->ahead_begin, lacks = wanted - tcp->have;
  size_t count = here < lacks ? here : lacks;
  memcpy(target + tcp->have, tcp->ahead + tcp->ahead_begin, count);
  tcp->have += count;
  tcp->ahead_begin += count;
}

static uint64_t length_of(const lp_tcp_stream *tcp) {
  uint64_t length = 0;
  for (int i = 0; i < LP_TCP_LENGTH; i++)
    length |= (uint64_t)tcp->length[i] << (8 * i);
  return length;
}

static bool begin_frame(lp_tcp_stream *tcp) {
  uint64_t length = length_of(tcp);
  tcp->frame = malloc((size_t)length);
  tcp->frame_size = (size_t)length;
  tcp->have = 0;
  return tcp->frame != NULL;
}

static lp_tcp_progress use_ahead(lp_tcp_stream *tcp) {
  while (tcp->frame == NULL) {
    fill(tcp, tcp->length, LP_TCP_LENGTH);
    if (tcp->have < LP_TCP_LENGTH) return LP_TCP_MORE;
    if (length_of(tcp) > __atomic_load_n(&tcp->most, __ATOMIC_RELAXED)) return LP_TCP_LONG;
    if (length_of(tcp) > 0 && !begin_frame(tcp)) return LP_TCP_BROKEN;
    if (tcp->frame != NULL) break;
    tcp->beats++;
    tcp->have = 0;
  }
  fill(tcp, tcp->frame, tcp->frame_size);
  return tcp->have == tcp->frame_size ? LP_TCP_FRAME : LP_TCP_MORE;
}

/* Where plain bytes go next, `ahead` being used up. */
static uint8_t *plain_room(lp_tcp_stream *tcp, size_t *size) {
  *size = tcp->frame != NULL ? tcp->frame_size - tcp->have : LP_TCP_AHEAD;
  return tcp->frame != NULL ? tcp->frame + tcp->have : tcp->ahead;
}

static void plain_arrived(lp_tcp_stream *tcp, size_t count) {
  if (tcp->frame != NULL) {
    tcp->have += count;
  } else {
    tcp->ahead_begin = 0;
    tcp->ahead_end = count;
  }
}

lp_tcp_progress lp_tcp_stream_absorb(lp_tcp_stream *tcp) {
  lp_tcp_progress progress = use_ahead(tcp);
  while (progress == LP_TCP_MORE && tcp->tls != NULL) {
    size_t size, got;
    uint8_t *to = plain_room(tcp, &size);
    lp_tls_progress opened = lp_tls_open(tcp->tls, to, size, &got);
    if (opened == LP_TLS_MORE) return LP_TCP_MORE;
    if (opened == LP_TLS_BROKEN) return LP_TCP_BROKEN;
    plain_arrived(tcp, got);
    progress = use_ahead(tcp);
  }
  return progress;
}

static nng_iov room_of(lp_tcp_stream *tcp) {
  size_t size;
  uint8_t *to = tcp->tls != NULL ? lp_tls_room(tcp->tls, &size) : plain_room(tcp, &size);
  return (nng_iov){to, size};
}

static lp_tcp_progress arrived(lp_tcp_stream *tcp, size_t count) {
  if (tcp->tls != NULL)
    lp_tls_arrived(tcp->tls, count);
  else
    plain_arrived(tcp, count);
  return lp_tcp_stream_absorb(tcp);
}

void lp_tcp_stream_ask(lp_tcp_stream *tcp) {
  nng_iov iov = room_of(tcp);
  nng_aio_set_iov(tcp->receive, 1, &iov);
  nng_stream_recv(tcp->stream, tcp->receive);
}

lp_tcp_progress lp_tcp_stream_received(lp_tcp_stream *tcp) {
  return nng_aio_result(tcp->receive) != 0 ? LP_TCP_BROKEN : arrived(tcp, nng_aio_count(tcp->receive));
}

static bool may_come_later(void) {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

lp_tcp_progress lp_tcp_stream_read(lp_tcp_stream *tcp) {
  nng_iov iov = room_of(tcp);
  ssize_t got = recv(tcp->socket, iov.iov_buf, iov.iov_len, MSG_DONTWAIT);
  if (got > 0) return arrived(tcp, (size_t)got);
  return got < 0 && may_come_later() ? LP_TCP_MORE : LP_TCP_BROKEN;
}

uint8_t *lp_tcp_stream_take(lp_tcp_stream *tcp, size_t *size) {
  uint8_t *frame = tcp->frame;
  *size = tcp->frame_size;
  tcp->frame = NULL;
  tcp->have = 0;
  return frame;
}

/* ---- sending --------------------------------------------------------------------------------------------------------------- */

void lp_tcp_frame_begin(lp_tcp_frame *frame, const void *head, size_t head_size, const void *body, size_t body_size) {
  for (int i = 0; i < LP_TCP_LENGTH; i++)
    frame->length[i] = (uint8_t)((uint64_t)(head_size + body_size) >> (8 * i));
  frame->part[0] = (lp_span){frame->length, LP_TCP_LENGTH};
  frame->part[1] = (lp_span){(void *)(uintptr_t)head, head_size};
  frame->part[2] = (lp_span){(void *)(uintptr_t)body, body_size};
}

/* What of the parts is left after `sent` bytes. */
static unsigned rest_of(const lp_span *part, size_t count, size_t sent, lp_span rest[MOST_PARTS]) {
  unsigned used = 0;
  for (size_t i = 0; i < count; i++) {
    size_t done = sent < part[i].size ? sent : part[i].size;
    sent -= done;
    if (done < part[i].size) rest[used++] = (lp_span){(char *)part[i].data + done, part[i].size - done};
  }
  return used;
}

bool lp_tcp_stream_send_some(lp_tcp_stream *tcp, const lp_span *part, size_t count, size_t *sent) {
  struct iovec iov[MOST_PARTS];
  *sent = 0;
  if (tcp->socket < 0) return true;
  for (size_t i = 0; i < count; i++)
    iov[i] = (struct iovec){part[i].data, part[i].size};
  ssize_t result =
      sendmsg(tcp->socket, &(struct msghdr){.msg_iov = iov, .msg_iovlen = count}, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (result > 0) *sent = (size_t)result;
  return result >= 0 || may_come_later();
}

static int send_parts(lp_tcp_stream *tcp, const lp_span *part, size_t count) {
  size_t sent, total = 0;
  for (size_t i = 0; i < count; i++)
    total += part[i].size;
  if (!lp_tcp_stream_send_some(tcp, part, count, &sent)) return NNG_ECONNSHUT;
  for (; sent < total; sent += nng_aio_count(tcp->send)) {
    lp_span rest[MOST_PARTS];
    nng_iov iov[MOST_PARTS];
    unsigned left = rest_of(part, count, sent, rest);
    for (unsigned i = 0; i < left; i++)
      iov[i] = (nng_iov){rest[i].data, rest[i].size};
    nng_aio_set_iov(tcp->send, left, iov);
    nng_stream_send(tcp->stream, tcp->send);
    nng_aio_wait(tcp->send);
    int error = nng_aio_result(tcp->send);
    if (error != 0) return error;
  }
  return 0;
}

static int send_sealed(lp_tcp_stream *tcp, const lp_span *part, size_t count) {
  lp_buf_clear(&tcp->sealed);
  if (!lp_tls_seal(tcp->tls, part, count, &tcp->sealed)) return NNG_ECRYPTO;
  return send_parts(tcp, &(lp_span){tcp->sealed.data, tcp->sealed.size}, 1);
}

int lp_tcp_stream_flush(lp_tcp_stream *tcp) {
  return tcp->tls != NULL && lp_tls_waits(tcp->tls) ? send_sealed(tcp, NULL, 0) : 0;
}

int lp_tcp_stream_send(lp_tcp_stream *tcp, const void *head, size_t head_size, const void *body, size_t body_size) {
  lp_tcp_frame frame;
  lp_tcp_frame_begin(&frame, head, head_size, body, body_size);
  if (tcp->tls == NULL) return send_parts(tcp, frame.part, LP_COUNT(frame.part));
  lp_span *slice = &frame.part[2];
  size_t done = body_size < SLICE ? body_size : SLICE;
  slice->size = done;
  int error = send_sealed(tcp, frame.part, LP_COUNT(frame.part));
  for (; error == 0 && done < body_size; done += slice->size) {
    size_t left = body_size - done;
    *slice = (lp_span){(char *)(uintptr_t)body + done, left < SLICE ? left : SLICE};
    error = send_sealed(tcp, slice, 1);
  }
  return error;
}

void lp_tcp_stream_finish(lp_tcp_stream *tcp) {
  size_t sent;
  if (tcp->tls == NULL) return;
  lp_buf last = {0};
  lp_tls_finish(tcp->tls, &last);
  if (last.size > 0) (void)lp_tcp_stream_send_some(tcp, &(lp_span){last.data, last.size}, 1, &sent);
  lp_buf_free(&last);
}
