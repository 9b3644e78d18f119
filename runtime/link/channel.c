/* Peers, and serving their sockets (channel.h). */
#include "runtime/link/channel.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cores.h"
#include "runtime/link/address.h"
#include "runtime/link/security.h"

/* A stranger is a connection that is not permitted yet. */
enum { MOST_PEERS = 1024, MOST_STRANGERS = 256, MOST_STRANGERS_OF_HOST = 64, MOST_EVENTS = 64 };
static const double stranger_ms = 10000; /* for TLS and the handshake above it, after which the peer is permitted */
static const double send_ms = 30000;     /* a peer that reads nothing of its queue for this long is given up */
static const double full_ms = 100;       /* pause before connections are accepted again after descriptors ran out */
static const double tell_ms = 10000;     /* pause between two reports that descriptors ran out */
static const double care_ms = 250;       /* the attendant takes over when the caller computes for this long */

lp_channel *lp_channel_create(const lp_security *security) {
  lp_channel *channel = lp_alloc(sizeof *channel);
  channel->tls = security->tls;
  channel->socket.fd = channel->wake = channel->nudge = -1;
  channel->epoll = epoll_create1(EPOLL_CLOEXEC);
  channel->due_ms = INFINITY;
  channel->left_ms = channel->told_ms = -INFINITY; /* the attendant serves the sockets until the first receive */
  channel->many_cores = lp_machine_threads() > 1;
  pthread_mutex_init(&channel->mutex, NULL);
  return channel;
}

bool lp_channel_is_device(const lp_channel *channel) {
  return channel->socket.fd < 0;
}

/* ---- peers ------------------------------------------------------------------------------------------------------- */

void lp_channel_wake_attendant(lp_channel *channel) {
  /* it fails only when the counter is full, and then the attendant wakes anyway */
  (void)eventfd_write(channel->wake, 1);
}

static void note_deadline(lp_channel *channel, double due_ms) {
  if (due_ms >= channel->due_ms) return;
  channel->due_ms = due_ms;
  if (channel->attending) lp_channel_wake_attendant(channel);
}

/* The time at which the connection of a listener's peer is closed, unless it makes progress. */
static double deadline_of(const lp_peer *of) {
  double due = INFINITY;
  if (!of->permitted && !of->news) due = of->since_ms + stranger_ms;
  return of->conn.queue.size > 0 ? fmin(due, of->conn.moved_ms + send_ms) : due;
}

/* Sets the events that epoll reports: `input` is EPOLLIN or 0. */
static void watch(lp_channel *channel, lp_peer *of, uint32_t input) {
  uint32_t events = input | (lp_conn_wants_room(&of->conn) ? EPOLLOUT : 0u);
  if (of->conn.fd < 0 || events == of->events) return;
  int change = of->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  if (epoll_ctl(channel->epoll, change, of->conn.fd, &(struct epoll_event){events, {.ptr = of}}) == 0)
    of->events = events;
}

static void add_news(lp_channel *channel, lp_peer *of) {
  if (of->news) return;
  of->news = true;
  of->queued_ms = lp_now_ms();
  lp_vec_push(&channel->news, of);
}

void lp_channel_lose(lp_channel *channel, lp_peer *of, const char *why) {
  lp_conn_close(&of->conn, why ? why : "the connection closed"); /* closing the socket removes it from the epoll set */
  of->events = 0;
  add_news(channel, of);
}

void lp_channel_forget(lp_channel *channel, lp_peer *of) {
  size_t last = --channel->peers.count;
  for (size_t i = 0; i < last; i++)
    if (channel->peers.data[i] == of) channel->peers.data[i] = channel->peers.data[last];
  lp_conn_close(&of->conn, "");
  lp_conn_release(&of->conn);
  free(of);
}

bool lp_channel_put(lp_channel *channel, lp_peer *to, const void *head, size_t head_size, const void *body,
                    size_t body_size) {
  bool waited = to->conn.queue.size > 0;
  double wait_ms = lp_channel_is_device(channel) ? channel->patience.silence_ms : 0;
  bool good = lp_conn_send(&to->conn, head, head_size, body, body_size, wait_ms), queued = to->conn.queue.size > 0;
  if (to->conn.broken || (queued && lp_channel_is_device(channel)))
    lp_channel_lose(channel, to, "it takes no more bytes");
  if (to->conn.broken || waited || !queued) return good && !to->conn.broken;
  watch(channel, to, to->events & EPOLLIN);
  note_deadline(channel, deadline_of(to));
  if (!channel->receiving && !channel->attending) lp_channel_wake_attendant(channel);
  return true;
}

