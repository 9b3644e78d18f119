/* The transport over TCP, by NNG's byte streams.
 *
 * NNG's own message sockets do not fit: a pair socket that serves many peers drops frames when one is slow, and
 * request/reply would cost a round trip for each tensor that is sent. Streams also send a tensor from where it lies.
 *
 * A device has one peer and waits for it by itself: a receive is asked for without a limit and stays asked for, since one that is given up
 * takes a TLS stream with it, and the next would wait for ever. A worker has many: NNG's threads fill a frame for each, and the
 * worker takes them in turn; no peer is read from while a frame of its own waits to be taken. */
#include <arpa/inet.h>
#include <errno.h>
#include <nng/transport/tcp/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/link_security.h"
#include "runtime/tcp_outbox.h"
#include "runtime/tcp_stream.h"

/* What a device takes from the worker that it chose. */
static const uint64_t most_frame = UINT64_C(1) << 32;
enum { MOST_PEERS = 1024 };

typedef struct {
  lp_channel *channel;
  uint32_t id;
  lp_tcp_stream tcp;
  bool ready; /* a frame is complete; nothing is being received */
  bool held;  /* its next frame is too long, unless what it sent before brings it a permission */
  bool gone;
  /* Of a device's only peer: is a receive asked for, and complete (under the mutex)? */
  bool asked, received;
  /* Is it waited for, since when nothing came, when it was asked for a sign of life. */
  bool awaited;
  double heard_ms, beaten_ms;
  lp_tcp_outbox outbox; /* of a listener's peer */
} tcp_peer;

struct lp_channel {
  nng_stream_listener *listener; /* NULL: a device's channel */
  nng_stream_dialer *dialer;
  nng_aio *connect;     /* accepts or dials */
  lp_patience patience; /* of a device */
  pthread_mutex_t mutex;
  pthread_cond_t news;
  /* Under the mutex, as are `ready` and `gone` of a listener's peers. */
  LP_VEC(tcp_peer *) peers;
  size_t next; /* where the search for a ready peer begins, so that each has its turn */
  uint32_t last_id;
};

static nng_duration duration_of(double ms) {
  return ms <= 0 ? 0 : ms < INT32_MAX ? (nng_duration)(ms + 1) : INT32_MAX;
}

static struct timespec deadline_after(double ms) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  int64_t ns = at.tv_nsec + (int64_t)((ms > 0 ? ms : 0) * 1e6);
  at.tv_sec += (time_t)(ns / 1000000000);
  at.tv_nsec = (long)(ns % 1000000000);
  return at;
}

/* ---- peers ------------------------------------------------------------------------------------------------------- */

static void peer_free(tcp_peer *peer) {
  if (peer->tcp.stream != NULL) nng_stream_close(peer->tcp.stream);
  if (peer->tcp.receive != NULL) nng_aio_stop(peer->tcp.receive); /* nothing begins an answer any more */
  lp_tcp_outbox_free(&peer->outbox);
  lp_tcp_stream_close(&peer->tcp);
  free(peer);
}

/* ---- signs of life ----------------------------------------------------------------------------------------------- */

/* Answers on whatever thread the question came in. */
static void answer_beats(tcp_peer *peer) {
  bool asked = peer->tcp.beats > 0;
  peer->tcp.beats = 0;
  if (asked) lp_tcp_outbox_beat(&peer->outbox);
}

/* Of a listener: takes note of what came, or goes on receiving. */
static void note_progress(tcp_peer *peer, lp_tcp_progress progress) {
  answer_beats(peer);
  if (progress == LP_TCP_MORE) {
    lp_tcp_stream_ask(&peer->tcp);
    return;
  }
  pthread_mutex_lock(&peer->channel->mutex);
  peer->ready = progress == LP_TCP_FRAME;
  peer->held = progress == LP_TCP_LONG;
  peer->gone = progress == LP_TCP_BROKEN;
  pthread_cond_signal(&peer->channel->news);
  pthread_mutex_unlock(&peer->channel->mutex);
}

static void on_received(void *user) {
  tcp_peer *peer = user;
  bool good = nng_aio_result(peer->tcp.receive) == 0;
  note_progress(peer, good ? lp_tcp_stream_received(&peer->tcp) : LP_TCP_BROKEN);
}

static void on_answered(void *user) {
  tcp_peer *peer = user;
  pthread_mutex_lock(&peer->channel->mutex);
  peer->received = true;
  pthread_cond_signal(&peer->channel->news);
  pthread_mutex_unlock(&peer->channel->mutex);
}

