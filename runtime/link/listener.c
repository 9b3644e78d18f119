/* A worker's listener (listener.h). One mutex guards all of it; the two threads that serve the sockets, the caller's
 * and the attendant, hold it but while they sleep. Frames of one peer are taken one by one: no peer is read from while
 * a frame of its own waits. */
#include "runtime/link/listener.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cores.h"
#include "runtime/link/outbox.h"
#include "runtime/link/sockaddr.h"
#include "runtime/link/socket.h"

enum { MOST_PEERS = 1024, MOST_EVENTS = 64 };
static const double stranger_ms = 10000; /* for TLS and the handshake above it, which ends with a permission */
static const double send_ms = 30000;     /* a peer that takes none of what waits for it is lost after so long */
static const double full_ms = 100;       /* until connections are taken again when there were no descriptors for them */
static const double care_ms = 250;       /* the caller computes for so long before the attendant takes over */
static const double close_ms = 200;      /* for what is still queued at the end */

typedef enum {
  PEER_OPEN,  /* its bytes are read as they come */
  PEER_READY, /* a frame is whole */
  PEER_HELD,  /* its next frame is too long, unless what it sent before brings it a permission */
  PEER_GONE   /* the caller is still to be told */
} peer_state;

typedef struct {
  uint32_t id, events; /* `events` that epoll reports; 0: none, not even an end */
  peer_state state;
  bool permitted, finishing;
  double waits_ms; /* since when it must say something to be permitted */
  double ready_ms; /* since when its frame waits for the caller: that is not its fault */
  lp_stream stream;
  lp_frame_reader reader;
  lp_outbox outbox;
} peer;

struct lp_listener {
  struct ssl_ctx_st *tls; /* borrowed; NULL: plain */
  lp_socket_listener socket;
  int epoll, wake; /* `wake`: an eventfd for the attendant */
  lp_spin spin;    /* of the caller */
  pthread_t attendant;
  bool started;
  pthread_mutex_t mutex;
  /* Under the mutex: */
  LP_VEC(peer *) peers;
  LP_VEC(peer *) news; /* those that are READY or GONE, in the order of their turns */
  uint32_t last_id;
  size_t held;    /* peers that are HELD */
  bool full;      /* connections wait to be taken */
  double due_ms;  /* no deadline is before this */
  bool receiving; /* the caller serves the sockets */
  bool attending; /* the attendant does */
  bool sleeping;  /* the attendant sleeps until it is woken */
  bool closing;
  double left_ms; /* when the caller left receive */
};

/* ---- the attendant's sleep --------------------------------------------------------------------------------------- */

static void wake_attendant(lp_listener *listener) {
  uint64_t one = 1;
  ssize_t done = write(listener->wake, &one, sizeof one); /* it fails only where it was woken often enough */
  (void)done;
}

static void note_deadline(lp_listener *listener, double due_ms) {
  if (due_ms >= listener->due_ms) return;
  listener->due_ms = due_ms;
  if (listener->attending) wake_attendant(listener);
}

/* ---- states of a peer -------------------------------------------------------------------------------------------- */

/* Tells epoll what to report. Reports of input are asked for too late rather than too often: `exact` takes them
 * back. */
static void watch(lp_listener *listener, peer *of, bool exact) {
  bool reads = of->state == PEER_OPEN && !of->finishing, was = (of->events & EPOLLIN) != 0;
  bool writes = of->outbox.queue.count > 0 || lp_stream_wants_room(&of->stream);
  uint32_t events = (reads || (was && !exact) ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u);
  if (of->stream.fd < 0 || events == of->events) return;
  int change = of->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  if (epoll_ctl(listener->epoll, change, of->stream.fd, &(struct epoll_event){events, {.ptr = of}}) == 0)
    of->events = events;
}

