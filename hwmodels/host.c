/* The machine that llmpart runs on: measured once, then read back from the user's cache folder, so that two
 * compilations on one machine give the same plan. The measurement runs on all cores at once: a chain of multiply-adds,
 * and a read of more memory than the caches hold. */
#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "hwmodels/hwmodels_internal.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- kernels ---- */

typedef float floats __attribute__((vector_size(64)));
typedef uint64_t words __attribute__((vector_size(64)));

enum { MOST_CHAINS = 12, FMA_ROUNDS = 2 << 20 };

/* `rounds` multiply-adds in each of `chains` independent vectors: enough of them to hide the latency of one. */
static inline __attribute__((always_inline)) float fma_chains(int64_t rounds, int chains) {
  floats sum[MOST_CHAINS], scale, step;
  for (int i = 0; i < 16; i++)
    scale[i] = 0.999f, step[i] = 0.001f;
#pragma GCC unroll 12
  for (int i = 0; i < chains; i++) /* different starts: a compiler merges equal chains */
    sum[i] = step * (float)i;
  for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; i++)
      sum[i] = sum[i] * scale + step;
  }
  float total = 0;
  for (int i = 0; i < chains; i++)
    total += sum[i][i];
  return total;
}

typedef struct {
  float (*run)(int64_t rounds);
  int chains;
} fma_kernel;

static float fma_baseline(int64_t rounds) {
  return fma_chains(rounds, 3);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static float fma_avx2(int64_t rounds) {
  return fma_chains(rounds, 6);
}
__attribute__((target("avx512f"))) static float fma_avx512(int64_t rounds) {
  return fma_chains(rounds, 12);
}
#endif

static fma_kernel best_kernel(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return (fma_kernel){fma_avx512, 12};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return (fma_kernel){fma_avx2, 6};
#endif
  return (fma_kernel){fma_baseline, 3};
}

static uint64_t read_all(const words *data, size_t count) {
  words sum[4] = {{0}};
  for (size_t i = 0; i + 4 <= count; i += 4)
    for (size_t j = 0; j < 4; j++)
      sum[j] += data[i + j];
  words total = sum[0] + sum[1] + sum[2] + sum[3];
  return total[0] + total[7];
}

/* ---- all cores ---- */

typedef struct {
  words *data; /* [count] */
  size_t count;
  double ms;     /* time of the last phase */
  uint64_t sink; /* keeps the kernels from being removed */
} worker;

static void *fill(void *user) {
  worker *w = user;
  memset(w->data, 1, w->count * sizeof *w->data);
  return NULL;
}

static void *multiply_add(void *user) {
  worker *w = user;
  double start = lp_now_ms();
  w->sink += best_kernel().run(FMA_ROUNDS) > 0;
  w->ms = lp_now_ms() - start;
  return NULL;
}

static void *stream(void *user) {
  worker *w = user;
  double start = lp_now_ms();
  w->sink += read_all(w->data, w->count);
  w->ms = lp_now_ms() - start;
  return NULL;
}

/* Runs one phase on all workers at once. This thread runs the workers that got no thread. Returns the time of the
 * slowest worker, ms. */
static double run_phase(worker *workers, size_t count, void *(*phase)(void *)) {
  pthread_t *threads = lp_alloc(count * sizeof *threads);
  size_t started = 1;
  while (started < count && pthread_create(&threads[started], NULL, phase, &workers[started]) == 0)
    started++;
  phase(&workers[0]);
  for (size_t i = started; i < count; i++)
    phase(&workers[i]);
  double slowest = 1e-3;
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && i < started) pthread_join(threads[i], NULL);
    slowest = fmax(slowest, workers[i].ms);
  }
  free(threads);
  return slowest;
}

/* Rounds `value` to three digits; further ones would be noise. */
static double rounded(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.3g", value);
  return strtod(text, NULL);
}

