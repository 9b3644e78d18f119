/* A pool of threads that run a segment together.
 *
 * A decode step of a small model takes less than a hundred microseconds, so waking must be cheap: workers spin for a
 * moment after each segment before they sleep, and the thread that starts a segment makes a system call only when it
 * wakes a worker. While they spin they yield to other threads: the two sides of a program on one machine compute in
 * turns, on the same cores.
 *
 * A segment is handed over in three steps. The caller opens the gate, workers that have a core join, and when enough
 * have joined or its patience has ended the caller closes the gate and lets those go that have joined. So the caller
 * never waits for a worker that does not run. */
#include <math.h>
#include <pthread.h>
#include <sched.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/cores.h"
#include "runtime/exec/pool.h"
#include "runtime/exec/sharing.h"

enum {
  MAX_THREADS = 1024,
  SPINS = 64,           /* times that a worker reads `gate`, about 3 us, between two looks at the clock */
  PATIENT_SPINS = 2500, /* times that a thread polls, about 50 us, before it leaves its core to others */
  MOST_MISSED = 2       /* segments that a worker misses in a row before it sleeps */
};
static const double grace_ms = 0.2; /* a worker spins for this long: longer than drawing a token takes */
/* Threads spin this long at a barrier before they give way, and that is no computation. */
static const double spin_ms = 0.05;

/* The gate: the number of the round, the workers invited and those that have joined. The round is open while fewer have
 * joined than were invited. */
static const uint64_t gate_joined = 0xffff, gate_invited = 0xffff0000;
enum { GATE_INVITED_SHIFT = 16, GATE_ROUND_SHIFT = 32 };

typedef struct {
  lp_pool *pool;
  pthread_t thread;
} pool_worker;