static void set_state(lp_listener *listener, peer *of, peer_state state) {
  if (of->state == PEER_HELD) listener->held--;
  if (state == PEER_HELD) listener->held++;
  if (state == PEER_READY || state == PEER_GONE) lp_vec_push(&listener->news, of);
  if (state == PEER_READY || state == PEER_HELD) of->ready_ms = lp_now_ms();
  of->state = state;
}

/* Closes the connection. A frame that is whole can still be taken. */
static void lose(lp_listener *listener, peer *of) {
  lp_stream_close(&of->stream); /* which takes it out of the epoll set */
  lp_outbox_free(&of->outbox);
  of->events = 0;
  if (of->state == PEER_OPEN || of->state == PEER_HELD) set_state(listener, of, PEER_GONE);
}

static double deadline_of(const peer *of) {
  double due = INFINITY;
  if (!of->permitted && of->state == PEER_OPEN) due = of->waits_ms + stranger_ms;
  if (of->outbox.queue.count > 0 && of->outbox.moved_ms + send_ms < due) due = of->outbox.moved_ms + send_ms;
  return due;
}

static bool put(lp_listener *listener, peer *to, const void *head, size_t head_size, const void *body,
                size_t body_size) {
  lp_frame_parts frame;
  lp_frame_split(&frame, head, head_size, body, body_size);
  bool waited = to->outbox.queue.count > 0, good = lp_outbox_put(&to->outbox, &to->stream, &frame);
  if (to->stream.broken) lose(listener, to);
  if (!good || waited || to->outbox.queue.count == 0) return good;
  watch(listener, to, false);
  note_deadline(listener, deadline_of(to));
  if (!listener->receiving && !listener->attending) wake_attendant(listener);
  return true;
}

/* Answers questions for signs of life; what is on its way already is one. */
static void answer_beats(lp_listener *listener, peer *of) {
  bool asked = of->reader.beats > 0;
  of->reader.beats = 0;
  if (asked && of->outbox.queue.count == 0 && !of->finishing) (void)put(listener, of, NULL, 0, NULL, 0);
}

/* Goes on with an open peer: uses what came, and what `reads` reads of the socket bring. */
static void read_on(lp_listener *listener, peer *of, unsigned reads) {
  lp_frame_progress progress = lp_frame_read(&of->reader, &of->stream, reads);
  if (progress == LP_FRAME_WHOLE) set_state(listener, of, PEER_READY);
  if (progress == LP_FRAME_LONG) set_state(listener, of, PEER_HELD);
  answer_beats(listener, of);
  if (progress == LP_FRAME_BROKEN) lose(listener, of);
}

static void take_connections(lp_listener *listener) {
  for (;;) {
    int fd = lp_socket_accept(&listener->socket);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
      listener->full = true;
      (void)epoll_ctl(listener->epoll, EPOLL_CTL_DEL, listener->socket.fd, NULL);
      note_deadline(listener, lp_now_ms() + full_ms);
    }
    if (fd < 0) return;
    peer *made = lp_alloc(sizeof *made);
    if (!lp_stream_open(&made->stream, fd, listener->tls, true) || listener->peers.count >= MOST_PEERS) {
      lp_stream_close(&made->stream);
      free(made);
      continue;
    }
    made->id = ++listener->last_id;
    made->reader.most = LP_STRANGER_FRAME;
    made->waits_ms = lp_now_ms();
    lp_vec_push(&listener->peers, made);
    watch(listener, made, true);
    note_deadline(listener, deadline_of(made));
  }
}

/* ---- serving the sockets ----------------------------------------------------------------------------------------- */

static void serve_peer(lp_listener *listener, peer *of, uint32_t events) {
  if (of->stream.fd < 0) return;
  if ((events & EPOLLOUT) != 0 && !lp_outbox_flush(&of->outbox, &of->stream)) lose(listener, of);
  if (of->state == PEER_OPEN && !of->finishing) read_on(listener, of, 1);
  if (of->finishing && of->outbox.queue.count == 0) lose(listener, of);
  watch(listener, of, true);
}