static void measure(size_t cores, double *flops, double *bandwidth) {
  enum { ALL_BYTES = 160 << 20, LEAST_BYTES = 8 << 20 };
  size_t share = ALL_BYTES / cores > LEAST_BYTES ? ALL_BYTES / cores : LEAST_BYTES;
  size_t count = share / sizeof(words) & ~(size_t)63;
  worker *workers = lp_alloc(cores * sizeof *workers);
  size_t bytes = cores * count * sizeof(words);
  words *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool mapped = data != MAP_FAILED;
  if (mapped) madvise(data, bytes, MADV_HUGEPAGE);
  for (size_t i = 0; i < cores; i++)
    workers[i] = (worker){.data = mapped ? data + i * count : NULL, .count = count};
  double fma_per_worker = (double)FMA_ROUNDS * best_kernel().chains * 16;
  *flops = rounded(2e3 * fma_per_worker * (double)cores / run_phase(workers, cores, multiply_add));
  *bandwidth = 1e9; /* used when there is no memory for the measurement */
  if (mapped) {
    run_phase(workers, cores, fill);
    double first = run_phase(workers, cores, stream), second = run_phase(workers, cores, stream);
    *bandwidth = rounded(1e3 * (double)bytes / fmin(first, second));
    munmap(data, bytes);
  }
  free(workers);
}

/* ---- figures from the system ---- */

static size_t core_count(void) {
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return count > 0 ? (size_t)count : 1;
}

/* Physical memory, or the limit of the control group when that is less. */
static double memory_bytes(void) {
  double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  char *limit = NULL;
  size_t size = 0;
  if (lp_file_read("/sys/fs/cgroup/memory.max", &limit, &size, NULL) == LP_OK) {
    double most = strtod(limit, NULL); /* "max" reads as 0 */
    if (most > 0 && most < bytes) bytes = most;
    free(limit);
  }
  return bytes;
}

/* The size of the last-level cache as the system lists it for the first core; 0 when it lists none. */
static double listed_cache_bytes(void) {
  double bytes = 0;
  for (int index = 0; index < 8; index++) {
    char path[64], *text = NULL, *unit = NULL;
    size_t size = 0;
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    if (lp_file_read(path, &text, &size, NULL) != LP_OK) break;
    double value = strtod(text, &unit);
    bytes = fmax(bytes, value * (*unit == 'K' ? 1 << 10 : *unit == 'M' ? 1 << 20 : 1));
    free(text);
  }
  return bytes;
}

/* In a virtual machine sysconf multiplies the size by the number of cores and may give ten times too much. */
static double cache_bytes(void) {
  double listed = listed_cache_bytes();
  if (listed > 0) return listed;
  long level3 = sysconf(_SC_LEVEL3_CACHE_SIZE), level2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return level3 > 0 ? (double)level3 : level2 > 0 ? (double)level2 : 0;
}

static const char *cpu_name(lp_arena *arena) {
  char *text = NULL;
  size_t size = 0;
  const char *name = "a processor that does not name itself";
  if (lp_file_read("/proc/cpuinfo", &text, &size, NULL) != LP_OK) return name;
  const char *line = strstr(text, "model name");
  const char *value = line ? strstr(line, ": ") : NULL;
  if (value) name = lp_arena_strndup(arena, value + 2, strcspn(value + 2, "\n"));
  free(text);
  return name;
}

