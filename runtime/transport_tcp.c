/* Frames over TCP by NNG's byte streams: uint64 little endian, then so many bytes.
 *
 * NNG's own message sockets do not fit: a pair socket that serves many peers drops frames when one is slow, and
 * request/reply would cost a round trip for each tensor that is sent. Streams also send a tensor from where it lies. */
#include <errno.h>
#include <nng/nng.h>
#include <nng/transport/tcp/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/runtime_internal.h"

enum { LENGTH_SIZE = 8, SEND_TIMEOUT_MS = 30000, MOST_PEERS = 1024 };
static const uint64_t frame_limit = UINT64_C(1) << 32;

typedef struct tcp_peer {
  lp_channel *channel;
  nng_stream *stream;
  nng_aio *receive, *send;
  uint32_t id;
  uint8_t length[LENGTH_SIZE];
  uint8_t *frame; /* being received, or complete and not yet taken */
  size_t frame_size, have;
  bool in_frame;  /* else the length is being received */
  bool ready;     /* `frame` is complete; nothing is being received */
  bool gone, reported;
} tcp_peer;

struct lp_channel {
  nng_stream_listener *listener;
  nng_stream_dialer *dialer;
  nng_aio *connect; /* accepts or dials */
  pthread_mutex_t mutex;
  pthread_cond_t news;
  /* Under the mutex. */
  LP_VEC(tcp_peer *) peers;
  size_t next; /* where the search for a ready peer begins, so that each has its turn */
  uint32_t last_id;
};

/* ---- receiving: a small machine driven by NNG's threads ---------------------------------------------------------- */

static void receive_more(tcp_peer *peer) {
  nng_iov iov = peer->in_frame ? (nng_iov){peer->frame + peer->have, peer->frame_size - peer->have}
                               : (nng_iov){peer->length + peer->have, LENGTH_SIZE - peer->have};
  nng_aio_set_iov(peer->receive, 1, &iov);
  nng_stream_recv(peer->stream, peer->receive);
}

static void mark_gone(tcp_peer *peer) {
  pthread_mutex_lock(&peer->channel->mutex);
  peer->gone = true;
  pthread_cond_signal(&peer->channel->news);
  pthread_mutex_unlock(&peer->channel->mutex);
}

static void mark_ready(tcp_peer *peer) {
  pthread_mutex_lock(&peer->channel->mutex);
  peer->ready = true;
  pthread_cond_signal(&peer->channel->news);
  pthread_mutex_unlock(&peer->channel->mutex);
}

static bool begin_frame(tcp_peer *peer) {
  uint64_t length = 0;
  for (int i = 0; i < LENGTH_SIZE; i++) length |= (uint64_t)peer->length[i] << (8 * i);
  if (length == 0 || length > frame_limit) return false;
  peer->frame = malloc((size_t)length);
  peer->frame_size = (size_t)length;
  peer->in_frame = true;
  peer->have = 0;
  return peer->frame != NULL;
}

static void on_received(void *user) {
  tcp_peer *peer = user;
  if (nng_aio_result(peer->receive) != 0) {
    mark_gone(peer);
    return;
  }
  peer->have += nng_aio_count(peer->receive);
  if (!peer->in_frame && peer->have == LENGTH_SIZE && !begin_frame(peer)) {
    mark_gone(peer);
    return;
  }
  if (peer->in_frame && peer->have == peer->frame_size)
    mark_ready(peer);
  else
    receive_more(peer);
}

/* ---- peers ------------------------------------------------------------------------------------------------------- */

static void peer_free(tcp_peer *peer) {
  nng_stream_close(peer->stream);
  if (peer->receive != NULL) {
    nng_aio_stop(peer->receive);
    nng_aio_free(peer->receive);
  }
  if (peer->send != NULL) nng_aio_free(peer->send);
  nng_stream_free(peer->stream);
  free(peer->frame);
  free(peer);
}

static void add_peer(lp_channel *channel, nng_stream *stream) {
  tcp_peer *peer = lp_alloc(sizeof(*peer));
  peer->channel = channel;
  peer->stream = stream;
  if (nng_aio_alloc(&peer->receive, on_received, peer) != 0 || nng_aio_alloc(&peer->send, NULL, NULL) != 0) {
    peer_free(peer);
    return;
  }
  nng_aio_set_timeout(peer->receive, NNG_DURATION_INFINITE);
  nng_aio_set_timeout(peer->send, SEND_TIMEOUT_MS);
  pthread_mutex_lock(&channel->mutex);
  bool full = channel->peers.count >= MOST_PEERS;
  if (!full) {
    peer->id = ++channel->last_id;
    lp_vec_push(&channel->peers, peer);
  }
  pthread_mutex_unlock(&channel->mutex);
  if (full)
    peer_free(peer);
  else
    receive_more(peer);
}