static void serve_events(lp_listener *listener, const struct epoll_event *event, int count) {
  for (int i = 0; i < count; i++) {
    if (!event[i].data.ptr)
      take_connections(listener);
    else
      serve_peer(listener, event[i].data.ptr, event[i].events);
  }
}

static void listen_again(lp_listener *listener) {
  struct epoll_event event = {EPOLLIN, {.ptr = NULL}};
  listener->full = epoll_ctl(listener->epoll, EPOLL_CTL_ADD, listener->socket.fd, &event) != 0;
}

/* Ends connections whose time is over. */
static void meet_deadlines(lp_listener *listener) {
  double now = lp_now_ms();
  if (now < listener->due_ms) return;
  if (listener->full) listen_again(listener);
  listener->due_ms = INFINITY;
  for (size_t i = 0; i < listener->peers.count; i++) {
    peer *of = listener->peers.data[i];
    if (deadline_of(of) <= now) lose(listener, of);
    if (deadline_of(of) < listener->due_ms) listener->due_ms = deadline_of(of);
  }
}

/* For how long the attendant sleeps, by what the caller does. */
static double attend_for(lp_listener *listener) {
  double now = lp_now_ms(), care = care_ms - (now - listener->left_ms);
  listener->sleeping = listener->receiving;
  for (size_t i = 0; i < listener->peers.count && !listener->receiving && care > 0; i++)
    if (listener->peers.data[i]->outbox.queue.count > 0) care = 0;
  listener->attending = !listener->receiving && care <= 0;
  if (listener->receiving) return INFINITY;
  return listener->attending ? listener->due_ms - now : care;
}

