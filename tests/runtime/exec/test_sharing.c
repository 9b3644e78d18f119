/* Which segments a pool shares: whole runs against a simulated clock and simulated workers, and single decisions. */
#include <math.h>

#include "runtime/exec/sharing.h"
#include "tests/suite.h"

enum { SEGMENT = 1000 };

/* A machine. Workers that wake have a core after 0.04 ms, unless `absent`, when the caller loses 0.02 ms for each that
 * it wakes and they sleep again at once. They sleep after 0.2 ms without work. */
typedef struct {
  lp_sharing sharing;
  int32_t all;            /* workers */
  int32_t present;        /* of them with a core when they are awake */
  double alone, together; /* ms of a segment */
  double late;            /* ms of a segment of which a worker loses its core */
  int nth_late;           /* of the segments run together; 0: none */
  double pause;           /* ms between two segments */
  double now, used;       /* ms; `used` without the pauses */
  double ready_at, slept_at;
  int ran_together, woken, threads;
} machine;

static machine make(int32_t all, double alone, double together) {
  return (machine){
      .sharing = {.crew = all}, .all = all, .present = all, .alone = alone, .together = together, .ready_at = INFINITY};
}

/* Opens the gate, and returns how many workers come. */
static int32_t gather(machine *m, const lp_turn *turn) {
  const double until = turn->begin_ms + turn->patience_ms;
  int32_t came = turn->invite < m->present ? turn->invite : m->present;
  if (m->ready_at > until) came = 0;
  m->now = came == turn->invite ? fmax(m->now, m->ready_at) : fmax(m->now, until);
  return came;
}

static void run_one(machine *m, int64_t rows, int64_t bytes) {
  const bool awake = m->now < m->slept_at && m->ready_at <= m->now, waking = m->now < m->ready_at;
  const lp_workers workers = {.all = m->all,
                              .ready = awake ? m->present : 0,
                              .asleep = m->all - (awake || (waking && m->ready_at < INFINITY) ? m->present : 0)};
  const double begin = m->now;
  const lp_turn turn = lp_sharing_begin(
      &m->sharing, &(lp_segment_work){.segment = SEGMENT, .rows = rows, .bytes = bytes}, workers, m->now);
  m->now += 0.02 * turn.wake;
  m->woken += turn.wake;
  if (turn.wake > 0 && m->present > 0 && !awake) m->ready_at = m->now + 0.04, m->slept_at = m->ready_at + 0.2;
  int32_t came = turn.invite > 0 ? gather(m, &turn) : 0;
  if (turn.invite > 0) lp_sharing_count(&m->sharing, &turn, came, m->now);
  m->threads = came + 1;
  if (came == 0) {
    m->now += m->alone;
    lp_sharing_end_alone(&turn, m->alone);
  } else {
    m->now += m->nth_late > 0 && ++m->ran_together % m->nth_late == 0 ? m->late : m->together;
    m->ran_together += m->nth_late == 0;
    m->slept_at = m->now + 0.2;
    lp_sharing_end_together(&m->sharing, &turn, (lp_threads_time){.threads = came + 1, .computed_ms = m->alone},
                            m->now);
  }
  m->used += m->now - begin;
  m->now += m->pause;
  if (m->now > m->slept_at) m->ready_at = INFINITY;
}

static double run(machine *m, int count) {
  const double before = m->used;
  for (int i = 0; i < count; i++)
    run_one(m, 1, 0);
  return m->used - before;
}

LP_TEST(a_free_machine_runs_together) {
  const double alone[] = {0.06, 0.2, 0.9, 3, 50};
  for (int i = 0; i < 5; i++) {
    machine m = make(1, alone[i], 0.55 * alone[i]);
    run(&m, 10);
    ck_assert_double_le(run(&m, 1000), 1.001 * 0.55 * alone[i] * 1000);
    ck_assert_int_le(m.woken, 2);
  }
}

LP_TEST(a_long_segment_is_shared_from_the_first) {
  machine m = make(3, 50, 15);
  run_one(&m, 128, 400000000);
  ck_assert_int_eq(m.threads, 4);
  ck_assert_double_le(m.now, 15.1);
}

