/* The transport over TCP, by NNG's byte streams.
 *
 * NNG's own message sockets do not fit: a pair socket that serves many peers drops frames when one is slow, and
 * request/reply would cost a round trip for each tensor that is sent. Streams also send a tensor from where it lies.
 *
 * How frames are received is in tcp_device.c and tcp_listener.c. */
#include <arpa/inet.h>
#include <nng/transport/tcp/tcp.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "runtime/link/link.h"
#include "runtime/link/link_security.h"
#include "runtime/link/tcp_channel.h"
#include "runtime/runtime.h"

/* What a device takes from the worker that it chose. */
static const uint64_t most_frame = UINT64_C(1) << 32;
enum { MOST_PEERS = 1024 };

static nng_duration duration_of(double ms) {
  return ms <= 0 ? 0 : ms < INT32_MAX ? (nng_duration)(ms + 1) : INT32_MAX;
}

struct timespec lp_tcp_deadline(double ms) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  int64_t ns = at.tv_nsec + (int64_t)((ms > 0 ? ms : 0) * 1e6);
  at.tv_sec += (time_t)(ns / 1000000000);
  at.tv_nsec = (long)(ns % 1000000000);
  return at;
}

/* ---- peers ------------------------------------------------------------------------------------------------------- */

void lp_tcp_peer_free(lp_tcp_peer *peer) {
  if (peer->tcp.stream != NULL) {
    if (peer->state != LP_TCP_GONE) lp_tcp_stream_finish(&peer->tcp);
    nng_stream_close(peer->tcp.stream);
  }
  if (peer->tcp.receive != NULL) nng_aio_stop(peer->tcp.receive); /* nothing begins an answer any more */
  lp_tcp_outbox_free(&peer->outbox);
  lp_tcp_stream_close(&peer->tcp);
  free(peer);
}

