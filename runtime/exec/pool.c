/* A pool of threads that run a segment together.
 *
 * A decode step of a small model takes a few hundred microseconds and consists of several segments, so waking must be
 * cheap: workers spin for a moment after each segment before they sleep, and the thread that starts a segment makes a
 * system call only when a worker sleeps. While they spin they yield to other threads: the two sides of a program on one
 * machine compute in turns, on the same cores. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/cores.h"
#include "runtime/exec/pool.h"

enum {
  MAX_THREADS = 1024,
  SPINS = 64,          /* times that a worker reads `round`, about 3 us, between two looks at the clock */
  PATIENT_SPINS = 2500 /* times that the caller reads `running`, about 50 us, before it leaves its core to others */
};
static const double grace_ms = 0.2; /* a worker spins for this long: longer than drawing a token takes */

/* On a busy machine the threads of a segment wait at each barrier until the kernel has given a core to the last of
 * them, which may take a hundred times the computation. After a segment that took longer than the caller would have
 * taken by itself, the caller runs FEWEST_ALONE segments by itself, and twice as many after each further attempt that
 * fails. Segments shorter than late_ms are not judged. */
enum { FEWEST_ALONE = 16, MOST_ALONE = 1024 };
static const double late_ms = 0.3;

typedef struct {
  lp_pool *pool;
  pthread_t thread;
  int32_t number;
} pool_worker;

struct lp_pool {
  /* `round` and the members that a worker reads next share a cache line. */
  _Alignas(64) uint32_t round; /* number of segments started; a change wakes the workers */
  int32_t threads;
  lp_segment_fn *segment;
  lp_frame *frame;
  pool_worker *worker; /* [threads - 1] */
  pthread_mutex_t mutex;
  pthread_cond_t wake;
  bool stop;
  int32_t alone, next_alone;     /* segments that the caller still runs by itself; the number after the next late one */
  _Alignas(64) int32_t running;  /* workers that have not finished the segment */
  _Alignas(64) int32_t sleeping; /* workers that wait on `wake` */
  lp_barrier barrier;
};

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void sleep_until_round(lp_pool *pool, uint32_t seen) {
  pthread_mutex_lock(&pool->mutex);
  __atomic_add_fetch(&pool->sleeping, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&pool->round, __ATOMIC_SEQ_CST) == seen)
    pthread_cond_wait(&pool->wake, &pool->mutex);
  __atomic_sub_fetch(&pool->sleeping, 1, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&pool->mutex);
}

static void await_round(lp_pool *pool, uint32_t seen) {
  double until = lp_now_ms() + grace_ms;
  do {
    for (int i = 0; i < SPINS; i++) {
      if (__atomic_load_n(&pool->round, __ATOMIC_ACQUIRE) != seen) return;
      relax();
    }
    (void)sched_yield();
  } while (lp_now_ms() < until);
  sleep_until_round(pool, seen);
}

static void *work(void *user) {
  pool_worker *worker = user;
  lp_pool *pool = worker->pool;
  for (uint32_t seen = 0;; seen++) {
    await_round(pool, seen);
    if (__atomic_load_n(&pool->stop, __ATOMIC_ACQUIRE)) return NULL;
    pool->segment(pool->frame, worker->number);
    __atomic_sub_fetch(&pool->running, 1, __ATOMIC_RELEASE);
  }
}

static void start_round(lp_pool *pool) {
  __atomic_add_fetch(&pool->round, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&pool->sleeping, __ATOMIC_SEQ_CST) == 0) return;
  pthread_mutex_lock(&pool->mutex);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->mutex);
}

static void set_threads(lp_pool *pool, lp_frame *frame, int32_t threads) {
  frame->barrier = &pool->barrier;
  frame->threads = threads;
  for (int64_t i = 0; i < frame->sequences; i++) {
    frame->sequence[i].barrier = &pool->barrier;
    frame->sequence[i].threads = threads;
  }
}

static void run_together(lp_pool *pool, lp_segment_fn *segment, lp_frame *frame) {
  pool->segment = segment;
  pool->frame = frame;
  pool->running = pool->threads - 1;
  start_round(pool);
  segment(frame, 0);
  for (int i = 0; __atomic_load_n(&pool->running, __ATOMIC_ACQUIRE) != 0;)
    if (i < PATIENT_SPINS) {
      relax();
      i++;
    } else {
      lp_give_way();
    }
}

/* Judges a segment that took `ms` while the caller computed for `cpu_ms`: by itself it would take that for each thread,
 * or less, because it also counts some of its waiting as computation. */
static void judge(lp_pool *pool, double ms, double cpu_ms) {
  if (ms <= late_ms || ms <= cpu_ms * pool->threads) {
    if (pool->next_alone > FEWEST_ALONE) pool->next_alone /= 2;
    return;
  }
  pool->alone = pool->next_alone;
  if (pool->next_alone < MOST_ALONE) pool->next_alone *= 2;
}

void lp_pool_run(lp_pool *pool, lp_segment_fn *segment, lp_frame *frame) {
  bool alone = pool->threads == 1 || pool->alone > 0;
  set_threads(pool, frame, alone ? 1 : pool->threads);
  if (alone) {
    if (pool->alone > 0) pool->alone--;
    segment(frame, 0);
    return;
  }
  double begin = lp_now_ms(), cpu_begin = lp_thread_cpu_ms();
  run_together(pool, segment, frame);
  judge(pool, lp_now_ms() - begin, lp_thread_cpu_ms() - cpu_begin);
}

lp_pool *lp_pool_create(int32_t threads) {
  if (threads <= 0) threads = lp_machine_threads();
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  /* lp_alloc aligns to 16 bytes only. */
  lp_pool *pool = aligned_alloc(64, sizeof *pool);
  if (!pool) abort();
  *pool = (lp_pool){.threads = 1, .next_alone = FEWEST_ALONE};
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->wake, NULL);
  pool->worker = lp_alloc(sizeof(pool_worker) * (size_t)threads);
  for (int32_t i = 0; i < threads - 1; i++) {
    pool_worker *worker = &pool->worker[i];
    *worker = (pool_worker){.pool = pool, .number = i + 1};
    if (pthread_create(&worker->thread, NULL, work, worker) != 0) break; /* fewer threads do the same work */
    pool->threads++;
  }
  return pool;
}

void lp_pool_free(lp_pool *pool) {
  if (!pool) return;
  __atomic_store_n(&pool->stop, true, __ATOMIC_RELEASE);
  start_round(pool);
  for (int32_t i = 0; i < pool->threads - 1; i++)
    pthread_join(pool->worker[i].thread, NULL);
  pthread_mutex_destroy(&pool->mutex);
  pthread_cond_destroy(&pool->wake);
  free(pool->worker);
  free(pool);
}

int32_t lp_pool_threads(const lp_pool *pool) {
  return pool->threads;
}