struct lp_pool {
  /* `gate` and the members that a worker reads next share a cache line. */
  _Alignas(64) uint64_t gate;
  uint32_t go;    /* the last round whose workers may begin */
  uint32_t round; /* the caller's: of the last gate that it opened */
  int32_t threads;
  int32_t workers; /* that take part at once: with the caller no more than there are cores */
  int32_t core;    /* on which the caller began its last segment; -1: unknown */
  bool clocked;    /* the workers add to computed_ns */
  lp_segment_fn *segment;
  lp_frame *frame;
  pool_worker *worker; /* [threads - 1] */
  lp_sharing sharing;
  _Alignas(64) int32_t running; /* workers that have not finished the segment */
  int64_t computed_ns;          /* processor time that the workers took for the segment */
  _Alignas(64) int32_t ready;   /* workers that have run since they woke */
  int32_t asleep;               /* workers that wait on `wake` and have not been woken; written under `mutex` */
  pthread_mutex_t mutex;
  pthread_cond_t wake;
  int32_t wakes; /* workers that may wake */
  bool stop;
  lp_barrier barrier;
};

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* One step of a wait; `steps` counts those before it. */
static void wait_step(int64_t steps) {
  if (steps < PATIENT_SPINS)
    relax();
  else
    lp_give_way();
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

static uint32_t round_of(uint64_t gate) {
  return (uint32_t)(gate >> GATE_ROUND_SHIFT);
}

/* Returns the worker's number in the round, from 1; 0: the round is closed. */
static int32_t join_round(lp_pool *pool, uint64_t gate) {
  const uint32_t round = round_of(gate);
  while (round_of(gate) == round && (gate & gate_joined) < (gate & gate_invited) >> GATE_INVITED_SHIFT)
    if (__atomic_compare_exchange_n(&pool->gate, &gate, gate + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      return (int32_t)(gate & gate_joined) + 1;
  return 0;
}

/* Beside the caller, a worker would only take time from it. */
static bool shares_core(const lp_pool *pool) {
  const int32_t core = __atomic_load_n(&pool->core, __ATOMIC_RELAXED);
  return core >= 0 && core == sched_getcpu();
}

/* Moves the worker to another core than the caller's. Linux may wake it there although another one is idle: where most
 * cores were busy of late, it does not look for an idle one. Returns false when the worker has not moved. */
static bool leave_core(const lp_pool *pool) {
  const int core = __atomic_load_n(&pool->core, __ATOMIC_RELAXED);
  cpu_set_t allowed, others;
  if (core < 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  others = allowed;
  CPU_CLR((size_t)core, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return false;
  (void)sched_setaffinity(0, sizeof allowed, &allowed);
  return !shares_core(pool);
}

/* Spins until the worker joins a round, whose number becomes *seen. Returns its number in the round; 0: it sleeps now.
 */
static int32_t await_round(lp_pool *pool, uint32_t *seen) {
  const double until = lp_now_ms() + grace_ms;
  int missed = 0;
  do {
    for (int i = 0; i < SPINS; i++) {
      const uint64_t gate = __atomic_load_n(&pool->gate, __ATOMIC_ACQUIRE);
      if (round_of(gate) != *seen) {
        if (shares_core(pool) && !leave_core(pool)) return 0;
        *seen = round_of(gate);
        const int32_t number = join_round(pool, gate);
        if (number > 0) return number;
        missed++;
      }
      relax();
    }
    if (missed >= MOST_MISSED || shares_core(pool)) return 0;
    (void)sched_yield();
  } while (lp_now_ms() < until);
  return 0;
}

/* Returns false when the pool ends. */
static bool sleep_until_woken(lp_pool *pool) {
  pthread_mutex_lock(&pool->mutex);
  __atomic_store_n(&pool->asleep, pool->asleep + 1, __ATOMIC_RELAXED);
  while (pool->wakes == 0 && !pool->stop)
    pthread_cond_wait(&pool->wake, &pool->mutex);
  const bool woken = pool->wakes > 0;
  if (woken) pool->wakes--;
  pthread_mutex_unlock(&pool->mutex);
  return woken;
}

/* The processor time of a thread at the start of a segment. */
typedef struct {
  int64_t waits;
  double cpu_ms;
} work_clock;

static work_clock clock_begin(bool clocked) {
  return clocked ? (work_clock){lp_gave_way(), lp_thread_cpu_ms()} : (work_clock){0};
}

/* The processor time since then, without that spent in long waits. */
static double computed_ms(const work_clock *begin) {
  double spun_ms = spin_ms * (double)(lp_gave_way() - begin->waits);
  return fmax(lp_thread_cpu_ms() - begin->cpu_ms - spun_ms, 0);
}

static void run_share(lp_pool *pool, int32_t number, uint32_t round) {
  for (int64_t i = 0; __atomic_load_n(&pool->go, __ATOMIC_ACQUIRE) != round; i++)
    wait_step(i);
  const bool clocked = pool->clocked;
  const work_clock clock = clock_begin(clocked);
  pool->segment(pool->frame, number);
  if (clocked) __atomic_add_fetch(&pool->computed_ns, (int64_t)(1e6 * computed_ms(&clock)), __ATOMIC_RELAXED);
  __atomic_sub_fetch(&pool->running, 1, __ATOMIC_RELEASE);
}

static void *work(void *user) {
  lp_pool *pool = ((pool_worker *)user)->pool;
  uint32_t seen = 0;
  do {
    __atomic_add_fetch(&pool->ready, 1, __ATOMIC_RELAXED);
    for (int32_t number; (number = await_round(pool, &seen)) > 0;)
      run_share(pool, number, seen);
    __atomic_sub_fetch(&pool->ready, 1, __ATOMIC_RELAXED);
  } while (sleep_until_woken(pool));
  return NULL;
}

/* ---- the caller -------------------------------------------------------------------------------------------------- */

/* A worker may hold the mutex and have lost its core; then all sleep on until a later segment. */
static void wake_workers(lp_pool *pool, int32_t count) {
  if (count == 0 || pthread_mutex_trylock(&pool->mutex) != 0) return;
  if (count > pool->asleep) count = pool->asleep;
  __atomic_store_n(&pool->asleep, pool->asleep - count, __ATOMIC_RELAXED);
  pool->wakes += count;
  for (int32_t i = 0; i < count; i++)
    pthread_cond_signal(&pool->wake);
  pthread_mutex_unlock(&pool->mutex);
}

/* Opens a round and returns how many workers have joined. A worker that was about to sleep then is woken after all. */
static int32_t gather_workers(lp_pool *pool, const lp_turn *turn) {
  const uint64_t round = ++pool->round;
  __atomic_store_n(&pool->gate, round << GATE_ROUND_SHIFT | (uint64_t)turn->invite << GATE_INVITED_SHIFT,
                   __ATOMIC_RELEASE);
  wake_workers(pool, turn->wake);
  const double until = turn->begin_ms + turn->patience_ms;
  uint64_t gate = 0;
  for (int64_t i = 0; (int32_t)(gate & gate_joined) < turn->invite; i++) {
    gate = __atomic_load_n(&pool->gate, __ATOMIC_ACQUIRE);
    wait_step(i);
    if (i >= PATIENT_SPINS) wake_workers(pool, turn->invite - (int32_t)(gate & gate_joined));
    if (lp_now_ms() > until) break;
  }
  return (int32_t)(__atomic_fetch_and(&pool->gate, ~gate_invited, __ATOMIC_ACQ_REL) & gate_joined);
}

static void set_threads(lp_pool *pool, lp_frame *frame, int32_t threads) {
  frame->barrier = &pool->barrier;
  frame->threads = threads;
  for (int64_t i = 0; i < frame->sequences; i++) {
    frame->sequence[i].barrier = &pool->barrier;
    frame->sequence[i].threads = threads;
  }
}

/* Runs the segment on the caller and the workers that have joined. */
static lp_threads_time run_together(lp_pool *pool, lp_segment_fn *segment, lp_frame *frame, int32_t workers,
                                    bool clocked) {
  pool->segment = segment;
  pool->frame = frame;
  pool->running = workers;
  pool->clocked = clocked;
  pool->computed_ns = 0;
  const work_clock clock = clock_begin(clocked);
  __atomic_store_n(&pool->go, pool->round, __ATOMIC_RELEASE);
  segment(frame, 0);
  for (int64_t i = 0; __atomic_load_n(&pool->running, __ATOMIC_ACQUIRE) != 0; i++)
    wait_step(i);
  lp_threads_time all = {.threads = workers + 1};
  if (clocked) {
    all.computed_ms = computed_ms(&clock) + 1e-6 * (double)pool->computed_ns;
    all.waits = lp_gave_way() - clock.waits;
  }
  return all;
}

static void run_segment(lp_pool *pool, const lp_segment_work *work, lp_segment_fn *segment, lp_frame *frame) {
  const lp_workers workers = {.all = pool->workers,
                              .ready = __atomic_load_n(&pool->ready, __ATOMIC_RELAXED),
                              .asleep = __atomic_load_n(&pool->asleep, __ATOMIC_RELAXED)};
  const int32_t core = pool->sharing.always ? -1 : sched_getcpu();
  if (core != pool->core) __atomic_store_n(&pool->core, core, __ATOMIC_RELAXED);
  const lp_turn turn = lp_sharing_begin(&pool->sharing, work, workers, lp_now_ms());
  int32_t came = 0;
  if (turn.invite > 0) {
    came = gather_workers(pool, &turn);
    lp_sharing_count(&pool->sharing, &turn, came, lp_now_ms());
  } else {
    wake_workers(pool, turn.wake);
  }
  set_threads(pool, frame, came + 1);
  if (came == 0) {
    const double begin = lp_now_ms();
    segment(frame, 0);
    lp_sharing_end_alone(&turn, lp_now_ms() - begin);
    return;
  }
  const lp_threads_time all = run_together(pool, segment, frame, came, turn.clocked);
  lp_sharing_end_together(&pool->sharing, &turn, all, lp_now_ms());
}

static void run_alone(lp_pool *pool, lp_segment_fn *segment, lp_frame *frame) {
  set_threads(pool, frame, 1);
  segment(frame, 0);
}

/* New tokens of all sequences. */
static int64_t rows_of(const lp_frame *frame) {
  int64_t rows = frame->sym ? frame->sym[LP_SYM_B] * frame->sym[LP_SYM_S] : 1;
  return rows > 1 ? rows : 1;
}

void lp_pool_run(lp_pool *pool, lp_segment_fn *segment, lp_frame *frame, int64_t bytes) {
  const lp_segment_work work = {.segment = (uintptr_t)segment, .rows = rows_of(frame), .bytes = bytes};
  if (pool->threads == 1)
    run_alone(pool, segment, frame);
  else
    run_segment(pool, &work, segment, frame);
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
  const lp_segment_work work = {.segment = (uintptr_t)act, .rows = count};
  if (count > 1 && pool->threads > 1)
    run_segment(pool, &work, take_items, &all.frame);
  else
    take_items(&all.frame, 0);
}

lp_pool *lp_pool_create(int32_t threads) {
  if (threads <= 0) threads = lp_machine_threads();
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  /* lp_alloc aligns to 16 bytes only. */
  lp_pool *pool = aligned_alloc(64, sizeof *pool);
  if (!pool) {
    fprintf(stderr, "llmpart: out of memory: %zu bytes wanted\n", sizeof *pool);
    abort();
  }
  *pool = (lp_pool){.threads = 1, .core = sched_getcpu()};
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->wake, NULL);
  pool->worker = lp_alloc(sizeof(pool_worker) * (size_t)threads);
  LP_FOR_EACH(pool_worker, worker, pool->worker, threads - 1) {
    worker->pool = pool;
    if (pthread_create(&worker->thread, NULL, work, worker) != 0) break; /* fewer threads do the same work */
    pool->threads++;
  }
  const int32_t cores = pool->threads > 1 ? lp_machine_threads() : 1;
  pool->workers = pool->sharing.crew = (cores < pool->threads ? cores : pool->threads) - 1;
  return pool;
}

void lp_pool_free(lp_pool *pool) {
  if (!pool) return;
  pthread_mutex_lock(&pool->mutex);
  pool->stop = true;
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->mutex);
  for (int32_t i = 0; i < pool->threads - 1; i++)
    pthread_join(pool->worker[i].thread, NULL);
  pthread_mutex_destroy(&pool->mutex);
  pthread_cond_destroy(&pool->wake);
  free(pool->worker);
  free(pool);
}

void lp_pool_share_all(lp_pool *pool) {
  pool->sharing.always = true;
  pool->workers = pool->threads - 1;
}

int32_t lp_pool_threads(const lp_pool *pool) {
  return pool->threads;
}
