/* Shares of passes: see share.h. */
#include "runtime/worker/share.h"

#include "base/clock.h"
#include "runtime/exec/fair.h"
#include "runtime/exec/pace.h"
#include "runtime/worker/peer.h"

/* A peer is active for this long after it had a request in the queue: most devices ask for their next token sooner. */
static const double active_ms = 250;

void worker_share_enter(lp_worker *worker, uint32_t peer) {
  worker_peer *of = worker_peer_account(worker, peer);
  of->served = lp_fair_enter(of->served, worker->turn);
  of->queued_ms = lp_now_ms();
}

void worker_share_begin(lp_worker *worker) {
  worker->passes++;
  worker->waiting = 0;
}

int64_t worker_share_served(lp_worker *worker, uint32_t peer) {
  worker_peer *of = worker_peer_account(worker, peer);
  of->queued_ms = lp_now_ms();
  worker->waiting += of->pass != worker->passes;
  of->pass = worker->passes;
  return of->served;
}

void worker_share_charge(lp_worker *worker, uint32_t peer, int64_t rows) {
  worker_peer_account(worker, peer)->served += rows;
}

int64_t worker_share_most(const lp_worker *worker, double now_ms) {
  int active = 0;
  for (size_t i = 0; i < worker->peers.count; i++) {
    double queued_ms = worker->peers.data[i].queued_ms;
    active += queued_ms > 0 && now_ms - queued_ms < active_ms;
  }
  return active > 1 ? lp_pace_rows(&worker->pace, worker->waiting) : INT64_MAX;
}
