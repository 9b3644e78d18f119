/* The thread pool: every thread runs each segment once, in step, hot or asleep. */
#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cores.h"
#include "runtime/exec/pool.h"
#include "tests/suite.h"

enum { THREADS_MOST = 8, ROUNDS = 2000 };

/* Reached only through the frame, as emitted code reaches all of its data. */
typedef struct {
  int64_t ran[THREADS_MOST];
  int64_t shared;
} counts;

/* Waits as emitted code does. */
static void wait_all(const lp_frame *frame) {
  lp_barrier *barrier = frame->barrier;
  int32_t phase = __atomic_load_n(&barrier->phase, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) == frame->threads) {
    barrier->arrived = 0;
    __atomic_store_n(&barrier->phase, phase + 1, __ATOMIC_RELEASE);
    return;
  }
  for (int spins = 0; __atomic_load_n(&barrier->phase, __ATOMIC_ACQUIRE) == phase; spins++)
    if (spins > 1000) sched_yield(); /* more threads than cores */
}

static void count(const lp_frame *frame, int64_t thread) {
  counts *all = (counts *)(void *)frame->arena;
  all->ran[thread]++;
  wait_all(frame);
  if (thread == 0) all->shared++;
  wait_all(frame);
  if (all->shared != all->ran[0]) abort();
}

LP_LOOP_TEST(threads_run_in_step, 1, 5) {
  counts all = {0};
  lp_pool *pool = lp_pool_create(_i);
  ck_assert_int_eq(lp_pool_threads(pool), _i);
  lp_frame frame = {.arena = (char *)&all};
  for (int round = 0; round < ROUNDS; round++)
    lp_pool_run(pool, count, &frame);
  ck_assert_int_eq(all.ran[0], ROUNDS);
  for (int i = 1; i < _i; i++) { /* on a busy machine the caller ran some by itself */
    ck_assert_int_eq(all.ran[i], all.ran[1]);
    ck_assert_int_gt(all.ran[i], 0);
  }
  ck_assert(frame.threads == _i || frame.threads == 1);
  lp_pool_free(pool);
}

LP_TEST(sleepers_wake) {
  counts all = {0};
  lp_pool *pool = lp_pool_create(2);
  lp_frame frame = {.arena = (char *)&all};
  for (int round = 0; round < 50; round++) {
    lp_pool_run(pool, count, &frame);
    nanosleep(&(struct timespec){.tv_nsec = 20000 + round * 4000}, NULL); /* around the grace time */
  }
  ck_assert_int_gt(all.ran[1], 0);
  lp_pool_free(pool);
}

/* Thread 1 is late by 20 ms, as long as `late` says so. Counts the segments of two threads and of one. */
static struct {
  bool late;
  int together, alone;
} seen;

static void delay(const lp_frame *frame, int64_t thread) {
  if (thread == 1 && seen.late) nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  if (thread == 0) *(frame->threads == 1 ? &seen.alone : &seen.together) += 1;
}

/* Runs segments until two threads run the next one, and returns how many the caller ran by itself. */
static int run_alone(lp_pool *pool) {
  lp_frame frame = {0};
  seen.together = seen.alone = 0;
  while (seen.together == 0)
    lp_pool_run(pool, delay, &frame);
  return seen.alone;
}

LP_TEST(late_threads_are_left_out) {
  lp_pool *pool = lp_pool_create(2);
  seen.late = true;
  ck_assert_int_eq(run_alone(pool), 0);
  for (int i = 0; i < 3; i++)
    ck_assert_int_gt(run_alone(pool), 0);
  seen.late = false;
  int alone = run_alone(pool);
  for (int i = 0; i < 1000 && alone > 0; i++)
    alone = run_alone(pool);
  ck_assert_int_eq(alone, 0); /* the threads are taken in again */
  lp_pool_free(pool);
}

/* The time of `count` segments, each of which takes one thread 0.2 ms and two threads 0.1 ms, or 4 ms when it is late.
 * Every `nth` segment of two threads is late; 0: none. The clock is simulated. */
static double simulate(int count, int nth) {
  lp_lateness lateness = {0};
  double now = 0;
  for (int i = 0, together = 0; i < count; i++) {
    if (lp_lateness_excludes(&lateness, now, 1)) {
      now += 0.2;
      continue;
    }
    bool late = nth > 0 && ++together % nth == 0;
    double ms = late ? 4 : 0.1;
    now += ms;
    lp_lateness_judge(&lateness, now, 1, ms, 0.2);
  }
  return now;
}

LP_TEST(one_late_segment_costs_little) {
  ck_assert_double_eq_tol(simulate(1000, 0), 100, 1e-6);
  double lost = 4 - 0.1;
  ck_assert_double_le(simulate(1000, 900), 100 + 1.6 * lost);
  ck_assert_double_le(simulate(10000, 500), 1000 + 1.6 * lost * 10000 / 500);
}

LP_TEST(a_busy_machine_costs_little_more_than_one_thread) {
  ck_assert_double_le(simulate(10000, 1), 1.06 * 10000 * 0.2);
}

LP_TEST(a_long_segment_does_not_pay_for_a_short_loss) {
  lp_lateness lateness = {0};
  lp_lateness_judge(&lateness, 100, 128, 55, 50); /* 5 ms lost */
  ck_assert(!lp_lateness_excludes(&lateness, 100, 128));
  ck_assert(lp_lateness_excludes(&lateness, 100, 1));
  ck_assert(!lp_lateness_excludes(&lateness, 106, 1));
  for (int i = 0; i < 4; i++) /* late again and again */
    lp_lateness_judge(&lateness, 100, 128, 55, 50);
  ck_assert(lp_lateness_excludes(&lateness, 100, 128));
}

/* The threads of this process. */
static int threads_here(void) {
  DIR *tasks = opendir("/proc/self/task");
  ck_assert_ptr_nonnull(tasks);
  int threads = 0;
  for (const struct dirent *entry = readdir(tasks); entry; entry = readdir(tasks))
    threads += entry->d_name[0] != '.';
  closedir(tasks);
  return threads;
}

LP_TEST(unused_pool_ends) {
  lp_pool_free(lp_pool_create(2)); /* a sanitizer starts a thread of its own with the first */
  int before = threads_here();
  lp_pool *pool = lp_pool_create(3);
  ck_assert_int_eq(threads_here(), before + 2); /* the caller is the third */
  lp_pool_free(pool);
  for (int waits = 0; threads_here() > before && waits < 5000; waits++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* a thread that was joined is listed a moment longer */
  ck_assert_int_eq(threads_here(), before);
}

LP_TEST(default_is_the_machine) {
  lp_pool *pool = lp_pool_create(0);
  ck_assert_int_eq(lp_pool_threads(pool), lp_machine_threads());
  lp_pool_free(pool);
}

static void count_call(void *user, int64_t i) {
  __atomic_add_fetch(&((int64_t *)user)[i], 1, __ATOMIC_RELAXED);
}

LP_TEST(each_item_once) {
  enum { MOST = 200 };
  lp_pool *pool = lp_pool_create(3);
  for (int64_t count = 0; count <= MOST; count += count < 8 ? 1 : 32) {
    int64_t calls[MOST + 1] = {0};
    lp_pool_each(pool, count_call, calls, count);
    for (int64_t i = 0; i <= MOST; i++)
      ck_assert_int_eq(calls[i], i < count);
  }
  lp_pool_free(pool);
}
