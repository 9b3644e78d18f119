/* Measures this machine on all cores at once: a chain of multiply-adds, reads of more memory than the caches hold, and
 * repeated reads of a part of the last cache.
 *
 * Each thread does its work in parts and takes its own CPU time for each, so that other work on the machine, which
 * takes the processor away, changes little. */
#include "base/number.h"
#include "hwmodels/hwmodels_internal.h"

#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

/* ---- kernels ---- */

typedef struct {
  float (*multiply_add)(int64_t rounds);            /* `rounds` multiply-adds in each of `chains` independent vectors */
  uint64_t (*read)(const void *data, size_t bytes); /* `bytes` is a multiple of 512 */
  int chains, lanes;                                /* lanes: floats of a vector */
} kernels;

enum { CHAINS = 12, FMA_ROUNDS = 2 << 20 }; /* enough chains to hide the latency of one */

/* Defines the kernels for one instruction set. Vectors have the size of its registers, because a compiler keeps larger
 * ones in memory. The chains start at different values, because a compiler merges equal ones. */
#define LP_HOST_KERNELS(NAME, TARGET, BYTES)                                                                           \
  TARGET static float multiply_add_##NAME(int64_t rounds) {                                                            \
    typedef float floats __attribute__((vector_size(BYTES)));                                                          \
    floats sum[CHAINS], scale = (floats){0} + 0.999f, step = (floats){0} + 0.001f, total = {0};                        \
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sum[i] = step * (float)i;                                \
    for (int64_t r = 0; r < rounds; r++) {                                                                             \
      _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sum[i] = sum[i] * scale + step;                        \
    }                                                                                                                  \
    for (int i = 0; i < CHAINS; i++)                                                                                   \
      total += sum[i];                                                                                                 \
    return total[0];                                                                                                   \
  }                                                                                                                    \
  TARGET static uint64_t read_##NAME(const void *data, size_t bytes) {                                                 \
    typedef uint64_t words __attribute__((vector_size(BYTES)));                                                        \
    const words *at = data;                                                                                            \
    words sum[8] = {{0}};                                                                                              \
    for (size_t i = 0; i + 8 <= bytes / BYTES; i += 8) {                                                               \
      _Pragma("GCC unroll 8") for (int j = 0; j < 8; j++) sum[j] += at[i + (size_t)j];                                 \
    }                                                                                                                  \
    for (int j = 1; j < 8; j++)                                                                                        \
      sum[0] += sum[j];                                                                                                \
    return sum[0][0] + sum[0][BYTES / 8 - 1];                                                                          \
  }

LP_HOST_KERNELS(baseline, , 16)
#if defined(__x86_64__)
LP_HOST_KERNELS(avx2, __attribute__((target("avx2,fma"))), 32)
LP_HOST_KERNELS(avx512, __attribute__((target("avx512f"))), 64)
#endif

static kernels best_kernels(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return (kernels){multiply_add_avx512, read_avx512, CHAINS, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return (kernels){multiply_add_avx2, read_avx2, CHAINS, 8};
#endif
  return (kernels){multiply_add_baseline, read_baseline, CHAINS, 4};
}

/* ---- all cores ---- */

enum { PARTS = 16, BLOCK = 512 };

typedef struct {
  char *data;     /* [bytes] */
  size_t bytes;   /* a multiple of PARTS x BLOCK */
  size_t repeats; /* of the reads of each part, which are timed together */
  double ms;      /* CPU time of a part in the last phase */
  uint64_t sink;  /* keeps the kernels from being removed */
} worker;

static double cpu_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static double median(double *ms) {
  qsort(ms, PARTS, sizeof *ms, lp_compare_doubles);
  return fmax(ms[PARTS / 2], 1e-6);
}

static void *fill(void *user) {
  worker *w = user;
  memset(w->data, 1, w->bytes);
  return NULL;
}

static void *multiply_add(void *user) {
  worker *w = user;
  double ms[PARTS];
  for (int i = 0; i < PARTS; i++) {
    double start = cpu_ms();
    w->sink += best_kernels().multiply_add(FMA_ROUNDS / PARTS) > 0;
    ms[i] = cpu_ms() - start;
  }
  w->ms = median(ms);
  return NULL;
}

static void *stream(void *user) {
  worker *w = user;
  const size_t part = w->bytes / PARTS;
  double ms[PARTS];
  for (size_t i = 0; i < PARTS; i++) {
    double start = cpu_ms();
    for (size_t r = 0; r < w->repeats; r++)
      w->sink += best_kernels().read(w->data + (w->repeats > 1 ? 0 : i * part), part);
    ms[i] = (cpu_ms() - start) / (double)w->repeats;
  }
  w->ms = median(ms);
  return NULL;
}

/* Runs one phase on all workers at once. This thread runs the workers that got no thread. Returns the sum of their
 * parts per ms. */
static double run_phase(worker *workers, size_t count, void *(*phase)(void *)) {
  LP_OWNED(lp_free_at) pthread_t *threads = lp_alloc(count * sizeof *threads);
  size_t started = 1;
  while (started < count && pthread_create(&threads[started], NULL, phase, &workers[started]) == 0)
    started++;
  phase(&workers[0]);
  for (size_t i = started; i < count; i++)
    phase(&workers[i]);
  double sum = 0;
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && i < started) pthread_join(threads[i], NULL);
    sum += 1 / fmax(workers[i].ms, 1e-6);
  }
  return sum;
}

/* The bandwidth of reads in which each worker goes through `bytes` again and again. */
static double read_again(worker *workers, size_t cores, size_t bytes) {
  size_t most = workers[0].bytes, part = (bytes < most ? bytes : most) / BLOCK * BLOCK;
  for (size_t i = 0; i < cores; i++) {
    workers[i].bytes = part * PARTS; /* one part is read */
    workers[i].repeats = 8;
  }
  return part > 0 ? 1e3 * (double)part * run_phase(workers, cores, stream) : 0;
}

static double read_once(worker *workers, size_t cores) {
  run_phase(workers, cores, fill);
  size_t part = workers[0].bytes / PARTS;
  return 1e3 * (double)part * run_phase(workers, cores, stream);
}

lp_host_rates lp_host_measure(size_t cores, double cache) {
  enum { ALL_BYTES = 160 << 20, LEAST_BYTES = 8 << 20 };
  const kernels best = best_kernels();
  size_t share = ALL_BYTES / cores > LEAST_BYTES ? ALL_BYTES / cores : LEAST_BYTES;
  share = share / (PARTS * BLOCK) * (PARTS * BLOCK);
  LP_OWNED(lp_free_at) worker *workers = lp_alloc(cores * sizeof *workers);
  char *data = mmap(NULL, cores * share, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool mapped = data != MAP_FAILED;
  if (mapped) madvise(data, cores * share, MADV_HUGEPAGE);
  for (size_t i = 0; i < cores; i++)
    workers[i] = (worker){.data = mapped ? data + i * share : NULL, .bytes = share, .repeats = 1};
  int rounds = FMA_ROUNDS / PARTS;
  double flops_per_part = 2.0 * rounds * best.chains * best.lanes;
  lp_host_rates rates = {.flops = 1e3 * flops_per_part * run_phase(workers, cores, multiply_add), .bandwidth = 1e9};
  if (mapped) {
    rates.bandwidth = read_once(workers, cores);
    if (cache > 0)
      rates.cache_bandwidth = fmax(read_again(workers, cores, (size_t)(cache * 0.4 / (double)cores)), rates.bandwidth);
    munmap(data, cores * share);
  }
  return rates;
}
