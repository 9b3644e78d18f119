/* Waits for several connections: see wires.h. */
#include "runtime/link/wires.h"

#include <math.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cores.h"
#include "runtime/link/socket.h"

static size_t count_of(const lp_wires *wires, size_t *only) {
  size_t found = 0;
  for (size_t i = 0; i < wires->count; i++) {
    if (!wires->wire[i]) continue;
    *only = i;
    found++;
  }
  return found;
}

bool lp_wires_open(lp_wires *wires, lp_wire *const *wire, size_t count) {
  size_t only = 0;
  double due_ms;
  *wires = (lp_wires){.wire = wire, .count = count, .epoll = -1};
  if (count_of(wires, &only) < 2) return true;
  wires->epoll = epoll_create1(EPOLL_CLOEXEC);
  for (size_t i = 0; wires->epoll >= 0 && i < count; i++) {
    struct epoll_event event = {EPOLLIN, {.u64 = i}};
    if (!wire[i]) continue;
    int fd = wire[i]->transport->watch(wire[i]->channel, &due_ms);
    if (epoll_ctl(wires->epoll, EPOLL_CTL_ADD, fd, &event) != 0) lp_wires_close(wires);
  }
  return wires->epoll >= 0;
}

void lp_wires_close(lp_wires *wires) {
  if (wires->wire && wires->epoll >= 0) close(wires->epoll);
  wires->epoll = -1;
}

/* Takes what has come, without waiting. Sets *due to the time at which a connection has something to do. */
static lp_recv_outcome look(const lp_wires *wires, double *due, size_t *from, lp_inbound *out, const char **why) {
  for (size_t i = 0; i < wires->count; i++) {
    lp_wire *wire = wires->wire[i];
    if (!wire) continue;
    double due_ms = INFINITY;
    lp_recv_outcome outcome = lp_wire_receive(wire, 0, out, why);
    *from = i;
    if (outcome != LP_RECV_TIMEOUT) return outcome;
    (void)wire->transport->watch(wire->channel, &due_ms);
    *due = fmin(*due, due_ms);
  }
  return LP_RECV_TIMEOUT;
}

lp_recv_outcome lp_wires_receive(lp_wires *wires, double timeout_ms, size_t *from, lp_inbound *out, const char **why) {
  if (wires->epoll < 0) {
    *from = 0;
    (void)count_of(wires, from);
    return lp_wire_receive(wires->wire[*from], timeout_ms, out, why);
  }
  double until = lp_now_ms() + timeout_ms;
  lp_recv_outcome outcome;
  bool over;
  do {
    double due = until;
    over = lp_now_ms() >= until;
    outcome = look(wires, &due, from, out, why);
    struct epoll_event event;
    double left = fmax(0, due - lp_now_ms());
    if (outcome == LP_RECV_TIMEOUT && !over)
      (void)lp_socket_poll(wires->epoll, &event, 1, left, lp_machine_threads() > 1 ? &wires->brief : NULL);
  } while (outcome == LP_RECV_TIMEOUT && !over);
  for (size_t i = 0; i < wires->count; i++)
    if (wires->wire[i]) wires->wire[i]->transport->rest(wires->wire[i]->channel);
  return outcome;
}