LP_TEST(workers_without_a_core_cost_nothing) {
  const double alone[] = {0.06, 0.3, 0.9, 50};
  for (int i = 0; i < 4; i++) {
    machine m = make(1, alone[i], 0.55 * alone[i]);
    m.present = 0;
    ck_assert_double_le(run(&m, 200), 1.03 * 200 * alone[i] + 0.2);
    ck_assert_double_le(run(&m, 1000), 1.031 * 1000 * alone[i]);
    ck_assert_int_eq(m.ran_together, 0);
  }
}

/* What a fresh process does: a prompt twice, and some tokens. */
LP_TEST(a_first_prompt_is_not_delayed) {
  machine m = make(1, 0.3, 0.17);
  m.present = 0;
  run_one(&m, 14, 6700000);
  run_one(&m, 14, 6700000);
  ck_assert_double_eq_tol(m.used, 2 * 0.3, 1e-9);
}

LP_TEST(workers_are_taken_in_again) {
  machine m = make(1, 0.2, 0.11);
  m.present = 0;
  run(&m, 2000);
  m.present = 1;
  run(&m, 1000);
  ck_assert_double_le(run(&m, 1000), 1.01 * 0.11 * 1000);
}

LP_TEST(only_those_that_have_a_core_are_invited) {
  const double alone[] = {0.2, 3};
  for (int i = 0; i < 2; i++) {
    machine m = make(3, alone[i], 0.55 * alone[i]);
    m.present = 1;
    run(&m, 100);
    ck_assert_double_le(run(&m, 1000), 1.04 * 0.55 * alone[i] * 1000);
    ck_assert_int_eq(m.threads, 2);
  }
}

LP_TEST(late_workers_cost_little) {
  machine m = make(1, 0.2, 0.1);
  m.late = 4;
  m.nth_late = 1;
  ck_assert_double_le(run(&m, 20000), 1.04 * 20000 * 0.2);
  m = make(1, 0.2, 0.1);
  m.late = 4;
  m.nth_late = 500; /* each costs its loss and about half of it again */
  ck_assert_double_le(run(&m, 10000), 1000 + 1.6 * 20 * (4 - 0.1));
}

LP_TEST(a_segment_that_gains_nothing_runs_alone) {
  machine m = make(1, 0.08, 0.09);
  run(&m, 100);
  ck_assert_double_le(run(&m, 5000), 1.025 * 0.08 * 5000);
  ck_assert_int_gt(m.ran_together, 1);
}

LP_TEST(the_shortest_segments_wake_nobody) {
  machine m = make(1, 0.015, 0.001);
  run_one(&m, 1, 1000000);
  run(&m, 1000);
  ck_assert_int_eq(m.ran_together, 0);
  ck_assert_int_eq(m.woken, 0);
}

/* Pauses longer than workers spin: waking them for a short segment never pays. */
LP_TEST(pauses_do_not_make_workers_wake_each_time) {
  machine m = make(1, 0.08, 0.05);
  m.pause = 1;
  run(&m, 1000);
  ck_assert_int_le(m.woken, 130);
  m = make(1, 2, 1.1); /* a longer one gains more than waking costs */
  m.pause = 1;
  ck_assert_double_le(run(&m, 1000), 1.06 * 1.1 * 1000);
}

LP_TEST(a_loss_pauses_in_proportion) {
  const lp_pause_bounds bounds = {2, 8};
  lp_pause pause = {0};
  lp_pause_lose(&pause, bounds, 100, 5);
  ck_assert_double_eq(pause.until_ms, 110);
  lp_pause_lose(&pause, bounds, 200, 5);
  ck_assert_double_eq(pause.until_ms, 220);
  for (int i = 0; i < 3; i++)
    lp_pause_lose(&pause, bounds, 300, 5);
  ck_assert_double_eq(pause.until_ms, 340); /* the most */
  lp_pause_gain(&pause);
  lp_pause_lose(&pause, bounds, 400, 5);
  ck_assert_double_eq(pause.until_ms, 420);
  for (int i = 0; i < 9; i++)
    lp_pause_gain(&pause);
  lp_pause_lose(&pause, bounds, 500, 5);
  ck_assert_double_eq(pause.until_ms, 510); /* the least */
}

static lp_turn begin(lp_sharing *sharing, int64_t rows, int32_t ready, double now) {
  const lp_segment_work work = {.segment = SEGMENT, .rows = rows};
  return lp_sharing_begin(sharing, &work, (lp_workers){.all = 1, .ready = ready, .asleep = 1 - ready}, now);
}

