/* The relay between the two ends holds bytes for the time that the emulated link would take. See link_emulator.h. */
#include "runtime/link/link_emulator.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "runtime/link/socket.h"

/* PACKET: bytes of a packet, as on Ethernet. MOST_IN_FLIGHT: bytes that a direction holds before it stops reading, so
 * that a sender faster than the link blocks, as on a real one. */
enum { PACKET = 1448, MOST_IN_FLIGHT = 1 << 20, MOST_PIPES = 256, BACKLOG = 64 };
/* A lost packet is sent again after two round trips (the probe time-out of RFC 8985), and all packets after it wait. */
static const double probe_rtts = 2;
static const double beyond_ms = 1e15;

typedef struct {
  double due_ms; /* when it arrives */
  size_t size, sent;
  uint8_t data[PACKET];
} packet;

/* One direction of a connection. */
typedef struct {
  int from, to;
  LP_VEC(packet *) queue;
  size_t first; /* the first entry of the queue that was not passed on completely */
  double last_due_ms;
  bool ended, closed; /* the sender has closed its stream; the receiver was told */
} flow;

typedef struct {
  flow up, down;
  bool connecting, broken;
} pipe_pair;

struct lp_link_emulator {
  lp_link_shape shape;
  lp_sockaddr target;
  char address[32];
  int listener, wake[2]; /* closing wake[1] ends the thread */
  pthread_t thread;
  bool started;
  LP_VEC(pipe_pair *) pairs;
  double free_ms[2]; /* until when each direction of the link is busy: up, down; all connections share it */
  uint64_t drawn;    /* random numbers */
  double begin_ms;
};

/* ---- the link ---------------------------------------------------------------------------------------------------- */

/* The time from `now` on at which the link is up. A cut takes the link down for `cut_ms` in every `cut_every_ms`. */
static double up_again(const lp_link_emulator *emulator, double now) {
  const lp_link_shape *shape = &emulator->shape;
  if (shape->cut_ms <= 0 || shape->cut_every_ms <= 0) return now;
  double since = now - emulator->begin_ms, begun = shape->cut_every_ms * (double)(int64_t)(since / shape->cut_every_ms);
  bool down = begun > 0 && since < begun + shape->cut_ms;
  return down ? emulator->begin_ms + begun + shape->cut_ms : now;
}