static void fill_in(lp_machine *m, size_t cores) {
  double flops = 0, bandwidth = 0;
  measure(cores, &flops, &bandwidth);
  m->kind = LP_MACHINE_CPU;
  static const char *const measured = "measured here, all cores at once";
  static const char *const widened = "as f32, which f16 and bf16 are widened to";
  struct {
    lp_hw_figure figure;
    double value;
    const char *source;
  } rows[] = {
      {LP_HW_PEAK_F32, flops, measured},
      {LP_HW_PEAK_F16, flops, widened},
      {LP_HW_PEAK_BF16, flops, widened},
      {LP_HW_BANDWIDTH, bandwidth, measured},
      {LP_HW_MEMORY, memory_bytes(), "sysconf, or the control group's limit"},
      {LP_HW_CACHE, cache_bytes(), "the last level, as the system lists it"},
      {LP_HW_COMPUTE_UTILISATION, 0.8, "assumed: the share of the multiply-add rate that a blocked GEMM reaches"},
      {LP_HW_MEMORY_UTILISATION, 0.9, "assumed: the share of the read rate that a GEMV reaches"},
      {LP_HW_LAUNCH, 0.002, "assumed: one barrier and the loop around it"},
      {LP_HW_PRICE, rounded((double)cores * 0.0446 / 3600),
       "USD 0.0446 per vCPU and hour: AWS c7i on demand, us-east-1, 2024"},
      {LP_HW_POWER, (double)cores * 5, "assumed: 5 W per core"},
  };
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    m->figure[rows[i].figure] = rows[i].value;
    m->source[rows[i].figure] = rows[i].source;
  }
}

/* ---- cache ---- */

/* A sanitizer slows the measurement many times, so such a build keeps a file of its own. */
#if defined(__SANITIZE_ADDRESS__)
#define CACHE_NAME "host-" LP_VERSION "-sanitized.yaml"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CACHE_NAME "host-" LP_VERSION "-sanitized.yaml"
#endif
#endif
#if !defined(CACHE_NAME)
#define CACHE_NAME "host-" LP_VERSION ".yaml"
#endif

/* NULL when there is no cache folder. */
static char *cache_path(void) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (!(cache && *cache == '/') && !(home && *home == '/')) return NULL;
  char *root = cache && *cache == '/' ? lp_strdup(cache) : lp_path_join(home, ".cache");
  char *folder = lp_path_join(root, "llmpart");
  mkdir(root, 0777);
  mkdir(folder, 0777);
  char *path = lp_path_join(folder, CACHE_NAME);
  free(root);
  free(folder);
  return path;
}

/* The kept measurement, if it was made on this processor with this number of cores. */
static lp_machine *kept(const char *path, const char *title) {
  char *text = NULL;
  size_t size = 0;
  lp_machine *machine = NULL;
  if (lp_file_read(path, &text, &size, NULL) != LP_OK) return NULL;
  lp_status status = lp_hw_parse(path, text, size, &machine, NULL);
  free(text);
  if (status == LP_OK && lp_streq(machine->title, title)) return machine;
  lp_hw_free(machine);
  return NULL;
}

bool lp_hw_keep_host(const lp_machine *machine) {
  char *path = cache_path();
  lp_buf text = {0};
  lp_hw_print(machine, &text);
  bool kept_it = path && lp_file_write(path, text.data, text.size, NULL) == LP_OK;
  lp_buf_free(&text);
  free(path);
  return kept_it;
}

/* Creates the machine without figures. */
static lp_machine *create_host(size_t cores) {
  lp_machine *machine = lp_alloc(sizeof *machine);
  machine->arena = lp_arena_create();
  machine->predictor = &lp_hw_roofline;
  machine->name = "host";
  machine->target = lp_target_host;
  machine->title = lp_arena_format(machine->arena, "%s, %zu cores", cpu_name(machine->arena), cores);
  return machine;
}

lp_machine *lp_hw_measure_host(void) {
  size_t cores = core_count();
  lp_machine *machine = create_host(cores);
  fill_in(machine, cores);
  return machine;
}

lp_status lp_hw_host(lp_machine **out, lp_diag *diag) {
  (void)diag;
  size_t cores = core_count();
  lp_machine *machine = create_host(cores);
  char *path = cache_path();
  lp_machine *old = path ? kept(path, machine->title) : NULL;
  if (old) {
    lp_hw_free(machine);
    machine = old;
    machine->target = lp_target_host; /* files of older versions lack it */
  } else {
    fill_in(machine, cores);
    (void)lp_hw_keep_host(machine); /* A folder that cannot be written is not an error: the next use measures again. */
  }
  free(path);
  *out = machine;
  return LP_OK;
}
