/* A pool of threads that run a segment together.
 *
 * A decode step of a small model takes a few hundred microseconds and consists of several segments, so waking must be
 * cheap: workers spin for a moment after each segment before they sleep, and the thread that starts a segment makes a
 * system call only when a worker sleeps. While they spin they yield to other threads: the two sides of a program on one
 * machine compute in turns, on the same cores. */
#include <math.h>
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

/* Shorter segments are not judged. */
static const double late_ms = 0.3;
/* Threads spin this long at a barrier before they give way, and that is no computation. */
static const double spin_ms = 0.05;
/* Bounds of lp_lateness.share: one late segment costs half of its loss again; where every attempt is late, attempts
 * take a thirtieth of the time. */
static const double least_share = 1, most_share = 32;

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
  lp_lateness lateness;
  _Alignas(64) int32_t running;  /* workers that have not finished the segment */
  int64_t computed_ns;           /* processor time that the workers took for the segment */
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

/* The processor time of a thread at the start of a segment. */
typedef struct {
  int64_t waits;
  double cpu_ms;
} work_clock;

static work_clock clock_begin(void) {
  return (work_clock){lp_gave_way(), lp_thread_cpu_ms()};
}

/* The processor time since then, without that spent in long waits. */
static double computed_ms(const work_clock *begin) {
  double spun_ms = spin_ms * (double)(lp_gave_way() - begin->waits);
  return fmax(lp_thread_cpu_ms() - begin->cpu_ms - spun_ms, 0);
}

/* Only the time of longer segments matters. */
static void run_share(lp_pool *pool, int32_t number) {
  const work_clock clock = clock_begin();
  const double begin = lp_now_ms();
  pool->segment(pool->frame, number);
  if (lp_now_ms() - begin > late_ms / 2)
    __atomic_add_fetch(&pool->computed_ns, (int64_t)(1e6 * computed_ms(&clock)), __ATOMIC_RELAXED);
  __atomic_sub_fetch(&pool->running, 1, __ATOMIC_RELEASE);
}

static void *work(void *user) {
  pool_worker *worker = user;
  lp_pool *pool = worker->pool;
  for (uint32_t seen = 0;; seen++) {
    await_round(pool, seen);
    if (__atomic_load_n(&pool->stop, __ATOMIC_ACQUIRE)) return NULL;
    run_share(pool, worker->number);
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
  pool->computed_ns = 0;
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

bool lp_lateness_excludes(const lp_lateness *lateness, double now_ms, int64_t rows) {
  return now_ms + lateness->row_ms * (double)rows / 2 < lateness->alone_until_ms;
}

void lp_lateness_judge(lp_lateness *lateness, double now_ms, int64_t rows, double ms, double alone_ms) {
  const double lost = ms - alone_ms, share = fmax(lateness->share, least_share);
  lateness->row_ms = alone_ms / (double)rows;
  if (ms <= late_ms || lost <= 0) {
    lateness->share = share / 2;
    return;
  }
  lateness->alone_until_ms = now_ms + share * lost;
  lateness->share = fmin(2 * share, most_share);
}

/* New tokens of all sequences. */
static int64_t rows_of(const lp_frame *frame) {
  int64_t rows = frame->sym ? frame->sym[LP_SYM_B] * frame->sym[LP_SYM_S] : 1;
  return rows > 1 ? rows : 1;
}

void lp_pool_run(lp_pool *pool, lp_segment_fn *segment, lp_frame *frame) {
  double begin = pool->threads == 1 ? 0 : lp_now_ms();
  const int64_t rows = rows_of(frame);
  bool alone = pool->threads == 1 || lp_lateness_excludes(&pool->lateness, begin, rows);
  set_threads(pool, frame, alone ? 1 : pool->threads);
  if (alone) {
    segment(frame, 0);
    return;
  }
  const work_clock clock = clock_begin();
  run_together(pool, segment, frame);
  const double end = lp_now_ms(), alone_ms = computed_ms(&clock) + 1e-6 * (double)pool->computed_ns;
  lp_lateness_judge(&pool->lateness, end, rows, end - begin, alone_ms);
}

/* A frame for a segment that takes items in turn. */
typedef struct {
  lp_frame frame; /* the first member: the segment gets its address */
  void (*act)(void *user, int64_t i);
  void *user;
  int64_t next, count;
} items;

static void take_items(const lp_frame *frame, int64_t thread) {
  items *of = (items *)(uintptr_t)frame;
  (void)thread;
  for (int64_t i; (i = __atomic_fetch_add(&of->next, 1, __ATOMIC_RELAXED)) < of->count;)
    of->act(of->user, i);
}

void lp_pool_each(lp_pool *pool, void (*act)(void *user, int64_t i), void *user, int64_t count) {
  items all = {.act = act, .user = user, .count = count};
  if (count > 1)
    lp_pool_run(pool, take_items, &all.frame);
  else if (count == 1)
    act(user, 0);
}

lp_pool *lp_pool_create(int32_t threads) {
  if (threads <= 0) threads = lp_machine_threads();
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  /* lp_alloc aligns to 16 bytes only. */
  lp_pool *pool = aligned_alloc(64, sizeof *pool);
  if (!pool) abort();
  *pool = (lp_pool){.threads = 1};
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