/* Two runs of `rows` rows by the caller alone. */
static void measure(lp_sharing *sharing, int64_t rows, double first_ms, double second_ms) {
  lp_turn turn = begin(sharing, rows, 1, 0);
  lp_sharing_end_alone(&turn, first_ms);
  turn = begin(sharing, rows, 1, 0);
  lp_sharing_end_alone(&turn, second_ms);
}

LP_TEST(time_alone_is_an_average_for_a_row) {
  lp_sharing sharing = {.crew = 1};
  measure(&sharing, 8, 40, 0.8); /* the first run is cold */
  ck_assert_double_eq_tol(begin(&sharing, 8, 1, 0).alone_ms, 0.8, 1e-9);
  ck_assert_double_eq_tol(begin(&sharing, 12, 1, 0).alone_ms, 1.2, 1e-9); /* the same entry: 8 to 15 rows */
  ck_assert_double_eq_tol(begin(&sharing, 16, 1, 0).alone_ms, 1, 1e-9);   /* another one: unknown */
  lp_turn turn = begin(&sharing, 8, 1, 0);
  lp_sharing_end_alone(&turn, 1.2);
  ck_assert_double_eq_tol(begin(&sharing, 8, 1, 0).alone_ms, 0.9, 1e-9);
  turn = begin(&sharing, 8, 1, 0);
  lp_sharing_end_alone(&turn, 90); /* counts as twice the average */
  ck_assert_double_eq_tol(begin(&sharing, 8, 1, 0).alone_ms, 1.125, 1e-9);
}

static void end(lp_sharing *sharing, const lp_turn *turn, double computed_ms, int64_t waits, double now) {
  const lp_threads_time all = {.threads = 2, .computed_ms = computed_ms, .waits = waits};
  lp_sharing_end_together(sharing, turn, all, now);
}

LP_TEST(a_run_together_bounds_the_time_alone) {
  lp_sharing sharing = {.crew = 1};
  measure(&sharing, 1, 40, 30);
  lp_turn turn = begin(&sharing, 1, 1, 0);
  ck_assert(!turn.clocked);
  end(&sharing, &turn, 0, 0, 10);
  ck_assert_double_eq_tol(begin(&sharing, 1, 1, 0).alone_ms, 20, 1e-9);
}

static const lp_segment_work large = {.segment = SEGMENT, .rows = 1, .bytes = 10000000000};
static const lp_workers one_ready = {.all = 1, .ready = 1};

LP_TEST(processor_time_stands_for_the_time_alone) {
  lp_sharing sharing = {.crew = 1};
  lp_turn turn = lp_sharing_begin(&sharing, &large, one_ready, 0);
  ck_assert_double_eq_tol(turn.alone_ms, 50, 1e-9);
  ck_assert(turn.clocked);
  ck_assert_int_eq(turn.invite, 1);
  end(&sharing, &turn, 40, 0, 45); /* late by 5 ms */
  turn = lp_sharing_begin(&sharing, &large, one_ready, 45);
  ck_assert_double_eq_tol(turn.alone_ms, 40, 1e-9);
  ck_assert_int_eq(turn.invite, 1); /* 40 ms alone lose more than the pause saves */
  for (int i = 0; i < 5; i++)
    end(&sharing, &turn, 40, 0, 90);
  ck_assert_int_eq(lp_sharing_begin(&sharing, &large, one_ready, 90).invite, 0);
  ck_assert_int_eq(lp_sharing_begin(&sharing, &large, one_ready, 300).invite, 1);
}

/* Fewer workers may gain where all lose. */
LP_TEST(a_loss_halves_the_workers) {
  lp_sharing sharing = {.crew = 6};
  const lp_workers workers = {.all = 6, .ready = 6};
  const int32_t invited[] = {6, 3, 1, 0};
  lp_turn turn = lp_sharing_begin(&sharing, &large, workers, 0);
  for (int i = 0; i < 4; i++) {
    ck_assert_int_eq(turn.invite, invited[i]);
    if (turn.invite == 0) break;
    lp_sharing_count(&sharing, &turn, turn.invite, 0);
    lp_sharing_end_together(&sharing, &turn, (lp_threads_time){.threads = turn.invite + 1, .computed_ms = 40}, 400);
    turn = lp_sharing_begin(&sharing, &large, workers, 400);
    turn.begin_ms = 0;
  }
  ck_assert_int_eq(lp_sharing_begin(&sharing, &large, workers, 5000).invite, 2); /* more again, by and by */
}