/* A listener answers each request for a sign of life, unless it has bytes to send anyway. */
void lp_channel_read(lp_channel *channel, lp_peer *of, bool socket) {
  lp_conn_progress progress = lp_conn_read(&of->conn, socket);
  bool asked = of->conn.asked && !lp_channel_is_device(channel) && of->conn.queue.size == 0;
  of->conn.asked = false;
  if (progress == LP_CONN_FRAME || progress == LP_CONN_LONG) add_news(channel, of);
  if (progress == LP_CONN_BROKEN)
    lp_channel_lose(channel, of, NULL);
  else if (asked)
    (void)lp_channel_put(channel, of, NULL, 0, NULL, 0);
}

lp_peer *lp_channel_add(lp_channel *channel, int fd, const lp_sockaddr *at) {
  lp_peer *made = lp_alloc(sizeof *made);
  made->id = ++channel->last_id;
  made->since_ms = lp_now_ms();
  made->at = *at;
  lp_vec_push(&channel->peers, made);
  if (!lp_conn_open(&made->conn, fd, channel->tls, !lp_channel_is_device(channel))) add_news(channel, made);
  made->conn.most = LP_STRANGER_FRAME;
  watch(channel, made, EPOLLIN);
  return made;
}

void lp_channel_resume(lp_channel *channel, lp_peer *of) {
  of->since_ms += lp_now_ms() - of->queued_ms;
  lp_channel_read(channel, of, false);
  watch(channel, of, of->finishing ? 0u : EPOLLIN);
  note_deadline(channel, deadline_of(of));
}

/* ---- connections that come --------------------------------------------------------------------------------------- */

/* Tells whether there is room for one more stranger when `most` are allowed (from one host, if `host` is given). If
 * necessary it closes the stranger that has been silent for longest: a device is permitted within a moment, so a
 * stranger that waits for long sends nothing. */
static bool make_room(lp_channel *channel, uint64_t host, size_t most) {
  size_t count = 0;
  lp_peer *oldest = NULL;
  LP_FOR_VEC_REFS(lp_peer, of, &channel->peers) {
    if (of->permitted || (host != 0 && lp_address_host((const void *)&of->at.at) != host)) continue;
    if (!of->news && (!oldest || of->id < oldest->id)) oldest = of;
    count++;
  }
  if (count >= most && oldest) lp_channel_forget(channel, oldest);
  return count < most || oldest;
}

/* Called when no descriptor is left for a connection. True: a stranger was closed and its descriptor is free. */
static bool free_descriptor(lp_channel *channel) {
  double now = lp_now_ms();
  channel->tells |= now - channel->told_ms >= tell_ms;
  channel->full = !make_room(channel, 0, 0);
  if (channel->full) note_deadline(channel, now + full_ms);
  return !channel->full;
}

static void take_connections(lp_channel *channel) {
  lp_sockaddr at;
  channel->full = false;
  for (;;) {
    int fd = lp_socket_accept(&channel->socket, &at);
    bool scarce = fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
    if (scarce && free_descriptor(channel)) continue;
    if (fd < 0) return;
    if (make_room(channel, lp_address_host((const void *)&at.at), MOST_STRANGERS_OF_HOST) &&
        make_room(channel, 0, MOST_STRANGERS) && channel->peers.count < MOST_PEERS)
      note_deadline(channel, deadline_of(lp_channel_add(channel, fd, &at)));
    else
      close(fd);
  }
}

/* ---- serving the sockets ----------------------------------------------------------------------------------------- */

/* A peer with a complete frame stays in the epoll set until more bytes come, since the frame is usually taken before
 * that. */
static void serve_peer(lp_channel *channel, lp_peer *of, uint32_t events) {
  bool reads = !of->news && !of->finishing;
  channel->heard_ms = lp_now_ms();
  if (of->conn.fd < 0) return;
  if ((events & EPOLLOUT) != 0 && !lp_conn_flush(&of->conn)) lp_channel_lose(channel, of, NULL);
  if (reads && of->conn.fd >= 0) lp_channel_read(channel, of, true);
  if (of->finishing && of->conn.queue.size == 0) lp_channel_lose(channel, of, NULL);
  watch(channel, of, reads ? EPOLLIN : 0u);
}