static bool add_peer(lp_channel *channel, nng_stream *stream) {
  tcp_peer *peer = lp_alloc(sizeof(*peer));
  peer->channel = channel;
  bool listens = channel->listener != NULL;
  if (!lp_tcp_stream_init(&peer->tcp, stream, listens ? on_received : on_answered, peer,
                          listens ? LP_STRANGER_FRAME : most_frame) ||
      (listens && !lp_tcp_outbox_init(&peer->outbox, stream))) {
    peer_free(peer);
    return false;
  }
  if (!listens) nng_aio_set_timeout(peer->tcp.send, duration_of(channel->patience.silence_ms));
  pthread_mutex_lock(&channel->mutex);
  bool full = channel->peers.count >= MOST_PEERS;
  if (!full) {
    peer->id = ++channel->last_id;
    lp_vec_push(&channel->peers, peer);
  }
  pthread_mutex_unlock(&channel->mutex);
  if (full)
    peer_free(peer);
  else if (listens)
    lp_tcp_stream_ask(&peer->tcp);
  return !full;
}

static void on_accepted(void *user) {
  lp_channel *channel = user;
  int error = nng_aio_result(channel->connect);
  if (error == NNG_ECLOSED || error == NNG_ECANCELED) return;
  if (error == 0) (void)add_peer(channel, nng_aio_get_output(channel->connect, 0));
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
  for (size_t i = 0; i < channel->peers.count; i++)
    peer_free(channel->peers.data[i]);
  lp_vec_free(&channel->peers);
  if (channel->listener != NULL) nng_stream_listener_free(channel->listener);
  if (channel->dialer != NULL) nng_stream_dialer_free(channel->dialer);
  pthread_cond_destroy(&channel->news);
  pthread_mutex_destroy(&channel->mutex);
  free(channel);
}

static char *url_of(const char *address, const lp_security *security) {
  lp_buf url = {0};
  lp_buf_printf(&url, "%s://%s", security->tls != NULL ? "tls+tcp" : "tcp", address);
  return url.data;
}

static int start_dialing(lp_channel *channel, const lp_endpoint *endpoint, double timeout_ms) {
  const lp_security *security = endpoint->security;
  char *url = url_of(endpoint->via != NULL ? endpoint->via : endpoint->address, security);
  int error = nng_stream_dialer_alloc(&channel->dialer, url);
  free(url);
  if (error == 0) error = nng_stream_dialer_set_bool(channel->dialer, NNG_OPT_TCP_NODELAY, true);
  if (error == 0 && security->tls != NULL)
    error = nng_stream_dialer_set_ptr(channel->dialer, NNG_OPT_TLS_CONFIG, security->tls);
  if (error == 0) error = nng_aio_alloc(&channel->connect, NULL, NULL);
  if (error != 0) return error;
  nng_aio_set_timeout(channel->connect, (nng_duration)timeout_ms);
  nng_stream_dialer_dial(channel->dialer, channel->connect);
  nng_aio_wait(channel->connect);
  error = nng_aio_result(channel->connect);
  if (error != 0) return error;
  return add_peer(channel, nng_aio_get_output(channel->connect, 0)) ? 0 : NNG_ENOMEM;
}

static lp_status tcp_dial(const lp_endpoint *endpoint, double timeout_ms, lp_channel **out, lp_diag *diag) {
  lp_channel *channel = channel_create();
  channel->patience = endpoint->patience;
  int error = start_dialing(channel, endpoint, timeout_ms);
  *out = error == 0 ? channel : NULL;
  if (error == 0) return LP_OK;
  tcp_close(channel);
  return lp_error(diag, LP_LOC_NONE, "cannot reach the cloud at %s: %s", endpoint->address, nng_strerror(error));
}

static int start_listening(lp_channel *channel, const char *address, const lp_security *security, int *port) {
  char *url = url_of(address, security);
  int error = nng_stream_listener_alloc(&channel->listener, url);
  free(url);
  if (error == 0) error = nng_stream_listener_set_bool(channel->listener, NNG_OPT_TCP_NODELAY, true);
  if (error == 0 && security->tls != NULL)
    error = nng_stream_listener_set_ptr(channel->listener, NNG_OPT_TLS_CONFIG, security->tls);
  if (error == 0) error = nng_stream_listener_listen(channel->listener);
  if (error == 0) error = nng_stream_listener_get_int(channel->listener, NNG_OPT_TCP_BOUND_PORT, port);
  if (error == 0) error = nng_aio_alloc(&channel->connect, on_accepted, channel);
  if (error == 0) nng_stream_listener_accept(channel->listener, channel->connect);
  return error;
}

static lp_status tcp_listen(const char *address, const lp_security *security, lp_channel **out, int *port,
                            lp_diag *diag) {
  lp_channel *channel = channel_create();
  int error = start_listening(channel, address, security, port);
  *out = error == 0 ? channel : NULL;
  if (error == 0) return LP_OK;
  tcp_close(channel);
  return lp_error(diag, LP_LOC_NONE, "cannot listen on %s: %s", address, nng_strerror(error));
}