/* The time at which a packet of that size arrives when it is sent now. */
static double arrival(lp_link_emulator *emulator, flow *way, bool up, size_t size) {
  const lp_link_shape *shape = &emulator->shape;
  double bps = up ? shape->up_bps : shape->down_bps, *busy = &emulator->free_ms[up ? 0 : 1];
  double start = up_again(emulator, lp_now_ms());
  if (start < *busy) start = *busy;
  if (bps > 0) start += (double)size * 8e3 / bps;
  *busy = start;
  double due = start + shape->rtt_ms / 2;
  while (lp_random_uniform(emulator->shape.seed, 0, emulator->drawn++) < shape->loss)
    due += probe_rtts * shape->rtt_ms;
  if (due < way->last_due_ms) due = way->last_due_ms;
  way->last_due_ms = due;
  return due;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static void set_up_socket(int fd) {
  int on = 1;
  (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void pair_free(pipe_pair *pair) {
  flow *ways[] = {&pair->up, &pair->down};
  for (size_t i = 0; i < LP_COUNT(ways); i++) {
    for (size_t k = ways[i]->first; k < ways[i]->queue.count; k++)
      free(ways[i]->queue.data[k]);
    lp_vec_free(&ways[i]->queue);
  }
  close(pair->up.from);
  close(pair->up.to);
  free(pair);
}

/* A connection begins with a round trip, as TCP's does, so the first bytes of the device wait for it. */
static void take_connection(lp_link_emulator *emulator) {
  int near = accept4(emulator->listener, NULL, NULL, SOCK_CLOEXEC);
  if (near < 0) return;
  int far = socket(emulator->target.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (far < 0 || emulator->pairs.count >= MOST_PIPES) {
    close(near);
    if (far >= 0) close(far);
    return;
  }
  set_up_socket(near);
  set_up_socket(far);
  pipe_pair *pair = lp_alloc(sizeof *pair);
  pair->up = (flow){.from = near, .to = far};
  pair->down = (flow){.from = far, .to = near};
  pair->up.last_due_ms = up_again(emulator, lp_now_ms()) + emulator->shape.rtt_ms;
  int done = connect(far, (struct sockaddr *)&emulator->target.at, emulator->target.size);
  pair->connecting = done != 0 && errno == EINPROGRESS;
  pair->broken = done != 0 && !pair->connecting;
  lp_vec_push(&emulator->pairs, pair);
}

static size_t in_flight(const flow *way) {
  return (way->queue.count - way->first) * PACKET;
}

static void take_bytes(lp_link_emulator *emulator, pipe_pair *pair, flow *way) {
  while (in_flight(way) < MOST_IN_FLIGHT) {
    packet *next = lp_alloc(sizeof *next);
    ssize_t got = recv(way->from, next->data, sizeof next->data, 0);
    if (got <= 0) {
      free(next);
      if (got == 0) way->ended = true;
      if (got < 0 && errno != EAGAIN && errno != EINTR) pair->broken = true;
      return;
    }
    next->size = (size_t)got;
    next->due_ms = arrival(emulator, way, way == &pair->up, next->size);
    lp_vec_push(&way->queue, next);
  }
}

static void compact(flow *way) {
  if (way->first < way->queue.count) return;
  way->first = way->queue.count = 0;
}

/* Passes on the bytes that have arrived. The end of a stream arrives after its bytes. */
static void give_bytes(const lp_link_emulator *emulator, pipe_pair *pair, flow *way) {
  double now = lp_now_ms();
  while (way->first < way->queue.count) {
    packet *next = way->queue.data[way->first];
    if (next->due_ms > now || up_again(emulator, now) > now) return;
    ssize_t done = send(way->to, next->data + next->sent, next->size - next->sent, MSG_NOSIGNAL);
    if (done < 0 && errno != EAGAIN && errno != EINTR) pair->broken = true;
    if (done < 0) return;
    next->sent += (size_t)done;
    if (next->sent < next->size) return;
    free(next);
    way->first++;
  }
  compact(way);
  if (!way->ended || way->closed) return;
  shutdown(way->to, SHUT_WR);
  way->closed = true;
}

static void finish_connecting(pipe_pair *pair) {
  int error = 0;
  socklen_t size = sizeof error;
  (void)getsockopt(pair->up.to, SOL_SOCKET, SO_ERROR, &error, &size);
  pair->connecting = false;
  if (error != 0) pair->broken = true;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static double next_due(const flow *way) {
  return way->first < way->queue.count ? way->queue.data[way->first]->due_ms : beyond_ms;
}

static short events_of(const flow *in, const flow *out, double now) {
  short events = 0;
  if (!in->ended && in_flight(in) < MOST_IN_FLIGHT) events |= POLLIN;
  if (next_due(out) <= now) events |= POLLOUT;
  return events;
}

static void serve_pair(lp_link_emulator *emulator, pipe_pair *pair, const struct pollfd *ends) {
  if (pair->connecting && (ends[1].revents & (POLLOUT | POLLERR | POLLHUP)) != 0) finish_connecting(pair);
  if (pair->broken || pair->connecting) return;
  if ((ends[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) take_bytes(emulator, pair, &pair->up);
  if ((ends[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) take_bytes(emulator, pair, &pair->down);
  give_bytes(emulator, pair, &pair->up);
  give_bytes(emulator, pair, &pair->down);
}

/* Ends the pair when one side has closed and no bytes are left that could reach the other. */
static bool is_over(const pipe_pair *pair) {
  return pair->broken || (pair->up.closed && pair->down.closed);
}

/* Fills poll[2 + 2 * pairs] and returns how long to wait: to the microsecond, since a round trip may take a few ms. */
static struct timespec prepare(const lp_link_emulator *emulator, struct pollfd *wait) {
  double now = lp_now_ms(), soonest = beyond_ms;
  wait[0] = (struct pollfd){.fd = emulator->wake[0], .events = POLLIN};
  wait[1] = (struct pollfd){.fd = emulator->listener, .events = POLLIN};
  for (size_t i = 0; i < emulator->pairs.count; i++) {
    const pipe_pair *pair = emulator->pairs.data[i];
    double here = up_again(emulator, now), due = next_due(&pair->up);
    if (next_due(&pair->down) < due) due = next_due(&pair->down);
    if (due < here) due = here;
    if (due < soonest) soonest = due;
    bool open = here <= now;
    wait[2 + 2 * i] = (struct pollfd){.fd = pair->up.from, .events = events_of(&pair->up, &pair->down, open ? now : 0)};
    wait[3 + 2 * i] = (struct pollfd){.fd = pair->up.to, .events = events_of(&pair->down, &pair->up, open ? now : 0)};
    if (pair->connecting) {
      wait[2 + 2 * i].events = 0;
      wait[3 + 2 * i].events = POLLOUT;
    }
  }
  double left = soonest - now;
  int64_t us = left > 60000 ? 60000000 : left > 0 ? (int64_t)(left * 1000) + 1 : 0;
  return (struct timespec){.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)};
}

static void *relay(void *user) {
  lp_link_emulator *emulator = user;
  struct pollfd wait[2 + 2 * MOST_PIPES];
  for (;;) {
    size_t count = emulator->pairs.count;
    const struct timespec limit = prepare(emulator, wait);
    if (ppoll(wait, (nfds_t)(2 + 2 * count), &limit, NULL) < 0 && errno != EINTR) break;
    if (wait[0].revents != 0) break;
    for (size_t i = count; i-- > 0;) {
      pipe_pair *pair = emulator->pairs.data[i];
      serve_pair(emulator, pair, &wait[2 + 2 * i]);
      if (!is_over(pair)) continue;
      pair_free(pair);
      emulator->pairs.data[i] = emulator->pairs.data[--emulator->pairs.count];
    }
    if ((wait[1].revents & POLLIN) != 0) take_connection(emulator);
  }
  return NULL;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static lp_status find_target(lp_link_emulator *emulator, const char *address, lp_diag *diag) {
  const char *why = "";
  if (lp_address_resolve(address, false, &emulator->target, 1, &why) == 1) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "cannot reach the cloud at %s: %s", address, why);
}

static bool listen_here(lp_link_emulator *emulator) {
  struct sockaddr_in here = {.sin_family = AF_INET};
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof here;
  emulator->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (emulator->listener < 0 || bind(emulator->listener, (struct sockaddr *)&here, size) != 0 ||
      listen(emulator->listener, BACKLOG) != 0 || getsockname(emulator->listener, (struct sockaddr *)&here, &size) != 0)
    return false;
  snprintf(emulator->address, sizeof emulator->address, "127.0.0.1:%d", (int)ntohs(here.sin_port));
  return pipe2(emulator->wake, O_CLOEXEC) == 0;
}

lp_status lp_link_emulator_start(const char *address, const lp_link_shape *shape, lp_link_emulator **out,
                                 lp_diag *diag) {
  lp_link_emulator *emulator = lp_alloc(sizeof *emulator);
  emulator->shape = *shape;
  emulator->begin_ms = lp_now_ms();
  emulator->listener = emulator->wake[0] = emulator->wake[1] = -1;
  *out = NULL;
  lp_status status = find_target(emulator, address, diag);
  if (status == LP_OK && listen_here(emulator))
    emulator->started = pthread_create(&emulator->thread, NULL, relay, emulator) == 0;
  if (emulator->started) {
    *out = emulator;
    return LP_OK;
  }
  int problem = errno;
  lp_link_emulator_stop(emulator);
  if (status != LP_OK) return status;
  return lp_error(diag, LP_LOC_NONE, "cannot emulate a link: %s", strerror(problem));
}

const char *lp_link_emulator_address(const lp_link_emulator *emulator) {
  return emulator->address;
}

/* The bytes that a device sends before it closes its connection, such as its goodbye, still arrive; here at once, if
 * the link is up. */
static void pass_on_rest(lp_link_emulator *emulator, pipe_pair *pair) {
  if (pair->broken || pair->connecting) return;
  take_bytes(emulator, pair, &pair->up);
  for (size_t i = pair->up.first; i < pair->up.queue.count; i++)
    pair->up.queue.data[i]->due_ms = 0;
  give_bytes(emulator, pair, &pair->up);
}

void lp_link_emulator_stop(lp_link_emulator *emulator) {
  if (!emulator) return;
  if (emulator->wake[1] >= 0) close(emulator->wake[1]);
  if (emulator->started) pthread_join(emulator->thread, NULL);
  for (size_t i = 0; i < emulator->pairs.count; i++) {
    pass_on_rest(emulator, emulator->pairs.data[i]);
    pair_free(emulator->pairs.data[i]);
  }
  lp_vec_free(&emulator->pairs);
  if (emulator->wake[0] >= 0) close(emulator->wake[0]);
  if (emulator->listener >= 0) close(emulator->listener);
  free(emulator);
}
