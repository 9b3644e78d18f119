#include "runtime/link/tcp_stream.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "runtime/link/tcp_look.h"

/* What can be done at once is given so long: NNG never completes what a closed stream is asked for. */
enum { AT_ONCE_MS = 1000 };

bool lp_tcp_stream_init(lp_tcp_stream *tcp, nng_stream *stream, int socket, void (*on_received)(void *), void *user,
                        uint64_t most) {
  memset(tcp, 0, offsetof(lp_tcp_stream, ahead));
  tcp->stream = stream;
  tcp->socket = socket;
  tcp->most = most;
  if (nng_aio_alloc(&tcp->receive, on_received, user) != 0 || nng_aio_alloc(&tcp->read, NULL, NULL) != 0 ||
      nng_aio_alloc(&tcp->send, NULL, NULL) != 0) {
    lp_tcp_stream_close(tcp);
    return false;
  }
  nng_aio_set_timeout(tcp->receive, NNG_DURATION_INFINITE);
  nng_aio_set_timeout(tcp->read, AT_ONCE_MS);
  nng_aio_set_timeout(tcp->send, AT_ONCE_MS);
  return true;
}

void lp_tcp_stream_close(lp_tcp_stream *tcp) {
  if (tcp->stream == NULL) return;
  nng_stream_close(tcp->stream);
  if (tcp->receive != NULL) {
    nng_aio_stop(tcp->receive);
    nng_aio_free(tcp->receive);
  }
  if (tcp->read != NULL) nng_aio_free(tcp->read);
  if (tcp->send != NULL) nng_aio_free(tcp->send);
  if (tcp->socket >= 0) close(tcp->socket);
  nng_stream_free(tcp->stream);
  free(tcp->frame);
  free(tcp->joined);
  memset(tcp, 0, offsetof(lp_tcp_stream, ahead));
}

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

lp_tcp_progress lp_tcp_stream_absorb(lp_tcp_stream *tcp) {
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

static void receive(lp_tcp_stream *tcp, nng_aio *aio) {
  nng_iov iov = {tcp->ahead, LP_TCP_AHEAD};
  if (tcp->frame != NULL) iov = (nng_iov){tcp->frame + tcp->have, tcp->frame_size - tcp->have};
  nng_aio_set_iov(aio, 1, &iov);
  nng_stream_recv(tcp->stream, aio);
}

static lp_tcp_progress received(lp_tcp_stream *tcp, nng_aio *aio) {
  if (nng_aio_result(aio) != 0) return LP_TCP_BROKEN;
  size_t count = nng_aio_count(aio);
  if (tcp->frame != NULL) {
    tcp->have += count;
  } else {
    tcp->ahead_begin = 0;
    tcp->ahead_end = count;
  }
  return lp_tcp_stream_absorb(tcp);
}

void lp_tcp_stream_ask(lp_tcp_stream *tcp) {
  receive(tcp, tcp->receive);
}

lp_tcp_progress lp_tcp_stream_received(lp_tcp_stream *tcp) {
  return received(tcp, tcp->receive);
}

lp_tcp_progress lp_tcp_stream_read(lp_tcp_stream *tcp) {
  receive(tcp, tcp->read);
  nng_aio_wait(tcp->read);
  return received(tcp, tcp->read);
}

uint8_t *lp_tcp_stream_take(lp_tcp_stream *tcp, size_t *size) {
  uint8_t *frame = tcp->frame;
  *size = tcp->frame_size;
  tcp->frame = NULL;
  tcp->have = 0;
  return frame;
}

void lp_tcp_put_length(uint8_t length[LP_TCP_LENGTH], size_t bytes) {
  for (int i = 0; i < LP_TCP_LENGTH; i++)
    length[i] = (uint8_t)((uint64_t)bytes >> (8 * i));
}

/* What of the parts is left after `sent` bytes. */
static unsigned rest_of(const nng_iov *part, size_t count, size_t sent, nng_iov *rest) {
  unsigned used = 0;
  for (size_t i = 0; i < count; i++) {
    size_t done = sent < part[i].iov_len ? sent : part[i].iov_len;
    sent -= done;
    if (done < part[i].iov_len) rest[used++] = (nng_iov){(char *)part[i].iov_buf + done, part[i].iov_len - done};
  }
  return used;
}

static int send_parts(lp_tcp_stream *tcp, const nng_iov *part, size_t count, size_t total) {
  for (size_t sent = 0; sent < total; sent += nng_aio_count(tcp->send)) {
    nng_iov rest[3];
    nng_aio_set_iov(tcp->send, rest_of(part, count, sent, rest), rest);
    nng_stream_send(tcp->stream, tcp->send);
    nng_aio_wait(tcp->send);
    int error = nng_aio_result(tcp->send);
    if (error != 0) return error;
  }
  return 0;
}

int lp_tcp_stream_send(lp_tcp_stream *tcp, const void *head, size_t head_size, const void *body, size_t body_size) {
  uint8_t length[LP_TCP_LENGTH];
  lp_tcp_put_length(length, head_size + body_size);
  const nng_iov part[3] = {
      {length, LP_TCP_LENGTH}, {(void *)(uintptr_t)head, head_size}, {(void *)(uintptr_t)body, body_size}};
  size_t total = LP_TCP_LENGTH + head_size + body_size, at = 0;
  if (total > LP_TCP_JOINED) return send_parts(tcp, part, LP_COUNT(part), total);
  if (tcp->joined == NULL) tcp->joined = lp_alloc(LP_TCP_JOINED);
  for (size_t i = 0; i < LP_COUNT(part); at += part[i++].iov_len)
    if (part[i].iov_len > 0) memcpy(tcp->joined + at, part[i].iov_buf, part[i].iov_len);
  return send_parts(tcp, &(nng_iov){tcp->joined, total}, 1, total);
}

int lp_tcp_stream_send_some(lp_tcp_stream *tcp, const void *head, size_t head_size, const void *body, size_t body_size,
                            size_t *sent) {
  uint8_t length[LP_TCP_LENGTH];
  lp_tcp_put_length(length, head_size + body_size);
  const nng_iov part[3] = {
      {length, LP_TCP_LENGTH}, {(void *)(uintptr_t)head, head_size}, {(void *)(uintptr_t)body, body_size}};
  nng_iov rest[3];
  *sent = 0;
  if (tcp->socket < 0 || !lp_tcp_is_writable(tcp->socket)) return 0;
  nng_aio_set_iov(tcp->send, rest_of(part, LP_COUNT(part), 0, rest), rest);
  nng_stream_send(tcp->stream, tcp->send);
  nng_aio_wait(tcp->send);
  *sent = nng_aio_count(tcp->send);
  return nng_aio_result(tcp->send);
}