/* ---- sending and receiving --------------------------------------------------------------------------------------- */

/* Peers are removed by the thread that calls this alone, so the result stays good until its next call. */
static tcp_peer *find_peer(lp_channel *channel, uint32_t id) {
  tcp_peer *found = NULL;
  pthread_mutex_lock(&channel->mutex);
  for (size_t i = 0; i < channel->peers.count; i++)
    if (channel->peers.data[i]->id == id && !channel->peers.data[i]->gone) found = channel->peers.data[i];
  pthread_mutex_unlock(&channel->mutex);
  return found;
}

/* A device's stream that failed once is not used again: NNG's would wait for ever. */
static void lose(tcp_peer *peer) {
  nng_stream_close(peer->tcp.stream);
  peer->gone = true;
}

static bool tcp_send(lp_channel *channel, uint32_t id, const void *head, size_t head_size, const void *body,
                     size_t body_size, const char **why) {
  tcp_peer *peer = find_peer(channel, id);
  *why = "the connection closed";
  if (peer == NULL) return false;
  if (channel->listener != NULL) return lp_tcp_outbox_put(&peer->outbox, head, head_size, body, body_size);
  int error = lp_tcp_stream_send(&peer->tcp, head, head_size, body, body_size);
  if (error != 0) lose(peer); /* a frame was cut: nothing sensible can follow */
  *why = nng_strerror(error);
  return error == 0;
}

static void tcp_permit(lp_channel *channel, uint32_t id, uint64_t bytes) {
  tcp_peer *peer = find_peer(channel, id);
  if (peer != NULL) __atomic_store_n(&peer->tcp.most, bytes, __ATOMIC_RELAXED);
}

/* Its receiving side then tells the listener that it has gone. */
static void tcp_drop(lp_channel *channel, uint32_t id) {
  tcp_peer *peer = find_peer(channel, id);
  if (peer != NULL) lp_tcp_outbox_finish(&peer->outbox);
}

static void tcp_describe(lp_channel *channel, uint32_t id, char out[64]) {
  tcp_peer *peer = find_peer(channel, id);
  nng_sockaddr address = {.s_family = NNG_AF_UNSPEC};
  char host[INET6_ADDRSTRLEN] = "";
  if (peer != NULL) (void)nng_stream_get_addr(peer->tcp.stream, NNG_OPT_REMADDR, &address);
  snprintf(out, 64, "a device");
  if (address.s_family == NNG_AF_INET && inet_ntop(AF_INET, &address.s_in.sa_addr, host, sizeof(host)) != NULL)
    snprintf(out, 64, "%s:%d", host, ntohs(address.s_in.sa_port));
  if (address.s_family == NNG_AF_INET6 && inet_ntop(AF_INET6, address.s_in6.sa_addr, host, sizeof(host)) != NULL)
    snprintf(out, 64, "[%s]:%d", host, ntohs(address.s_in6.sa_port));
}

static lp_packet take_frame(tcp_peer *peer) {
  lp_packet packet = {.peer = peer->id};
  uint8_t *frame = lp_tcp_stream_take(&peer->tcp, &packet.size);
  packet.data = packet.handle = frame;
  return packet;
}

/* Nothing came for a while: asks for a sign of life, or gives up. */
static bool is_alive(tcp_peer *peer, const char **why) {
  const lp_patience *patience = &peer->channel->patience;
  double now = lp_now_ms();
  *why = "it gives no sign of life";
  if (now - peer->heard_ms >= patience->silence_ms) return false;
  if (now - peer->beaten_ms < patience->beat_ms) return true;
  peer->beaten_ms = now;
  *why = "the connection closed";
  return lp_tcp_stream_send(&peer->tcp, NULL, 0, NULL, 0) == 0;
}

/* Waits for the receive that is asked for, or else asks for one; false: nothing came in time. */
static bool await_receive(tcp_peer *peer, double limit_ms) {
  lp_channel *channel = peer->channel;
  struct timespec until = deadline_after(limit_ms);
  if (!peer->asked) {
    peer->received = false;
    peer->asked = true;
    lp_tcp_stream_ask(&peer->tcp);
  }
  pthread_mutex_lock(&channel->mutex);
  for (int waited = 0; !peer->received && waited != ETIMEDOUT;)
    waited = pthread_cond_timedwait(&channel->news, &channel->mutex, &until);
  bool received = peer->received;
  pthread_mutex_unlock(&channel->mutex);
  if (received) peer->asked = false;
  return received;
}

