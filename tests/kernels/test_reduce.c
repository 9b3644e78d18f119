/* lpk_reduce, lpk_argmax, lpk_topk and lpk_cumsum. */
#include "kernel_test.h"

#include <math.h>

typedef struct {
  void *y;
  const void *x;
  int64_t outer, n, inner;
  int kind, dtype, min, last, exclusive, reverse;
} call;

static void reduce_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  call *c = context;
  reduce(c->y, c->x, c->outer, c->n, c->inner, c->kind, c->dtype, thread, threads);
}

static void argmax_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  call *c = context;
  argmax(c->y, c->x, c->outer, c->n, c->inner, c->min, c->last, thread, threads);
}

static void cumsum_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  call *c = context;
  cumsum(c->y, c->x, c->outer, c->n, c->inner, c->exclusive, c->reverse, c->dtype, thread, threads);
}

static double element(const call *c, int64_t o, int64_t j, int64_t i) {
  int64_t at = (o * c->n + j) * c->inner + i;
  return c->dtype == LPK_F32 ? (double)((const float *)c->x)[at] : (double)((const int64_t *)c->x)[at];
}

static double start(int kind) {
  return kind == LPK_REDUCE_MAX ? -INFINITY : kind == LPK_REDUCE_MIN ? INFINITY : kind == LPK_REDUCE_PROD ? 1 : 0;
}

static double step(int kind, double acc, double x) {
  switch (kind) {
  case LPK_REDUCE_MAX:
    return isnan(x) || isnan(acc) ? NAN : fmax(acc, x);
  case LPK_REDUCE_MIN:
    return isnan(x) || isnan(acc) ? NAN : fmin(acc, x);
  case LPK_REDUCE_PROD:
    return acc * x;
  case LPK_REDUCE_SUMSQ:
  case LPK_REDUCE_L2:
    return acc + x * x;
  case LPK_REDUCE_L1:
    return acc + fabs(x);
  case LPK_REDUCE_LOGSUMEXP:
    return acc + exp(x);
  default:
    return acc + x;
  }
}

static double finish(const call *c, double acc) {
  switch (c->kind) {
  case LPK_REDUCE_MEAN:
    return c->dtype == LPK_F32 ? acc / (double)c->n : trunc(acc / (double)c->n);
  case LPK_REDUCE_L2:
    return sqrt(acc);
  case LPK_REDUCE_LOGSUM:
  case LPK_REDUCE_LOGSUMEXP:
    return log(acc);
  default:
    return acc;
  }
}

static void check_reduce(const call *c) {
  for (int64_t o = 0; o < c->outer; o++)
    for (int64_t i = 0; i < c->inner; i++) {
      double want = start(c->kind);
      for (int64_t j = 0; j < c->n; j++)
        want = step(c->kind, want, element(c, o, j, i));
      want = finish(c, want);
      int64_t at = o * c->inner + i;
      double got = c->dtype == LPK_F32 ? (double)((float *)c->y)[at] : (double)((int64_t *)c->y)[at];
      if (!near(got, want, 1 + fabs(want), c->kind == LPK_REDUCE_LOGSUM ? 2e-5 : 2e-6))
        kernel_fail("reduce kind %d dtype %d [%d][%d][%d]: %g, not %g", c->kind, c->dtype, (int)c->outer, (int)c->n,
                    (int)c->inner, got, want);
    }
}

static void test_kinds(int64_t outer, int64_t n, int64_t inner, int64_t threads) {
  size_t size = (size_t)(outer * n * inner);
  float *x = random_floats(size);
  int64_t *xi = kernel_alloc(size * 8);
  for (size_t i = 0; i < size; i++) {
    x[i] = x[i] + 1.2f; /* positive, so that logarithms exist */
    xi[i] = random_below(7) - 3;
  }
  void *y = kernel_alloc((size_t)(outer * inner) * 8);
  for (int kind = LPK_REDUCE_SUM; kind <= LPK_REDUCE_LOGSUMEXP; kind++) {
    call c = {.y = y, .x = x, .outer = outer, .n = n, .inner = inner, .kind = kind, .dtype = LPK_F32};
    if (kind != LPK_REDUCE_PROD || n < 40) {
      kernel_run(reduce_body, &c, threads);
      check_reduce(&c);
    }
    c.x = xi;
    c.dtype = LPK_I64;
    if (kind <= LPK_REDUCE_L1 && (kind != LPK_REDUCE_PROD || n < 30)) {
      kernel_run(reduce_body, &c, threads);
      check_reduce(&c);
    }
  }
  kernel_free(x);
  kernel_free(xi);
  kernel_free(y);
}