static bool add_peer(lp_channel *channel, nng_stream *stream) {
  lp_tcp_peer *peer = lp_alloc(sizeof(*peer));
  peer->channel = channel;
  bool listens = channel->listener != NULL;
  lp_tls *tls = channel->tls != NULL ? lp_tls_create(channel->tls) : NULL;
  if (!lp_tcp_stream_init(&peer->tcp, stream, lp_tcp_socket_of(stream), tls,
                          listens ? lp_tcp_on_received : lp_tcp_on_answered, peer,
                          listens ? LP_STRANGER_FRAME : most_frame) ||
      (channel->tls != NULL && tls == NULL) || (listens && !lp_tcp_outbox_init(&peer->outbox, &peer->tcp))) {
    lp_tcp_peer_free(peer);
    return false;
  }
  if (!listens) nng_aio_set_timeout(peer->tcp.send, duration_of(channel->patience.silence_ms));
  pthread_mutex_lock(&channel->mutex);
  bool full = channel->peers.count >= MOST_PEERS;
  if (!full) {
    peer->id = ++channel->last_id;
    lp_vec_push(&channel->peers, peer);
    if (listens) __atomic_fetch_add(&channel->in_state[peer->state], 1, __ATOMIC_RELAXED);
    if (listens) lp_tcp_ask(peer);
  }
  pthread_mutex_unlock(&channel->mutex);
  if (full) lp_tcp_peer_free(peer);
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

static lp_channel *channel_create(const lp_security *security) {
  lp_channel *channel = lp_alloc(sizeof(*channel));
  channel->tls = security->tls;
  channel->gaze.pays = lp_machine_threads() > 1;
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
  if (channel->care != NULL) {
    nng_aio_stop(channel->care);
    nng_aio_free(channel->care);
  }
  for (size_t i = 0; i < channel->peers.count; i++)
    lp_tcp_peer_free(channel->peers.data[i]);
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

static int start_dialing(lp_channel *channel, const lp_endpoint *endpoint, double timeout_ms) {
  char *url = url_of(endpoint->via != NULL ? endpoint->via : endpoint->address);
  int error = nng_stream_dialer_alloc(&channel->dialer, url);
  free(url);
  if (error == 0) error = nng_stream_dialer_set_bool(channel->dialer, NNG_OPT_TCP_NODELAY, true);
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
  lp_channel *channel = channel_create(endpoint->security);
  channel->patience = endpoint->patience;
  double begin = lp_now_ms();
  int error = start_dialing(channel, endpoint, timeout_ms);
  const char *why = nng_strerror(error);
  bool good = error == 0 && (channel->tls == NULL ||
                             lp_tcp_shake_hands(channel->peers.data[0], timeout_ms - (lp_now_ms() - begin), &why));
  *out = good ? channel : NULL;
  if (good) return LP_OK;
  lp_status status = lp_error(diag, LP_LOC_NONE, "cannot reach the cloud at %s: %s", endpoint->address, why);
  if (error == 0 && !lp_tls_distrusts(channel->peers.data[0]->tcp.tls) && !endpoint->security->certified)
    lp_note(diag, LP_LOC_NONE, "a worker with --client-ca wants a certificate of this device: --cert, --cert-key");
  tcp_close(channel);
  return status;
}

static int start_listening(lp_channel *channel, const char *address, int *port) {
  char *url = url_of(address);
  int error = nng_stream_listener_alloc(&channel->listener, url);
  free(url);
  if (error == 0) error = nng_stream_listener_set_bool(channel->listener, NNG_OPT_TCP_NODELAY, true);
  if (error == 0) error = nng_stream_listener_listen(channel->listener);
  if (error == 0) error = nng_stream_listener_get_int(channel->listener, NNG_OPT_TCP_BOUND_PORT, port);
  if (error == 0) error = nng_aio_alloc(&channel->care, lp_tcp_on_care, channel);
  if (error == 0) error = nng_aio_alloc(&channel->connect, on_accepted, channel);
  if (error == 0) nng_stream_listener_accept(channel->listener, channel->connect);
  return error;
}

static lp_status tcp_listen(const char *address, const lp_security *security, lp_channel **out, int *port,
                            lp_diag *diag) {
  lp_channel *channel = channel_create(security);
  int error = start_listening(channel, address, port);
  *out = error == 0 ? channel : NULL;
  if (error == 0) return LP_OK;
  tcp_close(channel);
  return lp_error(diag, LP_LOC_NONE, "cannot listen on %s: %s", address, nng_strerror(error));
}

/* ---- sending and receiving --------------------------------------------------------------------------------------- */

/* Peers are removed by the thread that calls this alone, so the result stays good until its next call. */
static lp_tcp_peer *find_peer(lp_channel *channel, uint32_t id) {
  lp_tcp_peer *found = NULL;
  pthread_mutex_lock(&channel->mutex);
  for (size_t i = 0; i < channel->peers.count; i++)
    if (channel->peers.data[i]->id == id && channel->peers.data[i]->state != LP_TCP_GONE)
      found = channel->peers.data[i];
  pthread_mutex_unlock(&channel->mutex);
  return found;
}

static bool tcp_send(lp_channel *channel, uint32_t id, const void *head, size_t head_size, const void *body,
                     size_t body_size, const char **why) {
  lp_tcp_peer *peer = find_peer(channel, id);
  *why = "the connection closed";
  if (peer == NULL) return false;
  if (channel->listener != NULL) return lp_tcp_outbox_put(&peer->outbox, head, head_size, body, body_size);
  int error = lp_tcp_stream_send(&peer->tcp, head, head_size, body, body_size);
  if (error != 0) lp_tcp_lose(peer); /* a frame was cut: nothing sensible can follow */
  *why = nng_strerror(error);
  return error == 0;
}

static void tcp_permit(lp_channel *channel, uint32_t id, uint64_t bytes) {
  lp_tcp_peer *peer = find_peer(channel, id);
  if (peer != NULL) __atomic_store_n(&peer->tcp.most, bytes, __ATOMIC_RELAXED);
}

/* Its receiving side then tells the listener that it has gone. */
static void tcp_drop(lp_channel *channel, uint32_t id) {
  lp_tcp_peer *peer = find_peer(channel, id);
  if (peer != NULL) lp_tcp_outbox_finish(&peer->outbox);
}

static void tcp_describe(lp_channel *channel, uint32_t id, char out[64]) {
  lp_tcp_peer *peer = find_peer(channel, id);
  nng_sockaddr address = {.s_family = NNG_AF_UNSPEC};
  char host[INET6_ADDRSTRLEN] = "";
  if (peer != NULL) (void)nng_stream_get_addr(peer->tcp.stream, NNG_OPT_REMADDR, &address);
  snprintf(out, 64, "a device");
  if (address.s_family == NNG_AF_INET && inet_ntop(AF_INET, &address.s_in.sa_addr, host, sizeof(host)) != NULL)
    snprintf(out, 64, "%s:%d", host, ntohs(address.s_in.sa_port));
  if (address.s_family == NNG_AF_INET6 && inet_ntop(AF_INET6, address.s_in6.sa_addr, host, sizeof(host)) != NULL)
    snprintf(out, 64, "[%s]:%d", host, ntohs(address.s_in6.sa_port));
}

lp_packet lp_tcp_take_frame(lp_tcp_peer *peer) {
  lp_packet packet = {.peer = peer->id};
  uint8_t *frame = lp_tcp_stream_take(&peer->tcp, &packet.size);
  packet.data = packet.handle = frame;
  return packet;
}

static lp_recv_outcome tcp_receive(lp_channel *channel, double timeout_ms, lp_packet *out, const char **why) {
  *out = (lp_packet){0};
  *why = "";
  if (channel->listener == NULL) return lp_tcp_receive_from_only(channel->peers.data[0], timeout_ms, out, why);
  return lp_tcp_receive_from_any(channel, timeout_ms, out);
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
