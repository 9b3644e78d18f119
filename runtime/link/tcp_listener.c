/* What a worker receives. It has many peers and one thread, which takes their frames in turn; no peer is read from while a frame of its own
 * waits to be taken.
 *
 * A peer whose frame was taken is idle at first. A thread that waits looks at the sockets of idle peers and reads from them itself. Before it
 * sleeps, and when it computes for so long that signs of life are due, it asks NNG to receive: NNG's threads then fill a frame. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "runtime/link/link.h"
#include "runtime/link/tcp_channel.h"

enum { CARE_MS = 250, MOST_LOOKED_AT = 64 /* at once; more take longer than it takes to be woken */ };

/* Answers on whatever thread the question came in. */
static void answer_beats(lp_tcp_peer *peer) {
  bool asked = peer->tcp.beats > 0;
  peer->tcp.beats = 0;
  if (asked) lp_tcp_outbox_beat(&peer->outbox);
}

/* With the mutex held. */
static void set_state(lp_tcp_peer *peer, lp_tcp_state state) {
  size_t *count = peer->channel->in_state;
  __atomic_fetch_sub(&count[peer->state], 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&count[state], 1, __ATOMIC_RELEASE);
  peer->state = state;
  if (state == LP_TCP_IDLE) peer->idle_ms = lp_now_ms();
  if (state != LP_TCP_IDLE && state != LP_TCP_ASKED) pthread_cond_signal(&peer->channel->news);
}

void lp_tcp_ask(lp_tcp_peer *peer) {
  set_state(peer, LP_TCP_ASKED);
  if (!lp_tcp_outbox_ask(&peer->outbox)) set_state(peer, LP_TCP_GONE);
}

/* Handshakes of TLS compute for milliseconds: they are for NNG's threads. */
static bool is_known(const lp_tcp_peer *peer) {
  return peer->tcp.tls == NULL || lp_tls_is_shaken(peer->tcp.tls);
}

/* Takes note of what came. `next`: what to do for more: IDLE or ASKED. */
static void note_progress(lp_tcp_peer *peer, lp_tcp_progress progress, lp_tcp_state next) {
  static const lp_tcp_state state[] = {
      [LP_TCP_FRAME] = LP_TCP_READY, [LP_TCP_LONG] = LP_TCP_HELD, [LP_TCP_BROKEN] = LP_TCP_GONE};
  answer_beats(peer);
  lp_tcp_outbox_flush(&peer->outbox);
  bool looks = next == LP_TCP_IDLE && peer->tcp.socket >= 0 && is_known(peer);
  pthread_mutex_lock(&peer->channel->mutex);
  if (progress != LP_TCP_MORE)
    set_state(peer, state[progress]);
  else if (looks)
    set_state(peer, LP_TCP_IDLE);
  else
    lp_tcp_ask(peer);
  pthread_mutex_unlock(&peer->channel->mutex);
}

void lp_tcp_on_received(void *user) {
  lp_tcp_peer *peer = user;
  note_progress(peer, lp_tcp_stream_received(&peer->tcp), LP_TCP_ASKED);
}

/* ---- idle peers ---------------------------------------------------------------------------------------------------------- */

void lp_tcp_on_care(void *user) {
  lp_channel *channel = user;
  if (nng_aio_result(channel->care) != 0) return;
  double now = lp_now_ms();
  bool again = false;
  pthread_mutex_lock(&channel->mutex);
  for (size_t i = 0; i < channel->peers.count; i++) {
    lp_tcp_peer *peer = channel->peers.data[i];
    if (peer->state != LP_TCP_IDLE) continue;
    if (now - peer->idle_ms >= (double)CARE_MS)
      lp_tcp_ask(peer);
    else
      again = true;
  }
  channel->caring = again;
  pthread_mutex_unlock(&channel->mutex);
  if (again) nng_sleep_aio(CARE_MS, channel->care);
}

static void begin_care(lp_tcp_peer *peer) {
  lp_channel *channel = peer->channel;
  pthread_mutex_lock(&channel->mutex);
  bool begin = !channel->caring && peer->state == LP_TCP_IDLE;
  channel->caring = channel->caring || begin;
  pthread_mutex_unlock(&channel->mutex);
  if (begin) nng_sleep_aio(CARE_MS, channel->care);
}

/* With the mutex held. */
static void ask_idle(lp_channel *channel) {
  for (size_t i = 0; i < channel->peers.count; i++)
    if (channel->peers.data[i]->state == LP_TCP_IDLE) lp_tcp_ask(channel->peers.data[i]);
}

/* Takes the idle peers that have sent something from the others' hands. */
static size_t claim_readable(lp_channel *channel, lp_tcp_peer *readable[MOST_LOOKED_AT]) {
  struct pollfd look[MOST_LOOKED_AT];
  nfds_t count = 0;
  size_t found = 0;
  pthread_mutex_lock(&channel->mutex);
  for (size_t i = 0; i < channel->peers.count && count < MOST_LOOKED_AT; i++) {
    lp_tcp_peer *peer = channel->peers.data[(channel->next + i) % channel->peers.count];
    if (peer->state != LP_TCP_IDLE) continue;
    readable[count] = peer;
    look[count++] = (struct pollfd){.fd = peer->tcp.socket, .events = POLLIN};
  }
  if (count > 0 && poll(look, count, 0) > 0)
    for (nfds_t i = 0; i < count; i++) {
      if (look[i].revents == 0) continue;
      bool closed = (look[i].revents & ~POLLIN) != 0;
      set_state(readable[i], closed ? LP_TCP_GONE : LP_TCP_ASKED);
      if (!closed) readable[found++] = readable[i];
    }
  pthread_mutex_unlock(&channel->mutex);
  return found;
}