/* Accepts connections last, since that may close a peer which has an event in this round. */
static void serve_events(lp_channel *channel, const struct epoll_event *event, int count) {
  bool connections = false;
  eventfd_t nudges;
  for (int i = 0; i < count; i++) {
    if (event[i].data.ptr == channel) {
      (void)eventfd_read(channel->nudge, &nudges);
      channel->nudged = true;
    } else if (event[i].data.ptr)
      serve_peer(channel, event[i].data.ptr, event[i].events);
    else
      connections = true;
  }
  if (connections) take_connections(channel);
}

/* While a device waits it requests signs of life, and it gives up a worker that is silent. */
static void keep_alive(lp_channel *channel, lp_peer *worker, double now) {
  const lp_patience *patience = &channel->patience;
  if (worker->conn.fd < 0) return;
  if (now - channel->heard_ms >= patience->silence_ms) {
    lp_channel_lose(channel, worker, "it gives no sign of life");
  } else if (now - fmax(channel->heard_ms, channel->asked_ms) >= patience->beat_ms) {
    channel->asked_ms = now;
    (void)lp_channel_put(channel, worker, NULL, 0, NULL, 0);
  }
  channel->due_ms =
      fmin(channel->heard_ms + patience->silence_ms, fmax(channel->heard_ms, channel->asked_ms) + patience->beat_ms);
}

/* Closes the connections that have passed their deadline. */
static void meet_deadlines(lp_channel *channel) {
  double now = lp_now_ms();
  if (now < channel->due_ms) return;
  if (lp_channel_is_device(channel)) {
    keep_alive(channel, channel->peers.data[0], now);
    return;
  }
  bool full = channel->full;
  channel->due_ms = INFINITY;
  LP_FOR_VEC_REFS(lp_peer, of, &channel->peers) {
    if (deadline_of(of) <= now) lp_channel_lose(channel, of, "it sent nothing in time");
    channel->due_ms = fmin(channel->due_ms, deadline_of(of));
  }
  if (full) take_connections(channel);
}

/* The time for which the attendant sleeps. It depends on whether the caller is in receive. */
static double attend_for(lp_channel *channel) {
  double now = lp_now_ms(), care = care_ms - (now - channel->left_ms);
  channel->sleeping = channel->receiving;
  for (size_t i = 0; i < channel->peers.count && !channel->receiving && care > 0; i++)
    if (channel->peers.data[i]->conn.queue.size > 0) care = 0;
  channel->attending = !channel->receiving && care <= 0;
  if (channel->receiving) return INFINITY;
  return channel->attending ? channel->due_ms - now : care;
}

void *lp_channel_attend(void *user) {
  lp_channel *channel = user;
  struct epoll_event event[MOST_EVENTS];
  eventfd_t woken;
  pthread_mutex_lock(&channel->mutex);
  while (!channel->closing) {
    int limit = lp_socket_milliseconds(attend_for(channel));
    struct pollfd wait[] = {{.fd = channel->wake, .events = POLLIN}, {.fd = channel->epoll, .events = POLLIN}};
    nfds_t count = channel->attending ? 2 : 1;
    pthread_mutex_unlock(&channel->mutex);
    if (poll(wait, count, limit) > 0 && wait[0].revents != 0) (void)eventfd_read(channel->wake, &woken);
    pthread_mutex_lock(&channel->mutex);
    if (!channel->attending || channel->closing) continue;
    /* Holds the mutex, so that no peer is freed between epoll's report and its use. */
    serve_events(channel, event, epoll_wait(channel->epoll, event, MOST_EVENTS, 0));
    meet_deadlines(channel);
  }
  pthread_mutex_unlock(&channel->mutex);
  return NULL;
}

bool lp_channel_serve(lp_channel *channel, double until) {
  struct epoll_event event[MOST_EVENTS];
  bool *brief = channel->many_cores ? &channel->brief : NULL;
  double left = fmin(channel->due_ms, until) - lp_now_ms();
  pthread_mutex_unlock(&channel->mutex);
  int count = lp_socket_poll(channel->epoll, event, MOST_EVENTS, left, brief);
  pthread_mutex_lock(&channel->mutex);
  double now = lp_now_ms();
  serve_events(channel, event, count);
  meet_deadlines(channel);
  return now < until && !channel->nudged && (count >= 0 || lp_channel_is_device(channel));
}
