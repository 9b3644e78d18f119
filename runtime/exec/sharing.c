/* Decides which segments the threads of a pool run together (sharing.h). */
#include "runtime/exec/sharing.h"

#include <math.h>

/* A loss above this comes from a thread that lost its core, and concerns all segments. */
static const double late_ms = 0.3;
/* A shorter segment is not worth a worker: handing it over and waiting at its barriers takes 1 to 2 us each. */
static const double least_shared_ms = 0.02;
/* For a segment of at least this time the caller waits until sleeping workers have woken, which takes 30 to 50 us, at
 * most `wake_ms` on a free core. Before a shorter one it only wakes them, and they spin until the next begins. */
static const double least_awaited_ms = 0.15, wake_ms = 0.1;
/* Of a long segment the caller may spend this part on waiting: workers of a busy machine come within a few ms. */
static const double waited_part = 0.02;
/* Processor time for waking a worker. */
static const double wake_cost_ms = 0.02;
/* The first runs of a shorter segment are by the caller alone, whose time they measure. That of a longer one is taken
 * from the processor time of all threads. */
static const double most_measured_ms = 5;
enum { MEASURED_RUNS = 2 };
/* Threads that wait for each other on one core use processor time for waiting too, about this for each wait. Where that
 * is more than a part of all, the time of the caller alone is measured. */
static const double wait_cost_ms = 0.1, most_waited_part = 0.25;
/* What a segment of which nothing is known is taken for. */
static const double unknown_ms = 1;
/* How long an invitation lasts that does not depend on times. */
static const double always_wait_ms = 100;
/* A first guess: a row takes this time for a byte of weights. */
static const double byte_ms = 5e-9;

static const lp_pause_bounds late_bounds = {1, 64}, slower_bounds = {4, 128}, absent_bounds = {64, 1024};
/* Where the wait was a small part of the segment. */
static const lp_pause_bounds absent_from_long_bounds = {16, 256};

void lp_pause_lose(lp_pause *pause, lp_pause_bounds bounds, double now_ms, double lost_ms) {
  const double share = fmin(fmax(pause->share, bounds.least), bounds.most);
  pause->until_ms = now_ms + share * lost_ms;
  pause->share = fmin(2 * share, bounds.most);
}

void lp_pause_gain(lp_pause *pause) {
  pause->share /= 2;
}

static int32_t log2_of(int64_t rows) {
  int32_t size = 0;
  for (; rows > 1; rows >>= 1)
    size++;
  return size;
}

/* The entry of the segment; the newest one takes the place of another. */
static lp_segment_time *time_of(lp_sharing *sharing, const lp_segment_work *work) {
  const int32_t size = log2_of(work->rows);
  const uint64_t mixed = ((uint64_t)work->segment + (uint64_t)size) * 0x9e3779b97f4a7c15u;
  lp_segment_time *time = &sharing->time[(mixed >> 32) % LP_SEGMENT_TIMES];
  if (time->segment != work->segment || time->size != size)
    *time = (lp_segment_time){.segment = work->segment, .size = size};
  return time;
}

static double expected_ms(const lp_segment_time *time, const lp_segment_work *work) {
  if (time->row_ms > 0) return time->row_ms * (double)work->rows;
  return work->bytes > 0 ? byte_ms * (double)work->bytes * (double)work->rows : unknown_ms;
}

/* A segment that alone takes more than twice what is left of the pause does not wait for its end. */
static bool pauses(const lp_pause *pause, double now_ms, double alone_ms) {
  return now_ms + alone_ms / 2 < pause->until_ms;
}

static bool runs_alone(const lp_sharing *sharing, const lp_turn *turn) {
  const lp_segment_time *time = turn->time;
  if (turn->alone_ms < least_shared_ms) return true;
  if (time->alone < MEASURED_RUNS && turn->alone_ms < most_measured_ms) return true;
  if (time->alone == 0 && time->waited) return true;
  return pauses(&sharing->busy, turn->begin_ms, turn->alone_ms) ||
         pauses(&time->slower, turn->begin_ms, turn->alone_ms);
}

static int32_t least_of(int32_t a, int32_t b) {
  return a < b ? a : b;
}

/* Waits for sleeping workers too: for as many as came the last time, and for some more unless `absent` lasts. */
static void invite_awaited(const lp_sharing *sharing, lp_workers workers, lp_turn *turn) {
  const int32_t crew = sharing->crew;
  turn->invite = pauses(&sharing->absent, turn->begin_ms, turn->alone_ms)
                     ? least_of(crew, workers.ready + workers.asleep)
                     : least_of(crew > 0 ? 2 * crew : 1, workers.all);
  turn->wake = turn->invite > workers.ready ? least_of(turn->invite - workers.ready, workers.asleep) : 0;
  turn->patience_ms = fmax(wake_ms, waited_part * turn->alone_ms);
}

