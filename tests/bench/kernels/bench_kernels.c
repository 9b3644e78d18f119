/* Compares the speed of the kernels with the machine's limits, measured in the same run:
 *
 *     bench_kernels [threads [linear|attention|rest [name [rows]]]]
 *
 * Best of several rounds, limits and kernels alternating, so that a slow phase of the machine meets both. `name` is a
 * part of the name of a product. */
#include "base/amx.h"
#include "bench_variants.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_THREADS = 64, ROUNDS = 7 };

static int64_t threads = 1;

/* One thread: its own processor time, so that other processes disturb less. */
static double now(void) {
  struct timespec t;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *filled(size_t count) {
  float *x = aligned_alloc(64, (count * 4 + 4096 + 63) / 64 * 64);
  if (!x) abort();
  for (size_t i = 0; i < count + 1024; i++)
    x[i] = (float)((i * 2654435761u >> 7) & 255) / 256 - 0.5f;
  return x;
}

/* ---- jobs on all threads, timed between barriers ---- */

typedef void job_body(void *job, int64_t thread, lp_barrier *barrier);
typedef struct {
  job_body *body;
  void *job;
  double best; /* seconds, of ROUNDS */
} task;

typedef struct {
  task *tasks;
  int count;
  int64_t thread;
} worker;

static lp_barrier job_barrier;

static void *work(void *arg) {
  worker *w = arg;
  for (int i = 0; i < ROUNDS * w->count; i++) {
    task *t = &w->tasks[i % w->count];
    barrier_wait(&job_barrier, threads);
    double start = now();
    t->body(t->job, w->thread, &job_barrier);
    barrier_wait(&job_barrier, threads);
    double time = now() - start;
    if (w->thread == 0 && (i < w->count || time < t->best)) t->best = time;
  }
  return NULL;
}

/* Times the tasks one after the other, in several rounds. */
static void measure(task *tasks, int count) {
  pthread_t handles[MAX_THREADS];
  worker workers[MAX_THREADS];
  for (int64_t i = threads - 1; i >= 0; i--) {
    workers[i] = (worker){tasks, count, i};
    if (i == 0)
      work(&workers[0]);
    else if (pthread_create(&handles[i], NULL, work, &workers[i]))
      abort();
  }
  for (int64_t i = 1; i < threads; i++)
    pthread_join(handles[i], NULL);
}

/* ---- limits ---- */

typedef struct {
  const float *data;
  int64_t bytes, rounds;
  double flops[MAX_THREADS];
} limits;

static void fma_body(void *job, int64_t thread, lp_barrier *barrier) {
  (void)barrier;
  float sink[256] = {0};
  limits *l = job;
  l->flops[thread] = limit_fma(l->rounds, sink);
}

static void dot_body(void *job, int64_t thread, lp_barrier *barrier) {
  (void)barrier;
  float sink[256] = {0};
  limits *l = job;
  l->flops[thread] = limit_dot(l->rounds, sink);
}

static void read_body(void *job, int64_t thread, lp_barrier *barrier) {
  (void)barrier;
  limits *l = job;
  int64_t part = l->bytes / threads / 4096 * 4096;
  float sink[256];
  limit_read(l->data + thread * part / 4, part, sink);
}

enum { FMA_ROUNDS = 200000, WEIGHTS = 256 << 20 };

/* Rates per nanosecond of a job and of the limit beside it. */
typedef struct {
  double rate, limit, seconds;
} figure;

static figure beside_peak(job_body *peak, job_body *body, void *job, double flops) {
  limits l = {.rounds = FMA_ROUNDS};
  task tasks[2] = {{peak, &l, 0}, {body, job, 0}};
  measure(tasks, 2);
  return (figure){flops / tasks[1].best * 1e-9, l.flops[0] * (double)threads / tasks[0].best * 1e-9, tasks[1].best};
}

static figure beside_read(job_body *body, void *job, double bytes, const float *data) {
  limits l = {.data = data, .bytes = WEIGHTS};
  task tasks[2] = {{read_body, &l, 0}, {body, job, 0}};
  measure(tasks, 2);
  return (figure){bytes / tasks[1].best * 1e-9, (double)WEIGHTS / tasks[0].best * 1e-9, tasks[1].best};
}

/* ---- linear ---- */

typedef struct {
  const char *name;
  linear_fn *run;
  int64_t n, k;
  int dtype, gated, bits;
  int64_t group;
} linear_variant;

#define LINEAR_ENTRY(name, n, k, dtype, act, gated, kernel, bits, group, pairs)                                        \
  {#name, linear_##name, n, k, dtype, gated, bits, group},
static const linear_variant linears[] = {LINEAR_VARIANTS(LINEAR_ENTRY)};

typedef struct {
  const linear_variant *v;
  float *y, *x;
  char *w;
  int64_t bytes, copies, m;
  void *scratch;
} linear_job;

static void linear_body(void *job, int64_t thread, lp_barrier *barrier) {
  linear_job *j = job;
  for (int64_t i = 0; i < j->copies; i++) {
    j->v->run(j->y, j->x, j->w + i * j->bytes, j->m, j->scratch, barrier, thread, threads);
    barrier_wait(barrier, threads);
  }
}

enum { MAX_M = 512 };

static void bench_gemv(linear_job *j, const float *weights) {
  j->copies = WEIGHTS / j->bytes;
  for (j->m = 1; j->m <= 4; j->m++) {
    figure f = beside_read(linear_body, j, (double)(j->bytes * j->copies), weights);
    printf("gemv %-15s m %3d %6.1f GB/s     %5.1f %% of read %.1f\n", j->v->name, (int)j->m, f.rate,
           100 * f.rate / f.limit, f.limit);
  }
  linear_job hot = *j;
  hot.m = 1, hot.copies = 50, hot.bytes = 0; /* the same weights again and again: from L2 or L3 */
  figure f = beside_peak(fma_body, linear_body, &hot, (double)(j->bytes * 50));
  printf("gemv %-15s m   1 %6.1f GB/s     from cache (%d KiB)\n", j->v->name, f.rate, (int)(j->bytes >> 10));
}

static void bench_gemm(linear_job *j, int64_t only) {
  static const int64_t rows[] = {8, 16, 32, 128, 512};
  const linear_variant *v = j->v;
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    if (only && rows[r] != only) continue;
    j->m = rows[r], j->copies = rows[r] < 128 ? 16 : 2;
    figure f = beside_peak(v->bits ? dot_body : fma_body, linear_body, j,
                           2.0 * (double)(j->m * v->n * v->k * (v->gated ? 2 : 1) * j->copies));
    printf("gemm %-15s m %3d %6.1f GFLOP/s %5.1f %% of peak %.1f\n", v->name, (int)j->m, f.rate, 100 * f.rate / f.limit,
           f.limit);
  }
}

static int64_t weight_bytes(const linear_variant *v) {
  int64_t count = v->n * v->k * (v->gated ? 2 : 1);
  if (v->bits) return count * v->bits / 8 + count / v->group * 2;
  return count * (v->dtype == LPK_F32 ? 4 : 2);
}

/* `only`: the number of rows, 0 for all. */
static void bench_linear(float *weights, const char *name, int64_t only) {
  float *y = filled(MAX_M * 4096), *x = filled(MAX_M * 2048);
  int64_t bytes = LPK_LINEAR_SCRATCH(MAX_M, 2048, threads), integer = LPK_INTEGER_SCRATCH(MAX_M, 2048, threads);
  void *scratch = aligned_alloc(64, (size_t)(bytes > integer ? bytes : integer) / 64 * 64 + 64);
  for (size_t i = 0; i < sizeof linears / sizeof *linears; i++) {
    const linear_variant *v = &linears[i];
    if (!strstr(v->name, name)) continue;
    linear_job j = {.v = v, .y = y, .x = x, .w = (char *)weights, .scratch = scratch};
    j.bytes = weight_bytes(v);
    if (only <= 1) bench_gemv(&j, weights);
    bench_gemm(&j, only);
  }
  free(y);
  free(x);
  free(scratch);
}

/* ---- attention ---- */

typedef struct {
  const char *name;
  attention_fn *run;
  int64_t heads, kv_heads, d;
  int dtype;
} attention_variant;

#define ATTENTION_ENTRY(name, kernel, heads, kv_heads, d, dtype) {#name, attention_##name, heads, kv_heads, d, dtype},
static const attention_variant attentions[] = {ATTENTION_VARIANTS(ATTENTION_ENTRY)};

typedef struct {
  const attention_variant *v;
  float *y, *q, *k, *values;
  int64_t s, p, c, calls, ys[3], qs[3];
  void *scratch;
} attention_job;

static void attention_body(void *job, int64_t thread, lp_barrier *barrier) {
  attention_job *j = job;
  for (int64_t i = 0; i < j->calls; i++) {
    j->v->run(j->y, j->q, j->k, j->values, j->ys, j->qs, j->s, j->p, j->c, j->scratch, barrier, thread, threads);
    barrier_wait(barrier, threads);
  }
}

static void bench_attention(float *cache, const char *only, int64_t rows) {
  static const int64_t shapes[][2] = {{512, 0}, {128, 0}, {4096, 0}, {1, 63}, {1, 511}, {1, 4095}, {1, 16383}};
  enum { LONGEST = 16384 };
  float *y = filled(4096 * 1024), *q = filled(4096 * 1024);
  void *scratch = aligned_alloc(64, ((size_t)LPK_ATTENTION_SCRATCH(128, 128, LONGEST, threads) + 63) / 64 * 64);
  for (size_t i = 0; i < sizeof attentions / sizeof *attentions; i++)
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
      const attention_variant *v = &attentions[i];
      if (!strstr(v->name, only) || (rows && rows != shapes[n][0])) continue;
      int64_t s = shapes[n][0], p = shapes[n][1], width = v->heads * v->d;
      attention_job j = {v,
                         y,
                         q,
                         cache,
                         cache + (32 << 20),
                         s,
                         p,
                         p + s > 4096 ? LONGEST : 4096,
                         s > 1 ? 1 : 20,
                         {0, width, v->d},
                         {0, width, v->d},
                         scratch};
      double pairs = (double)s * (double)p + (double)s * (double)(s + 1) / 2, flops = 4 * pairs * (double)width;
      figure f = beside_peak(fma_body, attention_body, &j, flops * (double)j.calls);
      double time = f.seconds / (double)j.calls;
      double bytes = (v->dtype == LPK_F32 ? 8.0 : 4.0) * (double)((p + s) * v->kv_heads * v->d);
      printf("attn  %-16s s %4d keys %5d  %8.1f us  %6.1f GFLOP/s (%4.1f %% of peak)  K and V %5.1f GB/s\n", v->name,
             (int)s, (int)(p + s), time * 1e6, f.rate, 100 * f.rate / f.limit / (strstr(v->name, "pairs") ? 2 : 1),
             bytes / time * 1e-9);
    }
  free(y);
  free(q);
  free(scratch);
}