/* Waits for bytes until `until`. */
static lp_tcp_progress wait_for_bytes(tcp_peer *peer, double until, bool *over, const char **why) {
  double left = until - lp_now_ms(), beat = peer->channel->patience.beat_ms;
  *why = "it closed the connection";
  if (await_receive(peer, left < beat ? left : beat)) {
    if (nng_aio_result(peer->tcp.receive) != 0) return LP_TCP_BROKEN;
    peer->heard_ms = lp_now_ms();
    return lp_tcp_stream_received(&peer->tcp);
  }
  if (!is_alive(peer, why)) return LP_TCP_BROKEN;
  *over = lp_now_ms() >= until;
  return LP_TCP_MORE;
}

static lp_recv_outcome receive_from_only(tcp_peer *peer, double timeout_ms, lp_packet *out, const char **why) {
  bool over = false;
  double now = lp_now_ms();
  *why = "the connection closed";
  if (peer->gone) return LP_RECV_GONE;
  if (!peer->awaited) peer->heard_ms = now;
  peer->awaited = true;
  lp_tcp_progress progress = lp_tcp_stream_absorb(&peer->tcp);
  while (progress == LP_TCP_MORE && !over)
    progress = wait_for_bytes(peer, now + timeout_ms, &over, why);
  if (progress == LP_TCP_MORE) return LP_RECV_TIMEOUT;
  if (progress == LP_TCP_BROKEN || progress == LP_TCP_LONG) {
    lose(peer);
    return LP_RECV_GONE;
  }
  peer->awaited = false;
  *out = take_frame(peer);
  return LP_RECV_FRAME;
}

/* With the mutex held: a peer with a complete frame, or else one that has gone. */
static tcp_peer *find_news(lp_channel *channel) {
  size_t count = channel->peers.count;
  tcp_peer *gone = NULL;
  for (size_t i = 0; i < count; i++) {
    size_t index = (channel->next + i) % count;
    tcp_peer *peer = channel->peers.data[index];
    if (peer->gone) gone = peer;
    if (!peer->ready) continue;
    channel->next = (index + 1) % count;
    return peer;
  }
  return gone;
}

static bool any_held(const lp_channel *channel) {
  for (size_t i = 0; i < channel->peers.count; i++)
    if (channel->peers.data[i]->held) return true;
  return false;
}

static void remove_peer(lp_channel *channel, const tcp_peer *peer) {
  size_t count = channel->peers.count;
  for (size_t i = 0; i < count; i++)
    if (channel->peers.data[i] == peer) channel->peers.data[i] = channel->peers.data[count - 1];
  channel->peers.count = count - 1;
  channel->next = 0;
}

/* All that came before their long frames has been dealt with: they may go on now, or never. */
static void judge_held(lp_channel *channel) {
  for (size_t i = 0;; i++) {
    pthread_mutex_lock(&channel->mutex);
    tcp_peer *peer = i < channel->peers.count ? channel->peers.data[i] : NULL;
    bool held = peer != NULL && peer->held;
    pthread_mutex_unlock(&channel->mutex);
    if (peer == NULL) return;
    if (!held) continue;
    lp_tcp_progress progress = lp_tcp_stream_absorb(&peer->tcp);
    note_progress(peer, progress == LP_TCP_LONG ? LP_TCP_BROKEN : progress);
  }
}

static lp_recv_outcome receive_from_any(lp_channel *channel, double timeout_ms, lp_packet *out) {
  struct timespec until = deadline_after(timeout_ms);
  judge_held(channel);
  int waited = 0;
  pthread_mutex_lock(&channel->mutex);
  tcp_peer *peer = find_news(channel);
  while (peer == NULL && waited != ETIMEDOUT) {
    waited = pthread_cond_timedwait(&channel->news, &channel->mutex, &until);
    peer = find_news(channel);
    if (peer == NULL && any_held(channel)) break; /* comes back to judge it */
  }
  bool gone = peer != NULL && peer->gone;
  if (peer != NULL) peer->ready = false;
  if (gone) remove_peer(channel, peer);
  pthread_mutex_unlock(&channel->mutex);
  if (peer == NULL) return LP_RECV_TIMEOUT;
  if (gone) {
    out->peer = peer->id;
    peer_free(peer);
    return LP_RECV_GONE;
  }
  *out = take_frame(peer);
  note_progress(peer, lp_tcp_stream_absorb(&peer->tcp));
  return LP_RECV_FRAME;
}

static lp_recv_outcome tcp_receive(lp_channel *channel, double timeout_ms, lp_packet *out, const char **why) {
  *out = (lp_packet){0};
  *why = "";
  if (channel->listener == NULL) return receive_from_only(channel->peers.data[0], timeout_ms, out, why);
  return receive_from_any(channel, timeout_ms, out);
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
                                       .permit = tcp_permit,
                                       .drop = tcp_drop,
                                       .describe = tcp_describe,
                                       .overhead = LP_TCP_LENGTH};