/* Wakes sleeping workers for a later segment. Those that sleep again by then have found no core. */
static void wake_for_later(lp_sharing *sharing, lp_workers workers, lp_turn *turn) {
  if (workers.asleep == 0) {
    sharing->woken_ms = 0;
  } else if (turn->begin_ms < sharing->absent.until_ms) {
    return;
  } else if (sharing->woken_ms == 0) {
    turn->wake = workers.asleep;
    sharing->woken_ms = turn->begin_ms;
  } else if (turn->begin_ms - sharing->woken_ms > wake_ms) {
    sharing->woken_ms = 0;
    sharing->crew = workers.ready;
    lp_pause_lose(&sharing->absent, absent_bounds, turn->begin_ms, wake_cost_ms);
  }
}

static void invite_ready(lp_sharing *sharing, lp_workers workers, lp_turn *turn) {
  wake_for_later(sharing, workers, turn);
  turn->invite = workers.ready;
  if (turn->begin_ms < sharing->absent.until_ms) turn->invite = least_of(turn->invite, sharing->crew);
  turn->patience_ms = waited_part * turn->alone_ms;
}

lp_turn lp_sharing_begin(lp_sharing *sharing, const lp_segment_work *work, lp_workers workers, double now_ms) {
  lp_segment_time *time = time_of(sharing, work);
  lp_turn turn = {.time = time,
                  .rows = work->rows,
                  .all = workers.all,
                  .begin_ms = now_ms,
                  .alone_ms = expected_ms(time, work),
                  .clocked = time->alone == 0};
  if (sharing->always) {
    turn.invite = workers.all;
    turn.wake = workers.asleep;
    turn.patience_ms = always_wait_ms;
    return turn;
  }
  if (runs_alone(sharing, &turn)) return turn;
  if (turn.alone_ms >= least_awaited_ms)
    invite_awaited(sharing, workers, &turn);
  else
    invite_ready(sharing, workers, &turn);
  return turn;
}

void lp_sharing_count(lp_sharing *sharing, const lp_turn *turn, int32_t came, double now_ms) {
  const double lost_ms = now_ms - turn->begin_ms + wake_cost_ms;
  const bool is_long = turn->patience_ms > wake_ms;
  if (came < turn->invite)
    lp_pause_lose(&sharing->absent, is_long ? absent_from_long_bounds : absent_bounds, now_ms, lost_ms);
  else if (came > sharing->crew || came == turn->all)
    lp_pause_gain(&sharing->absent);
  sharing->crew = came;
}

/* The first run may be slowed by pages and caches that are still cold. */
void lp_sharing_end_alone(const lp_turn *turn, double ms) {
  lp_segment_time *time = turn->time;
  const double row_ms = ms / (double)turn->rows;
  if (time->alone < MEASURED_RUNS)
    time->row_ms = time->alone == 0 ? row_ms : fmin(time->row_ms, row_ms);
  else
    time->row_ms += (fmin(row_ms, 2 * time->row_ms) - time->row_ms) / 4;
  if (time->alone < MEASURED_RUNS) time->alone++;
}

void lp_sharing_end_together(lp_sharing *sharing, const lp_turn *turn, lp_threads_time all, double now_ms) {
  lp_segment_time *time = turn->time;
  const double ms = now_ms - turn->begin_ms;
  if (turn->clocked) {
    time->row_ms = all.computed_ms / (double)turn->rows;
    time->waited = wait_cost_ms * (double)all.waits > most_waited_part * ms;
  }
  /* One thread takes no more than the time of all. */
  time->row_ms = fmin(time->row_ms, ms * all.threads / (double)turn->rows);
  const double lost_ms = ms - time->row_ms * (double)turn->rows;
  if (lost_ms > 0 && all.threads > 2) {
    sharing->crew = (all.threads - 1) / 2;
    lp_pause_lose(&sharing->absent, late_bounds, now_ms, lost_ms);
  } else if (lost_ms > late_ms) {
    lp_pause_lose(&sharing->busy, late_bounds, now_ms, lost_ms);
  } else if (lost_ms > 0) {
    lp_pause_lose(&time->slower, slower_bounds, now_ms, lost_ms);
  } else {
    lp_pause_gain(&sharing->busy);
    lp_pause_gain(&time->slower);
  }
}