/* ---- the rest, one thread ---- */

static double best_of(void (*run)(void *), void *context) {
  double best = 1e9;
  for (int i = 0; i < 20; i++) {
    double start = now();
    run(context);
    double time = now() - start;
    best = time < best ? time : best;
  }
  return best;
}

typedef struct {
  float *y, *x, *w;
  math_fn *math;
  void *scratch;
} plain;

static void run_math(void *c) {
  plain *p = c;
  for (int i = 0; i < 100; i++)
    p->math(p->y, p->x, 4096);
}
static void run_norm(void *c) {
  norm_768(((plain *)c)->y, ((plain *)c)->x, ((plain *)c)->w, 100);
}
static void run_softmax(void *c) {
  softmax_rows(((plain *)c)->y, ((plain *)c)->x, 100, 1000);
}
static void run_transpose(void *c) {
  transpose(((plain *)c)->y, ((plain *)c)->x, 512, 768);
}
static void run_matmul(void *c) {
  plain *p = c;
  matmul_plain(p->y, p->x, p->w, 384, 512, 512, p->scratch);
}

static void bench_rest(float *memory) {
  plain p = {memory, memory + (4 << 20), memory + (8 << 20), math_exp, memory + (12 << 20)};
  static const struct {
    const char *name;
    math_fn *run;
  } functions[] = {
      {"exp", math_exp}, {"silu", math_silu}, {"tanh", math_tanh}, {"gelu_erf", math_gelu_erf}, {"sin", math_sin}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    p.math = functions[i].run;
    printf("math  %-9s %6.3f ns an element\n", functions[i].name, best_of(run_math, &p) * 1e9 / 409600);
  }
  printf("norm  rms 768   %6.1f ns a row\n", best_of(run_norm, &p) * 1e9 / 100);
  printf("softmax 1000    %6.1f ns a row\n", best_of(run_softmax, &p) * 1e9 / 100);
  printf("transpose 512x768 f32 %6.1f GB/s (read and written)\n", 8.0 * 512 * 768 / best_of(run_transpose, &p) * 1e-9);
  printf("matmul 384x512x512    %6.1f GFLOP/s\n", 2.0 * 384 * 512 * 512 / best_of(run_matmul, &p) * 1e-9);
}

static void barrier_body(void *job, int64_t thread, lp_barrier *barrier) {
  (void)thread;
  for (int64_t i = 0; i < *(int64_t *)job; i++)
    barrier_wait(barrier, threads);
}

int main(int argc, char **argv) {
  if (argc > 1) threads = strtol(argv[1], NULL, 10);
  if (threads < 1 || threads > MAX_THREADS) return 2;
  (void)lp_amx_request(); /* without it the kernels for AMX end the program */
  float *memory = filled(WEIGHTS / 4);
  int64_t waits = 20000;
  task wait = {barrier_body, &waits, 0};
  measure(&wait, 1);
  printf("barrier %d threads %.0f ns\n", (int)threads, wait.best * 1e9 / (double)waits);
  const char *only = argc > 2 ? argv[2] : "";
  if (strstr("linear", only)) bench_linear(memory, argc > 3 ? argv[3] : "", argc > 4 ? strtol(argv[4], NULL, 10) : 0);
  if (strstr("attention", only))
    bench_attention(memory, argc > 3 ? argv[3] : "", argc > 4 ? strtol(argv[4], NULL, 10) : 0);
  if (strstr("rest", only)) bench_rest(memory);
  free(memory);
  return 0;
}