static void *attend(void *user) {
  lp_listener *listener = user;
  struct epoll_event event[MOST_EVENTS];
  uint64_t woken;
  pthread_mutex_lock(&listener->mutex);
  while (!listener->closing) {
    int limit = lp_socket_milliseconds(attend_for(listener));
    struct pollfd wait[] = {{.fd = listener->wake, .events = POLLIN}, {.fd = listener->epoll, .events = POLLIN}};
    nfds_t count = listener->attending ? 2 : 1;
    pthread_mutex_unlock(&listener->mutex);
    (void)poll(wait, count, limit);
    if (wait[0].revents != 0 && read(listener->wake, &woken, sizeof woken) < 0) wait[0].revents = 0;
    pthread_mutex_lock(&listener->mutex);
    if (!listener->attending || listener->closing) continue;
    /* With the mutex held, so that no peer is freed between the report and its use. */
    serve_events(listener, event, epoll_wait(listener->epoll, event, MOST_EVENTS, 0));
    meet_deadlines(listener);
  }
  pthread_mutex_unlock(&listener->mutex);
  return NULL;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static bool open_sockets(lp_listener *listener, const char *address, const char **why) {
  *why = "no descriptors are left";
  listener->epoll = epoll_create1(EPOLL_CLOEXEC);
  listener->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (listener->epoll < 0 || listener->wake < 0 || !lp_socket_listen(address, &listener->socket, why)) return false;
  listen_again(listener);
  listener->started = !listener->full && pthread_create(&listener->attendant, NULL, attend, listener) == 0;
  *why = "no thread for it";
  return listener->started;
}

lp_status lp_listener_create(const char *address, const lp_security *security, lp_listener **out, int *port,
                             lp_diag *diag) {
  lp_listener *listener = lp_alloc(sizeof *listener);
  const char *why = "";
  listener->tls = security->tls;
  listener->socket.fd = -1;
  listener->due_ms = INFINITY;
  listener->left_ms = -care_ms; /* until the first receive the attendant serves the sockets */
  listener->spin.pays = lp_machine_threads() > 1;
  pthread_mutex_init(&listener->mutex, NULL);
  *out = listener;
  if (open_sockets(listener, address, &why)) {
    *port = listener->socket.port;
    return LP_OK;
  }
  *out = NULL;
  lp_listener_free(listener);
  return lp_error(diag, LP_LOC_NONE, "cannot listen on %s: %s", address, why);
}

static void peer_free(peer *of) {
  lp_stream_close(&of->stream);
  lp_outbox_free(&of->outbox);
  lp_frame_reader_free(&of->reader);
  free(of);
}

static void stop_attendant(lp_listener *listener) {
  if (!listener->started) return;
  pthread_mutex_lock(&listener->mutex);
  listener->closing = true;
  wake_attendant(listener);
  pthread_mutex_unlock(&listener->mutex);
  pthread_join(listener->attendant, NULL);
}

void lp_listener_free(lp_listener *listener) {
  if (!listener) return;
  stop_attendant(listener);
  lp_socket_listener_close(&listener->socket);
  double until = lp_now_ms() + close_ms;
  for (size_t i = 0; i < listener->peers.count; i++) {
    peer *of = listener->peers.data[i];
    while (lp_outbox_flush(&of->outbox, &of->stream) && of->outbox.queue.count > 0 && lp_now_ms() < until)
      (void)lp_socket_wait(of->stream.fd, POLLOUT, until - lp_now_ms());
    peer_free(of);
  }
  lp_vec_free(&listener->peers);
  lp_vec_free(&listener->news);
  if (listener->epoll >= 0) close(listener->epoll);
  if (listener->wake >= 0) close(listener->wake);
  pthread_mutex_destroy(&listener->mutex);
  free(listener);
}

/* ---- the caller: peers ------------------------------------------------------------------------------------------- */

/* Locks the listener; the peer, or NULL. Only the caller frees peers. */
static peer *lock_peer(lp_listener *listener, uint32_t id) {
  pthread_mutex_lock(&listener->mutex);
  for (size_t i = 0; i < listener->peers.count; i++)
    if (listener->peers.data[i]->id == id && listener->peers.data[i]->stream.fd >= 0) return listener->peers.data[i];
  return NULL;
}

void lp_listener_permit(lp_listener *listener, uint32_t id, uint64_t bytes) {
  peer *of = lock_peer(listener, id);
  if (of) {
    of->reader.most = bytes;
    of->permitted = true;
  }
  pthread_mutex_unlock(&listener->mutex);
}

void lp_listener_drop(lp_listener *listener, uint32_t id) {
  peer *of = lock_peer(listener, id);
  if (of) {
    of->finishing = true;
    if (of->outbox.queue.count == 0) lose(listener, of);
  }
  pthread_mutex_unlock(&listener->mutex);
}

void lp_listener_describe(lp_listener *listener, uint32_t id, char out[64]) {
  peer *of = lock_peer(listener, id);
  lp_sockaddr at = {.size = sizeof at.at};
  snprintf(out, 64, "a device");
  if (of && getpeername(of->stream.fd, (struct sockaddr *)&at.at, &at.size) == 0) lp_sockaddr_print(&at, out);
  pthread_mutex_unlock(&listener->mutex);
}

bool lp_listener_bind(lp_listener *listener, uint32_t id, uint8_t out[LP_BINDING_BYTES]) {
  peer *of = lock_peer(listener, id);
  bool bound = of && lp_stream_bind(&of->stream, out);
  pthread_mutex_unlock(&listener->mutex);
  return bound;
}

bool lp_listener_send(lp_listener *listener, uint32_t id, const void *head, size_t head_size, const void *body,
                      size_t body_size, const char **why) {
  peer *to = lock_peer(listener, id);
  bool sent = to && !to->finishing && put(listener, to, head, head_size, body, body_size);
  pthread_mutex_unlock(&listener->mutex);
  *why = "the connection closed";
  return sent;
}

/* ---- the caller: receiving --------------------------------------------------------------------------------------- */

static void enter(lp_listener *listener) {
  pthread_mutex_lock(&listener->mutex);
  listener->receiving = true;
  if (listener->attending) wake_attendant(listener);
  listener->attending = false;
}

static void leave(lp_listener *listener) {
  listener->receiving = false;
  listener->left_ms = lp_now_ms();
  if (listener->sleeping) wake_attendant(listener);
  listener->sleeping = false;
  pthread_mutex_unlock(&listener->mutex);
}

/* The caller has dealt with all that came before their long frames: they may go on now, or never. */
static void judge_held(lp_listener *listener) {
  for (size_t i = 0; i < listener->peers.count && listener->held > 0; i++) {
    peer *of = listener->peers.data[i];
    if (of->state != PEER_HELD) continue;
    set_state(listener, of, PEER_OPEN);
    read_on(listener, of, 0);
    if (of->state == PEER_HELD) lose(listener, of);
    watch(listener, of, false);
  }
}

typedef struct {
  const lp_listener *listener;
  struct epoll_event event[MOST_EVENTS];
  int count;
} look;

static bool have_events(void *user) {
  look *at = user;
  at->count = epoll_wait(at->listener->epoll, at->event, MOST_EVENTS, 0);
  return at->count > 0;
}

/* Sleeps without the mutex until something comes, or until `until`. False: nothing did. */
static bool sleep_and_serve(lp_listener *listener, double until) {
  look at;
  at.listener = listener;
  double begin = lp_now_ms(), due = listener->due_ms < until ? listener->due_ms : until;
  pthread_mutex_unlock(&listener->mutex);
  if (!lp_spin_until(&listener->spin, due - begin, have_events, &at))
    at.count = epoll_wait(listener->epoll, at.event, MOST_EVENTS, lp_socket_milliseconds(due - begin));
  if (until > begin) lp_spin_note(&listener->spin, lp_now_ms() - begin);
  pthread_mutex_lock(&listener->mutex);
  serve_events(listener, at.event, at.count);
  return at.count > 0;
}

static peer *first_news(lp_listener *listener) {
  if (listener->news.count == 0) return NULL;
  peer *first = listener->news.data[0];
  listener->news.count--;
  for (size_t i = 0; i < listener->news.count; i++)
    listener->news.data[i] = listener->news.data[i + 1];
  return first;
}

static void take_frame(lp_listener *listener, peer *of, lp_packet *out) {
  out->data = out->handle = lp_frame_take(&of->reader, &out->size);
  of->waits_ms += lp_now_ms() - of->ready_ms;
  set_state(listener, of, PEER_OPEN);
  read_on(listener, of, 0);
  if ((of->events & EPOLLIN) == 0) watch(listener, of, false);
  if (!of->permitted) note_deadline(listener, deadline_of(of));
}

static void forget(lp_listener *listener, peer *of) {
  size_t last = --listener->peers.count;
  for (size_t i = 0; i < last; i++)
    if (listener->peers.data[i] == of) listener->peers.data[i] = listener->peers.data[last];
  peer_free(of);
}

lp_recv_outcome lp_listener_receive(lp_listener *listener, double timeout_ms, lp_packet *out, const char **why) {
  double until = lp_now_ms() + timeout_ms;
  lp_recv_outcome outcome = LP_RECV_TIMEOUT;
  peer *of;
  *why = "";
  enter(listener);
  for (bool over = false;; over = !sleep_and_serve(listener, until) || lp_now_ms() >= until) {
    judge_held(listener);
    meet_deadlines(listener);
    of = first_news(listener);
    if (of || over) break;
  }
  if (of) {
    out->peer = of->id;
    outcome = of->state == PEER_READY ? LP_RECV_FRAME : LP_RECV_GONE;
    if (outcome == LP_RECV_FRAME)
      take_frame(listener, of, out);
    else
      forget(listener, of);
  }
  leave(listener);
  return outcome;
}