/* Two threads on one core: their processor time is mostly that of waiting. */
LP_TEST(after_many_waits_the_time_alone_is_measured) {
  for (int64_t waits = 10; waits <= 200; waits *= 20) {
    lp_sharing sharing = {.crew = 1};
    lp_turn turn = lp_sharing_begin(&sharing, &large, one_ready, 0);
    end(&sharing, &turn, 79, waits, 40);
    turn = lp_sharing_begin(&sharing, &large, one_ready, 40);
    ck_assert_int_eq(turn.invite, waits == 10);
    if (waits == 10) continue;
    lp_sharing_end_alone(&turn, 10);
    turn = lp_sharing_begin(&sharing, &large, one_ready, 50);
    ck_assert_double_eq_tol(turn.alone_ms, 10, 1e-9);
    ck_assert(!turn.clocked);
    ck_assert_int_eq(turn.invite, 1);
  }
}

/* A late thread concerns all segments, a small loss only its own. */
LP_TEST(a_small_loss_concerns_its_segment) {
  const lp_segment_work other = {.segment = SEGMENT + 1, .rows = 1};
  for (int late = 0; late < 2; late++) {
    lp_sharing sharing = {.crew = 1};
    measure(&sharing, 1, 0.2, 0.2);
    for (int i = 0; i < 2; i++) {
      lp_turn turn = lp_sharing_begin(&sharing, &other, one_ready, 0);
      lp_sharing_end_alone(&turn, 0.2);
    }
    lp_turn turn = begin(&sharing, 1, 1, 10);
    ck_assert_int_eq(turn.invite, 1);
    const double end_ms = late ? 10.6 : 10.4;
    end(&sharing, &turn, 0, 0, end_ms);
    ck_assert_int_eq(begin(&sharing, 1, 1, end_ms).invite, 0);
    ck_assert_int_eq(lp_sharing_begin(&sharing, &other, one_ready, end_ms).invite, !late);
    turn = begin(&sharing, 1, 1, 30);
    ck_assert_int_eq(turn.invite, 1);
    end(&sharing, &turn, 0, 0, 30.1);
    ck_assert_double_eq((late ? &sharing.busy : &turn.time->slower)->share, late ? 1 : 4);
  }
}

LP_TEST(a_long_segment_does_not_wait_for_a_pause) {
  lp_sharing sharing = {.crew = 1, .busy = {.until_ms = 100}};
  measure(&sharing, 1, 10, 10);
  ck_assert_int_eq(begin(&sharing, 1, 1, 94.9).invite, 0);
  ck_assert_int_eq(begin(&sharing, 1, 1, 95.1).invite, 1);
}

LP_TEST(patience_is_a_part_of_the_segment) {
  const double alone[] = {0.1, 1, 50}, patience[] = {0.002, 0.1, 1};
  for (int i = 0; i < 3; i++) {
    lp_sharing sharing = {.crew = 1};
    measure(&sharing, 1, alone[i], alone[i]);
    ck_assert_double_eq_tol(begin(&sharing, 1, 1, 0).patience_ms, patience[i], 1e-9);
  }
}

LP_TEST(the_first_runs_are_cold) {
  lp_sharing sharing = {.crew = 1};
  measure(&sharing, 1, 30, 40);
  ck_assert_double_eq_tol(begin(&sharing, 1, 1, 0).alone_ms, 30, 1e-9);
}

static void look_up_new(lp_sharing *sharing, uintptr_t segment, int64_t rows) {
  const lp_segment_work work = {.segment = segment, .rows = rows};
  lp_turn turn = lp_sharing_begin(sharing, &work, one_ready, 0);
  ck_assert_double_eq(turn.alone_ms, 1); /* unknown */
  lp_sharing_end_alone(&turn, 7);
}