static void on_accepted(void *user) {
  lp_channel *channel = user;
  int error = nng_aio_result(channel->connect);
  if (error == NNG_ECLOSED || error == NNG_ECANCELED) return;
  if (error == 0) add_peer(channel, nng_aio_get_output(channel->connect, 0));
  nng_stream_listener_accept(channel->listener, channel->connect);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static lp_channel *channel_create(void) {
  lp_channel *channel = lp_alloc(sizeof(*channel));
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&channel->mutex, NULL);
  pthread_cond_init(&channel->news, &attributes);
  pthread_condattr_destroy(&attributes);
  return channel;
}

static void tcp_close(lp_channel *channel) {
  if (channel == NULL) return;
  if (channel->listener != NULL) nng_stream_listener_close(channel->listener);
  if (channel->dialer != NULL) nng_stream_dialer_close(channel->dialer);
  if (channel->connect != NULL) {
    nng_aio_stop(channel->connect);
    nng_aio_free(channel->connect);
  }
  for (size_t i = 0; i < channel->peers.count; i++) peer_free(channel->peers.data[i]);
  lp_vec_free(&channel->peers);
  if (channel->listener != NULL) nng_stream_listener_free(channel->listener);
  if (channel->dialer != NULL) nng_stream_dialer_free(channel->dialer);
  pthread_cond_destroy(&channel->news);
  pthread_mutex_destroy(&channel->mutex);
  free(channel);
}

static char *url_of(const char *address) {
  lp_buf url = {0};
  lp_buf_printf(&url, "tcp://%s", address);
  return url.data;
}

static int start_dialing(lp_channel *channel, const char *address, double timeout_ms) {
  char *url = url_of(address);
  int error = nng_stream_dialer_alloc(&channel->dialer, url);
  free(url);
  if (error != 0) return error;
  error = nng_aio_alloc(&channel->connect, NULL, NULL);
  if (error != 0) return error;
  nng_stream_dialer_set_bool(channel->dialer, NNG_OPT_TCP_NODELAY, true);
  nng_aio_set_timeout(channel->connect, (nng_duration)timeout_ms);
  nng_stream_dialer_dial(channel->dialer, channel->connect);
  nng_aio_wait(channel->connect);
  return nng_aio_result(channel->connect);
}

static lp_status tcp_dial(const char *address, double timeout_ms, lp_channel **out, lp_diag *diag) {
  lp_channel *channel = channel_create();
  int error = start_dialing(channel, address, timeout_ms);
  if (error == 0) add_peer(channel, nng_aio_get_output(channel->connect, 0));
  if (error == 0 && channel->peers.count == 0) error = NNG_ENOMEM;
  *out = error == 0 ? channel : NULL;
  if (error == 0) return LP_OK;
  tcp_close(channel);
  return lp_error(diag, LP_LOC_NONE, "cannot reach the cloud at %s: %s", address, nng_strerror(error));
}

static int start_listening(lp_channel *channel, const char *address, int *port) {
  char *url = url_of(address);
  int error = nng_stream_listener_alloc(&channel->listener, url);
  free(url);
  if (error != 0) return error;
  nng_stream_listener_set_bool(channel->listener, NNG_OPT_TCP_NODELAY, true);
  error = nng_stream_listener_listen(channel->listener);
  if (error == 0) error = nng_stream_listener_get_int(channel->listener, NNG_OPT_TCP_BOUND_PORT, port);
  if (error == 0) error = nng_aio_alloc(&channel->connect, on_accepted, channel);
  if (error == 0) nng_stream_listener_accept(channel->listener, channel->connect);
  return error;
}

static lp_status tcp_listen(const char *address, lp_channel **out, int *port, lp_diag *diag) {
  lp_channel *channel = channel_create();
  int error = start_listening(channel, address, port);
  *out = error == 0 ? channel : NULL;
  if (error == 0) return LP_OK;
  tcp_close(channel);
  return lp_error(diag, LP_LOC_NONE, "cannot listen on %s: %s", address, nng_strerror(error));
}

/* ---- the caller's side ------------------------------------------------------------------------------------------- */

/* With the mutex held. Only the receiving thread removes peers, and it is also the one that sends. */
static tcp_peer *find_peer(lp_channel *channel, uint32_t id) {
  for (size_t i = 0; i < channel->peers.count; i++)
    if (channel->peers.data[i]->id == id && !channel->peers.data[i]->gone) return channel->peers.data[i];
  return NULL;
}