static size_t count_of(const lp_channel *channel, lp_tcp_state state) {
  return __atomic_load_n(&channel->in_state[state], __ATOMIC_ACQUIRE);
}

/* The mutex need not be held: then it is what was lately. */
static bool has_news(const lp_channel *channel) {
  return count_of(channel, LP_TCP_READY) + count_of(channel, LP_TCP_HELD) + count_of(channel, LP_TCP_GONE) > 0;
}

/* Reads what idle peers have sent. True: there are news of a peer. */
static bool look_around(void *user) {
  lp_channel *channel = user;
  lp_tcp_peer *readable[MOST_LOOKED_AT];
  size_t count = count_of(channel, LP_TCP_IDLE) > 0 ? claim_readable(channel, readable) : 0;
  for (size_t i = 0; i < count; i++)
    note_progress(readable[i], lp_tcp_stream_read(&readable[i]->tcp), LP_TCP_IDLE);
  return has_news(channel);
}

/* ---- taking turns -------------------------------------------------------------------------------------------------------- */

/* With the mutex held: a peer with a complete frame, or else one that has gone. */
static lp_tcp_peer *find_news(lp_channel *channel) {
  size_t count = channel->peers.count;
  lp_tcp_peer *gone = NULL;
  for (size_t i = 0; i < count; i++) {
    size_t index = (channel->next + i) % count;
    lp_tcp_peer *peer = channel->peers.data[index];
    if (peer->state == LP_TCP_GONE) gone = peer;
    if (peer->state != LP_TCP_READY) continue;
    channel->next = (index + 1) % count;
    return peer;
  }
  return gone;
}

static void remove_peer(lp_channel *channel, const lp_tcp_peer *peer) {
  size_t count = channel->peers.count;
  for (size_t i = 0; i < count; i++)
    if (channel->peers.data[i] == peer) channel->peers.data[i] = channel->peers.data[count - 1];
  channel->peers.count = count - 1;
  __atomic_fetch_sub(&channel->in_state[peer->state], 1, __ATOMIC_RELAXED);
  channel->next = 0;
}

/* All that came before their long frames has been dealt with: they may go on now, or never. */
static void judge_held(lp_channel *channel) {
  for (size_t i = 0;; i++) {
    pthread_mutex_lock(&channel->mutex);
    lp_tcp_peer *peer = i < channel->peers.count ? channel->peers.data[i] : NULL;
    bool held = peer != NULL && peer->state == LP_TCP_HELD;
    pthread_mutex_unlock(&channel->mutex);
    if (peer == NULL) return;
    if (!held) continue;
    lp_tcp_progress progress = lp_tcp_stream_absorb(&peer->tcp);
    note_progress(peer, progress == LP_TCP_LONG ? LP_TCP_BROKEN : progress, LP_TCP_IDLE);
  }
}

/* Sleeps until there are news of a peer; the one to deal with, with a state of READY or GONE. NULL: time is over, or one is held. */
static lp_tcp_peer *await_news(lp_channel *channel, double timeout_ms) {
  struct timespec until = lp_tcp_deadline(timeout_ms);
  pthread_mutex_lock(&channel->mutex);
  /* A wait that is over before it begins would still take the kernel's timer slack, 50 us and more. */
  int waited = timeout_ms > 0 ? 0 : ETIMEDOUT;
  if (waited == 0 && !has_news(channel)) ask_idle(channel);
  while (!has_news(channel) && waited != ETIMEDOUT)
    waited = pthread_cond_timedwait(&channel->news, &channel->mutex, &until);
  lp_tcp_peer *peer = find_news(channel);
  if (peer != NULL && peer->state == LP_TCP_GONE) remove_peer(channel, peer);
  pthread_mutex_unlock(&channel->mutex);
  return peer;
}

lp_recv_outcome lp_tcp_receive_from_any(lp_channel *channel, double timeout_ms, lp_packet *out) {
  judge_held(channel);
  double begin = lp_now_ms();
  if (!look_around(channel)) (void)lp_tcp_gaze_at(&channel->gaze, timeout_ms, look_around, channel);
  lp_tcp_peer *peer = await_news(channel, timeout_ms);
  if (timeout_ms > 0) lp_tcp_gaze_note(&channel->gaze, lp_now_ms() - begin);
  if (peer == NULL) return LP_RECV_TIMEOUT;
  if (peer->state == LP_TCP_GONE) {
    out->peer = peer->id;
    lp_tcp_peer_free(peer);
    return LP_RECV_GONE;
  }
  *out = lp_tcp_take_frame(peer);
  note_progress(peer, lp_tcp_stream_absorb(&peer->tcp), LP_TCP_IDLE);
  begin_care(peer);
  return LP_RECV_FRAME;
}
