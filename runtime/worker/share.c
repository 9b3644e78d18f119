/* Shares of passes: see share.h. */
#include "runtime/worker/share.h"

#include "base/clock.h"
#include "runtime/exec/batch.h"
#include "runtime/worker/peer.h"

/* A peer is active for this long after it had a request in the queue: most devices ask for their next token sooner. */
static const double active_ms = 250;
/* While several peers are active, a pass may last as many times as long as one with a single row. With the row of
 * another peer and the gaps between its tokens, its time per token stays within twice the time without the others. */
static const double stretch = 1.6;
/* Each pass makes earlier ones count less by this factor. */
static const double keep = 0.98;
/* The least spread of rows, as a variance, from which a line is drawn. */
static const double least_spread = 0.25;
/* The rows of a peer in a pass while their price is not known. */
enum { FIRST_ROWS = 8 };

void worker_share_enter(lp_worker *worker, uint32_t peer) {
  worker_peer *of = worker_peer_of(worker, peer);
  if (of->served < worker->turn) of->served = worker->turn;
  of->queued_ms = lp_now_ms();
}

int64_t worker_share_served(lp_worker *worker, uint32_t peer) {
  worker_peer *of = worker_peer_of(worker, peer);
  of->queued_ms = lp_now_ms();
  return of->served;
}

void worker_share_charge(lp_worker *worker, uint32_t peer, int64_t rows) {
  worker_peer_of(worker, peer)->served += rows;
}

int64_t worker_share_most(const lp_worker *worker, double now_ms) {
  int active = 0;
  for (size_t i = 0; i < worker->peers.count; i++) {
    double queued_ms = worker->peers.data[i].queued_ms;
    active += queued_ms > 0 && now_ms - queued_ms < active_ms;
  }
  return active > 1 ? worker_pace_rows(&worker->pace) : INT64_MAX;
}

/* ---- the time of passes ------------------------------------------------------------------------------------------ */

void worker_pace_note(worker_pace *pace, int64_t rows, double ms) {
  double r = (double)rows;
  pace->weight = keep * pace->weight + 1;
  pace->rows = keep * pace->rows + r;
  pace->ms = keep * pace->ms + ms;
  pace->rows_rows = keep * pace->rows_rows + r * r;
  pace->rows_ms = keep * pace->rows_ms + r * ms;
}

/* Least squares: ms = fixed + slope * rows. */
int64_t worker_pace_rows(const worker_pace *pace) {
  double n = pace->weight, rows = pace->rows / (n > 0 ? n : 1), ms = pace->ms / (n > 0 ? n : 1);
  double spread = n > 0 ? pace->rows_rows / n - rows * rows : 0;
  if (spread < least_spread) return FIRST_ROWS;
  double slope = (pace->rows_ms / n - rows * ms) / spread, fixed = ms - slope * rows;
  if (slope <= 0) return INT64_MAX;
  double most = stretch + (stretch - 1) * fixed / slope; /* fixed + most * slope = stretch * (fixed + slope) */
  return most<1 ? 1 : most>(double) LP_PASS_ROWS ? (int64_t)LP_PASS_ROWS : (int64_t)most;
}