/* Many segments share few entries, and none takes the time of another. */
LP_TEST(times_are_of_one_segment_and_size) {
  lp_sharing sharing = {.crew = 1};
  for (uintptr_t segment = 1; segment < 300; segment++)
    look_up_new(&sharing, segment, 1);
  for (uintptr_t segment = 1001; segment < 1100; segment++)
    for (int size = 0; size < 62; size++)
      look_up_new(&sharing, segment, (int64_t)1 << size);
}

/* Pauses the waiting for workers that do not come. */
LP_TEST(absent_workers_pause_the_waiting) {
  const double alone[] = {0.2, 50}, waited[] = {0.1, 1}, first[] = {64, 16}, most[] = {1024, 256};
  for (int i = 0; i < 2; i++) {
    lp_sharing sharing = {.crew = 1};
    measure(&sharing, 1, alone[i], alone[i]);
    const lp_turn turn = begin(&sharing, 1, 0, 0);
    ck_assert_int_eq(turn.invite, 1);
    ck_assert_int_eq(turn.wake, 1);
    lp_sharing_count(&sharing, &turn, 0, waited[i]);
    ck_assert_double_eq_tol(sharing.absent.until_ms, waited[i] + first[i] * (waited[i] + 0.02), 1e-9);
    for (int times = 0; times < 9; times++)
      lp_sharing_count(&sharing, &turn, 0, waited[i]);
    ck_assert_double_eq_tol(sharing.absent.until_ms, waited[i] + most[i] * (waited[i] + 0.02), 1e-9);
  }
}

LP_TEST(workers_that_come_shorten_the_next_pause) {
  const int32_t came[] = {2, 4, 1}, invite[] = {2, 4, 1};
  const double share[] = {4, 4, 8}; /* more than before, all, as many as before */
  for (int i = 0; i < 3; i++) {
    lp_sharing sharing = {.crew = i == 0 ? 1 : came[i], .absent = {.share = 8}};
    measure(&sharing, 1, 1, 1);
    lp_turn turn = lp_sharing_begin(&sharing, &(lp_segment_work){SEGMENT, 1, 0}, (lp_workers){4, 4, 0}, 0);
    turn.invite = invite[i];
    lp_sharing_count(&sharing, &turn, came[i], 0);
    ck_assert_double_eq(sharing.absent.share, share[i]);
    ck_assert_int_eq(sharing.crew, came[i]);
  }
}

LP_TEST(only_missing_workers_are_woken) {
  lp_sharing sharing = {.crew = 1};
  measure(&sharing, 1, 1, 1);
  const lp_turn turn = lp_sharing_begin(&sharing, &(lp_segment_work){SEGMENT, 1, 0}, (lp_workers){3, 1, 2}, 0);
  ck_assert_int_eq(turn.invite, 2);
  ck_assert_int_eq(turn.wake, 1);
}

/* Before a short segment sleeping workers are woken for a later one. */
LP_TEST(workers_that_sleep_again_have_no_core) {
  const lp_segment_work work = {.segment = SEGMENT, .rows = 1};
  lp_sharing sharing = {.crew = 3};
  measure(&sharing, 1, 0.1, 0.1);
  const lp_workers some = {.all = 3, .ready = 1, .asleep = 2}, more = {.all = 3, .ready = 2, .asleep = 1},
                   awake = {.all = 3, .ready = 3};
  lp_turn turn = lp_sharing_begin(&sharing, &work, some, 10);
  ck_assert_int_eq(turn.wake, 2);
  ck_assert_int_eq(turn.invite, 1);
  ck_assert_int_eq(lp_sharing_begin(&sharing, &work, some, 10.05).wake, 0); /* too early to tell */
  ck_assert_int_eq(lp_sharing_begin(&sharing, &work, awake, 10.1).invite, 3);
  ck_assert_int_eq(lp_sharing_begin(&sharing, &work, some, 11).wake, 2); /* these had a core */
  ck_assert_int_eq(lp_sharing_begin(&sharing, &work, some, 11.2).wake, 0);
  ck_assert_double_eq_tol(sharing.absent.until_ms, 11.2 + 64 * 0.02, 1e-9);
  ck_assert_int_eq(sharing.crew, 1);
  ck_assert_int_eq(lp_sharing_begin(&sharing, &work, more, 11.3).invite, 1);
  ck_assert_int_eq(lp_sharing_begin(&sharing, &work, some, 13).wake, 2); /* after the pause */
}
