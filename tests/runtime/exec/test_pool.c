/* The thread pool: the threads of a segment run it once, in step, hot or asleep. Which segments they share is tested by
 * test_sharing.c. */
#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/cores.h"
#include "runtime/exec/pool.h"
#include "tests/suite.h"

enum { THREADS_MOST = 8, ROUNDS = 100 };
/* Threads come when the machine has a core for them: what must happen in the end may take so long. */
static const double patience_ms = 60000;

/* Takes the place of the C library's: the core of all threads that have not moved. Unknown ones count as different. */
static int core_of_all = -1;
static _Thread_local int core_moved_to = -1;
int sched_getcpu(void) {
  return core_moved_to >= 0 ? core_moved_to : core_of_all;
}

/* And this one: a thread may move to core 1 from others. */
static bool may_move;
int sched_setaffinity(pid_t process, size_t size, const cpu_set_t *set) {
  (void)process;
  (void)size;
  if (may_move && !CPU_ISSET(0, set) && CPU_ISSET(1, set)) core_moved_to = 1;
  return may_move ? 0 : -1;
}

/* And this one: a pool lets no more threads run than there are cores. */
int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set) {
  (void)process;
  memset(set, 0, size);
  for (size_t i = 0; i < THREADS_MOST; i++)
    CPU_SET(i, set);
  return 0;
}

/* Reached only through the frame, as emitted code reaches all of its data. */
typedef struct {
  int64_t ran[THREADS_MOST];
  int64_t shared, together;
} counts;

/* A share of work that takes one thread 0.4 ms. */
static void compute(const lp_frame *frame) {
  const double until = lp_now_ms() + 0.4 / (double)frame->threads;
  while (lp_now_ms() < until) {
  }
}

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
  compute(frame);
  wait_all(frame);
  if (thread == 0) all->shared++;
  if (thread == 0) all->together += frame->threads > 1;
  wait_all(frame);
  if (all->shared != all->ran[0]) abort();
}

LP_LOOP_TEST(threads_run_in_step, 1, 5) {
  counts all = {0};
  lp_pool *pool = lp_pool_create(_i);
  ck_assert_int_eq(lp_pool_threads(pool), _i);
  lp_frame frame = {.arena = (char *)&all};
  int64_t rounds = 0, workers = 0;
  const double until = lp_now_ms() + patience_ms;
  for (; rounds < ROUNDS || (_i > 1 && all.together == 0 && lp_now_ms() < until); rounds++) {
    if (rounds == ROUNDS / 2) lp_pool_share_all(pool); /* on a busy machine the caller ran most by itself until here */
    lp_pool_run(pool, count, &frame, 0);
    ck_assert_int_ge(frame.threads, 1);
    ck_assert_int_le(frame.threads, _i);
    workers += frame.threads - 1;
  }
  ck_assert_int_eq(all.ran[0], rounds);
  for (int i = 1; i < _i; i++) { /* thread i takes part where at least i workers do */
    ck_assert_int_le(all.ran[i], all.ran[i - 1]);
    workers -= all.ran[i];
  }
  ck_assert_int_eq(workers, 0);
  ck_assert(_i == 1 || all.together > 0);
  lp_pool_free(pool);
}

LP_TEST(all_may_share_everything) {
  counts all = {0};
  core_of_all = 0;
  lp_pool *pool = lp_pool_create(4);
  lp_pool_share_all(pool);
  lp_frame frame = {.arena = (char *)&all};
  int64_t rounds = 0;
  for (const double until = lp_now_ms() + patience_ms; all.ran[3] <= 10 && lp_now_ms() < until; rounds++)
    lp_pool_run(pool, count, &frame, 0);
  ck_assert_int_eq(all.ran[0], rounds);
  ck_assert_int_gt(all.ran[3], 10);
  lp_pool_free(pool);
}

LP_TEST(sleepers_wake) {
  counts all = {0};
  lp_pool *pool = lp_pool_create(2);
  lp_pool_share_all(pool);
  lp_frame frame = {.arena = (char *)&all};
  const double until = lp_now_ms() + patience_ms;
  for (int round = 0; round < 50 || (all.ran[1] == 0 && lp_now_ms() < until); round++) {
    lp_pool_run(pool, count, &frame, 0);
    nanosleep(&(struct timespec){.tv_nsec = 20000 + round % 50 * 8000}, NULL); /* around the grace time */
  }
  ck_assert_int_gt(all.ran[1], 0);
  lp_pool_free(pool);
}

/* They would only take time from the caller. */
LP_TEST(workers_on_the_core_of_the_caller_sleep) {
  counts all = {0};
  core_of_all = 0;
  lp_pool *pool = lp_pool_create(3);
  lp_frame frame = {.arena = (char *)&all};
  for (int round = 0; round < 100; round++)
    lp_pool_run(pool, count, &frame, 1000000000);
  ck_assert_int_eq(all.ran[0], 100);
  ck_assert_int_eq(all.together, 0);
  lp_pool_free(pool);
}

LP_TEST(workers_leave_the_core_of_the_caller) {
  counts all = {0};
  core_of_all = 0;
  may_move = true;
  lp_pool *pool = lp_pool_create(2);
  lp_frame frame = {.arena = (char *)&all};
  for (const double until = lp_now_ms() + patience_ms; all.together == 0 && lp_now_ms() < until;)
    lp_pool_run(pool, count, &frame, 1000000000);
  ck_assert_int_gt(all.together, 0);
  ck_assert_int_eq(core_moved_to, -1);
  lp_pool_free(pool);
}

/* Thread 1 is late by 20 ms. */
static void delay(const lp_frame *frame, int64_t thread) {
  compute(frame);
  if (thread == 1) nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

LP_TEST(late_threads_are_left_out) {
  lp_pool *pool = lp_pool_create(2);
  lp_frame frame = {0};
  int together = 0;
  for (int i = 0; i < 300; i++) {
    const bool was_late = frame.threads == 2;
    lp_pool_run(pool, delay, &frame, 0);
    if (was_late) ck_assert_int_eq(frame.threads, 1);
    together += frame.threads == 2;
  }
  ck_assert_int_le(together, 30);
  lp_pool_free(pool);
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
