/* The thread pool: every thread runs each segment once, in step, hot or asleep. */
#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
  if (all->shared != all->ran[thread]) abort();
}

LP_LOOP_TEST(threads_run_in_step, 1, 5) {
  counts all = {0};
  lp_pool *pool = lp_pool_create(_i);
  ck_assert_int_eq(lp_pool_threads(pool), _i);
  lp_frame frame = {.arena = (char *)&all};
  for (int round = 0; round < ROUNDS; round++)
    lp_pool_run(pool, count, &frame);
  for (int i = 0; i < _i; i++)
    ck_assert_int_eq(all.ran[i], ROUNDS);
  ck_assert_int_eq(frame.threads, _i);
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
  ck_assert_int_eq(all.ran[1], 50);
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
  cpu_set_t set;
  ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
  lp_pool *pool = lp_pool_create(0);
  ck_assert_int_eq(lp_pool_threads(pool), CPU_COUNT(&set));
  lp_pool_free(pool);
}