static void test_argmax(int64_t outer, int64_t n, int64_t inner, int64_t threads) {
  float *x = random_floats((size_t)(outer * n * inner));
  for (int64_t i = 0; i < outer * n * inner; i++)
    x[i] = (float)random_below(5); /* many ties */
  int64_t *y = kernel_alloc((size_t)(outer * inner) * 8);
  for (int mode = 0; mode < 4; mode++) {
    call c = {
        .y = y, .x = x, .outer = outer, .n = n, .inner = inner, .dtype = LPK_F32, .min = mode & 1, .last = mode >> 1};
    kernel_run(argmax_body, &c, threads);
    for (int64_t o = 0; o < outer; o++)
      for (int64_t i = 0; i < inner; i++) {
        int64_t want = 0;
        for (int64_t j = 1; j < n; j++) {
          double a = element(&c, o, j, i), b = element(&c, o, want, i);
          if ((c.min ? a < b : a > b) || (c.last && a == b)) want = j;
        }
        EXPECT(y[o * inner + i] == want);
      }
  }
  kernel_free(x);
  kernel_free(y);
}

static void test_cumsum(int64_t outer, int64_t n, int64_t inner, int64_t threads) {
  size_t size = (size_t)(outer * n * inner);
  int64_t *x = kernel_alloc(size * 8), *y = kernel_alloc(size * 8);
  for (size_t i = 0; i < size; i++)
    x[i] = random_below(100);
  for (int mode = 0; mode < 4; mode++) {
    call c = {.y = y,
              .x = x,
              .outer = outer,
              .n = n,
              .inner = inner,
              .dtype = LPK_I64,
              .exclusive = mode & 1,
              .reverse = mode >> 1};
    kernel_run(cumsum_body, &c, threads);
    for (int64_t o = 0; o < outer; o++)
      for (int64_t i = 0; i < inner; i++)
        for (int64_t j = 0, sum = 0; j < n; j++) {
          int64_t at = (o * n + (c.reverse ? n - 1 - j : j)) * inner + i;
          EXPECT(y[at] == (c.exclusive ? sum : sum + x[at]));
          sum += x[at];
        }
  }
  kernel_free(x);
  kernel_free(y);
}

void test_reduce(void) {
  static const int64_t shapes[][3] = {{1, 1, 1},   {3, 17, 1}, {1, 1000, 1}, {2, 5, 3},
                                      {1, 30, 70}, {5, 3, 16}, {2, 100, 33}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int64_t threads = 1; threads <= 3; threads++) {
      test_kinds(shapes[i][0], shapes[i][1], shapes[i][2], threads);
      test_argmax(shapes[i][0], shapes[i][1], shapes[i][2], threads);
      test_cumsum(shapes[i][0], shapes[i][1], shapes[i][2], threads);
    }
  float special[3] = {1, NAN, 2}, most;
  int64_t place;
  reduce(&most, special, 1, 3, 1, LPK_REDUCE_MAX, LPK_F32, 0, 1);
  argmax(&place, special, 1, 3, 1, 0, 0, 0, 1);
  EXPECT(isnan(most) && place == 1);
  const float unordered[5] = {0, NAN, -0.0f, -INFINITY, NAN};
  float y[5];
  int64_t places[5];
  topk_f32(y, places, unordered, 5, 4, 0);
  EXPECT(places[0] == 1 && places[1] == 4 && places[2] == 0 && places[3] == 2 && isnan(y[0]) && y[3] == 0);
  topk_f32(y, places, unordered, 5, 5, 1);
  EXPECT(places[0] == 3 && places[1] == 0 && places[2] == 2 && places[3] == 1 && places[4] == 4);
}
