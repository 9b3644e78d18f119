/* What a device receives. It has one peer, and waits for it by itself: the waiting thread polls the socket, reads when there is something, and
 * opens it where it is in TLS. Where the socket is not known a receive is asked for without a limit and stays asked for. */
#include <errno.h>

#include "base/clock.h"
#include "runtime/link/link.h"
#include "runtime/link/tcp_channel.h"
#include "runtime/runtime.h"

void lp_tcp_lose(lp_tcp_peer *peer) {
  (void)lp_tcp_stream_flush(&peer->tcp); /* why, in TLS */
  nng_stream_close(peer->tcp.stream);
  peer->state = LP_TCP_GONE;
}

/* Nothing came for a while: asks for a sign of life, or gives up. */
static bool is_alive(lp_tcp_peer *peer, const char **why) {
  const lp_patience *patience = &peer->channel->patience;
  double now = lp_now_ms();
  *why = "it gives no sign of life";
  if (now - peer->heard_ms >= patience->silence_ms) return false;
  if (now - peer->beaten_ms < patience->beat_ms) return true;
  peer->beaten_ms = now;
  *why = "the connection closed";
  return lp_tcp_stream_send(&peer->tcp, NULL, 0, NULL, 0) == 0;
}

/* ---- through NNG --------------------------------------------------------------------------------------------------------- */

void lp_tcp_on_answered(void *user) {
  lp_tcp_peer *peer = user;
  pthread_mutex_lock(&peer->channel->mutex);
  __atomic_store_n(&peer->received, true, __ATOMIC_RELEASE);
  pthread_cond_signal(&peer->channel->news);
  pthread_mutex_unlock(&peer->channel->mutex);
}

static bool was_received(void *user) {
  const lp_tcp_peer *peer = user;
  return __atomic_load_n(&peer->received, __ATOMIC_ACQUIRE);
}

static bool sleep_until_received(lp_tcp_peer *peer, double limit_ms) {
  lp_channel *channel = peer->channel;
  struct timespec until = lp_tcp_deadline(limit_ms);
  pthread_mutex_lock(&channel->mutex);
  for (int waited = 0; !was_received(peer) && waited != ETIMEDOUT;)
    waited = pthread_cond_timedwait(&channel->news, &channel->mutex, &until);
  pthread_mutex_unlock(&channel->mutex);
  return was_received(peer);
}

/* Waits for the receive that is asked for, or else asks for one; false: nothing came in time. */
static bool await_receive(lp_tcp_peer *peer, double limit_ms) {
  if (!peer->asked) {
    __atomic_store_n(&peer->received, false, __ATOMIC_RELAXED);
    peer->asked = true;
    lp_tcp_stream_ask(&peer->tcp);
  }
  if (!lp_tcp_gaze_at(&peer->channel->gaze, limit_ms, was_received, peer) && !sleep_until_received(peer, limit_ms))
    return false;
  peer->asked = false;
  return true;
}

/* ---- at the socket ------------------------------------------------------------------------------------------------------- */

static bool is_readable(void *user) {
  const lp_tcp_peer *peer = user;
  return lp_tcp_is_readable(peer->tcp.socket, 0);
}

static bool await_bytes(lp_tcp_peer *peer, double limit_ms) {
  if (peer->tcp.socket < 0) return await_receive(peer, limit_ms);
  return lp_tcp_gaze_at(&peer->channel->gaze, limit_ms, is_readable, peer) ||
         lp_tcp_is_readable(peer->tcp.socket, limit_ms);
}

/* ---- either -------------------------------------------------------------------------------------------------------------- */

/* After await_bytes. */
static lp_tcp_progress read_bytes(lp_tcp_peer *peer, const char **why) {
  lp_tcp_stream *tcp = &peer->tcp;
  lp_tcp_progress progress = tcp->socket < 0 ? lp_tcp_stream_received(tcp) : lp_tcp_stream_read(tcp);
  *why = "it closed the connection";
  if (progress == LP_TCP_BROKEN && tcp->tls != NULL && lp_tls_why(tcp->tls)[0] != '\0') *why = lp_tls_why(tcp->tls);
  return progress;
}

bool lp_tcp_shake_hands(lp_tcp_peer *peer, double timeout_ms, const char **why) {
  double until = lp_now_ms() + timeout_ms;
  lp_tcp_progress progress = lp_tcp_stream_absorb(&peer->tcp);
  for (;;) {
    int error = lp_tcp_stream_flush(&peer->tcp);
    if (progress == LP_TCP_BROKEN) return false;
    *why = nng_strerror(error);
    if (error != 0) return false;
    if (lp_tls_is_shaken(peer->tcp.tls)) return true;
    double left = until - lp_now_ms();
    *why = "no answer to TLS in time";
    if (left <= 0) return false;
    if (await_bytes(peer, left)) progress = read_bytes(peer, why);
  }
}

/* Waits for bytes until `until`. */
static lp_tcp_progress wait_for_bytes(lp_tcp_peer *peer, double until, bool *over, const char **why) {
  double begin = lp_now_ms(), left = until - begin, beat = peer->channel->patience.beat_ms;
  if (await_bytes(peer, left < beat ? left : beat)) {
    peer->heard_ms = lp_now_ms();
    lp_tcp_gaze_note(&peer->channel->gaze, peer->heard_ms - begin);
    return read_bytes(peer, why);
  }
  if (!is_alive(peer, why)) return LP_TCP_BROKEN;
  *over = lp_now_ms() >= until;
  return LP_TCP_MORE;
}

lp_recv_outcome lp_tcp_receive_from_only(lp_tcp_peer *peer, double timeout_ms, lp_packet *out, const char **why) {
  bool over = false;
  double now = lp_now_ms();
  *why = "the connection closed";
  if (peer->state == LP_TCP_GONE) return LP_RECV_GONE;
  if (!peer->awaited) peer->heard_ms = now;
  peer->awaited = true;
  lp_tcp_progress progress = lp_tcp_stream_absorb(&peer->tcp);
  while (progress == LP_TCP_MORE && !over)
    progress = wait_for_bytes(peer, now + timeout_ms, &over, why);
  if (progress == LP_TCP_MORE) return LP_RECV_TIMEOUT;
  if (progress == LP_TCP_BROKEN || progress == LP_TCP_LONG) {
    lp_tcp_lose(peer);
    return LP_RECV_GONE;
  }
  peer->awaited = false;
  *out = lp_tcp_take_frame(peer);
  return LP_RECV_FRAME;
}