static bool tcp_send(lp_channel *channel, uint32_t id, const void *head, size_t head_size, const void *body,
                     size_t body_size, const char **why) {
  pthread_mutex_lock(&channel->mutex);
  tcp_peer *peer = find_peer(channel, id);
  pthread_mutex_unlock(&channel->mutex);
  *why = "the connection closed";
  if (peer == NULL) return false;
  uint8_t length[LENGTH_SIZE];
  for (int i = 0; i < LENGTH_SIZE; i++) length[i] = (uint8_t)((uint64_t)(head_size + body_size) >> (8 * i));
  const nng_iov part[3] = {{length, LENGTH_SIZE},
                           {(void *)(uintptr_t)head, head_size},
                           {(void *)(uintptr_t)body, body_size}};
  size_t total = LENGTH_SIZE + head_size + body_size;
  for (size_t sent = 0; sent < total;) {
    nng_iov rest[3];
    unsigned count = 0;
    size_t skip = sent;
    for (size_t i = 0; i < LP_COUNT(part); i++) {
      size_t done = skip < part[i].iov_len ? skip : part[i].iov_len;
      skip -= done;
      if (done < part[i].iov_len)
        rest[count++] = (nng_iov){(char *)part[i].iov_buf + done, part[i].iov_len - done};
    }
    nng_aio_set_iov(peer->send, count, rest);
    nng_stream_send(peer->stream, peer->send);
    nng_aio_wait(peer->send);
    int error = nng_aio_result(peer->send);
    *why = nng_strerror(error);
    if (error != 0) return false;
    sent += nng_aio_count(peer->send);
  }
  return true;
}

/* With the mutex held: a complete frame, or a peer that has gone; frames first. */
static tcp_peer *find_news(lp_channel *channel) {
  size_t count = channel->peers.count;
  tcp_peer *gone = NULL;
  for (size_t i = 0; i < count; i++) {
    size_t index = (channel->next + i) % count;
    tcp_peer *peer = channel->peers.data[index];
    if (peer->gone && !peer->reported) gone = peer;
    if (!peer->ready) continue;
    channel->next = (index + 1) % count;
    return peer;
  }
  return gone;
}

static void remove_peer(lp_channel *channel, const tcp_peer *peer) {
  size_t count = channel->peers.count;
  for (size_t i = 0; i < count; i++)
    if (channel->peers.data[i] == peer) channel->peers.data[i] = channel->peers.data[count - 1];
  channel->peers.count = count - 1;
  channel->next = 0;
}

static lp_recv_outcome take(lp_channel *channel, tcp_peer *peer, lp_packet *out) {
  out->peer = peer->id;
  if (!peer->ready) {
    peer->reported = true;
    if (channel->listener != NULL) remove_peer(channel, peer);
    pthread_mutex_unlock(&channel->mutex);
    if (channel->listener != NULL) peer_free(peer);
    return LP_RECV_GONE;
  }
  *out = (lp_packet){.peer = peer->id, .data = peer->frame, .size = peer->frame_size, .handle = peer->frame};
  peer->frame = NULL;
  peer->ready = peer->in_frame = false;
  peer->have = 0;
  pthread_mutex_unlock(&channel->mutex);
  receive_more(peer);
  return LP_RECV_FRAME;
}

static struct timespec deadline_after(double ms) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  int64_t ns = at.tv_nsec + (int64_t)(ms * 1e6);
  at.tv_sec += (time_t)(ns / 1000000000);
  at.tv_nsec = (long)(ns % 1000000000);
  return at;
}

static lp_recv_outcome tcp_receive(lp_channel *channel, double timeout_ms, lp_packet *out, const char **why) {
  *out = (lp_packet){0};
  *why = "";
  struct timespec until = deadline_after(timeout_ms < 0 ? 0 : timeout_ms);
  pthread_mutex_lock(&channel->mutex);
  for (;;) {
    tcp_peer *peer = find_news(channel);
    if (peer != NULL) return take(channel, peer, out); /* unlocks */
    if (channel->listener == NULL && channel->peers.data[0]->gone) break;
    if (pthread_cond_timedwait(&channel->news, &channel->mutex, &until) == ETIMEDOUT) {
      pthread_mutex_unlock(&channel->mutex);
      return LP_RECV_TIMEOUT;
    }
  }
  pthread_mutex_unlock(&channel->mutex);
  return LP_RECV_GONE;
}

static void tcp_release(lp_packet *packet) {
  free(packet->handle);
  *packet = (lp_packet){0};
}

const lp_transport lp_transport_tcp = {.name = "tcp",
                                       .dial = tcp_dial,
                                       .listen = tcp_listen,
                                       .send = tcp_send,
                                       .receive = tcp_receive,
                                       .release = tcp_release,
                                       .close = tcp_close,
                                       .overhead = LENGTH_SIZE};
