/* lpk_norm and lpk_softmax. */
#include "kernel_test.h"

#include <math.h>

typedef struct {
  norm_fn *run;
  int64_t n;
  int rms, has_residual, has_sum, has_weight, has_bias;
} variant;

#define ENTRY(i, n, rms, residual, sum, weight, bias) {norm_##i, n, rms, residual, sum, weight, bias},
static const variant variants[] = {NORM_VARIANTS(ENTRY)};

typedef struct {
  const variant *v;
  float *y, *sum, *x, *residual, *weight, *bias;
  int64_t rows, ldx;
} call;

static void body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  call *c = context;
  c->v->run(c->y, c->sum, c->x, c->residual, c->weight, c->bias, c->rows, c->ldx, thread, threads);
}

static void check_row(const call *c, int64_t r) {
  const variant *v = c->v;
  double x[1024], mean = 0, squares = 0;
  for (int64_t i = 0; i < v->n; i++) {
    x[i] = (double)c->x[r * c->ldx + i] + (v->has_residual ? (double)c->residual[r * v->n + i] : 0);
    mean += x[i] / (double)v->n;
  }
  if (v->rms) mean = 0;
  for (int64_t i = 0; i < v->n; i++)
    squares += (x[i] - mean) * (x[i] - mean) / (double)v->n;
  for (int64_t i = 0; i < v->n; i++) {
    double want = (x[i] - mean) / sqrt(squares + 1e-5);
    want = want * (v->has_weight ? (double)c->weight[i] : 1) + (v->has_bias ? (double)c->bias[i] : 0);
    EXPECT(near((double)c->y[r * v->n + i], want, 1, 2e-6));
    if (v->has_sum) EXPECT(near((double)c->sum[r * v->n + i], x[i], 1, 2e-7));
  }
}

static void test_norm(const variant *v, int64_t rows, int64_t threads) {
  call c = {.v = v, .rows = rows, .ldx = v->n + 3};
  size_t size = (size_t)(rows * v->n);
  c.x = random_floats((size_t)(rows * c.ldx));
  c.residual = random_floats(size);
  c.weight = random_floats((size_t)v->n);
  c.bias = random_floats((size_t)v->n);
  c.y = kernel_alloc(size * 4);
  c.sum = kernel_alloc(size * 4);
  kernel_run(body, &c, threads);
  for (int64_t r = 0; r < rows; r++)
    check_row(&c, r);
  kernel_free(c.x);
  kernel_free(c.residual);
  kernel_free(c.weight);
  kernel_free(c.bias);
  kernel_free(c.y);
  kernel_free(c.sum);
}

typedef struct {
  float *y, *x;
  int64_t rows, n;
  int log;
} softmax_call;

static void softmax_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  softmax_call *c = context;
  (c->log ? softmax_log : softmax_plain)(c->y, c->x, c->rows, c->n, thread, threads);
}

static void test_softmax(int64_t rows, int64_t n, int log, int64_t threads) {
  softmax_call c = {.rows = rows, .n = n, .log = log};
  c.x = random_floats((size_t)(rows * n));
  c.y = kernel_alloc((size_t)(rows * n) * 4);
  for (int64_t i = 0; i < rows * n; i += 5)
    c.x[i] = i % n == 0 ? c.x[i] * 30 : -INFINITY;
  kernel_run(softmax_body, &c, threads);
  int64_t lane = n / 16;
  double added = 1e-6 + (double)lane * 0x1p-24; /* a lane of the sum rounds each time that it adds */
  for (int64_t r = 0; r < rows; r++) {
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
      max = fmax(max, (double)c.x[r * n + i]);
    for (int64_t i = 0; i < n; i++)
      sum += exp((double)c.x[r * n + i] - max);
    for (int64_t i = 0; i < n; i++) {
      double x = (double)c.x[r * n + i] - max, want = log ? x - logf((float)sum) : exp(x) / sum;
      if (isinf(max)) want = NAN;
      if (!near((double)c.y[r * n + i], want, log ? 40 : 1, added))
        kernel_fail("softmax of %d, log %d: %g, not %g", (int)n, log, (double)c.y[r * n + i], want);
    }
  }
  kernel_free(c.x);
  kernel_free(c.y);
}

void test_rows(void) {
  static const int64_t widths[] = {1, 2, 16, 17, 100, 1000};
  for (int64_t threads = 1; threads <= 3; threads++) {
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
      test_norm(&variants[i], 1, threads);
      test_norm(&variants[i], 7, threads);
    }
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
      test_softmax(5, widths[i], 0, threads);
      test_softmax(1, widths[i], 1, threads);
    }
  }
}
