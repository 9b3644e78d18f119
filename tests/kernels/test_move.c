/* lpk_copy, lpk_fill, lpk_range and the barrier. */
#include "kernel_test.h"

#include <string.h>

typedef struct {
  copy_fn *run;
  char *y, *x;
  int64_t dims[4], ys[4], xs[4];
} call;

static void body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  call *c = context;
  c->run(c->y, c->x, c->dims, c->ys, c->xs, thread, threads);
}

static void check_copy(const call *c, int size) {
  for (int64_t i = 0; i < c->dims[0]; i++)
    for (int64_t j = 0; j < c->dims[1]; j++)
      for (int64_t k = 0; k < c->dims[2]; k++)
        for (int64_t l = 0; l < c->dims[3]; l++) {
          int64_t y = i * c->ys[0] + j * c->ys[1] + k * c->ys[2] + l * c->ys[3];
          int64_t x = i * c->xs[0] + j * c->xs[1] + k * c->xs[2] + l * c->xs[3];
          if (memcmp(c->y + y * size, c->x + x * size, (size_t)size) != 0) {
            kernel_fail("copy_%d of [%d][%d][%d][%d]: wrong at %d %d %d %d", size, (int)c->dims[0], (int)c->dims[1],
                        (int)c->dims[2], (int)c->dims[3], (int)i, (int)j, (int)k, (int)l);
            return;
          }
        }
}

static void test_copy(copy_fn *run, int size, const int64_t *dims, const int64_t *ys, const int64_t *xs,
                      int64_t x_start) {
  enum { ELEMENTS = 40000 };
  for (int64_t threads = 1; threads <= 3; threads++) {
    call c = {.run = run};
    memcpy(c.dims, dims, sizeof c.dims);
    memcpy(c.ys, ys, sizeof c.ys);
    memcpy(c.xs, xs, sizeof c.xs);
    char *x = kernel_alloc(ELEMENTS * 8);
    for (int i = 0; i < ELEMENTS * 8; i++)
      x[i] = (char)random_below(256);
    int64_t last = 1;
    for (int i = 0; i < 4; i++)
      last += (dims[i] - 1) * ys[i];
    c.y = kernel_alloc((size_t)(last * size));
    c.x = x + x_start * size;
    kernel_run(body, &c, threads);
    check_copy(&c, size);
    kernel_free(c.y);
    kernel_free(x);
  }
}

#define DIMS(...) ((const int64_t[4]){__VA_ARGS__})

static void test_copies(copy_fn *run, int size) {
  test_copy(run, size, DIMS(2, 3, 4, 5), DIMS(60, 20, 5, 1), DIMS(60, 20, 5, 1), 0);          /* contiguous */
  test_copy(run, size, DIMS(1, 1, 70, 50), DIMS(3500, 3500, 50, 1), DIMS(1, 1, 1, 70), 0);    /* 2-D transpose */
  test_copy(run, size, DIMS(2, 33, 5, 16), DIMS(2640, 80, 16, 1), DIMS(2640, 16, 528, 1), 0); /* swap of middle axes */
  test_copy(run, size, DIMS(2, 5, 33, 16), DIMS(2640, 528, 16, 1), DIMS(2640, 1, 80, 5), 0); /* last axis from within */
  test_copy(run, size, DIMS(2, 3, 4, 6), DIMS(72, 24, 6, 1), DIMS(0, 4, 1, 0), 0);           /* expand */
  test_copy(run, size, DIMS(1, 2, 3, 7), DIMS(42, 21, 7, 1), DIMS(0, 100, 30, -2), 20);      /* slice, reversed */
  test_copy(run, size, DIMS(1, 1, 9, 4), DIMS(0, 0, 10, 1), DIMS(0, 0, 4, 1), 0);            /* part of a concat */
  test_copy(run, size, DIMS(1, 1, 1, 1), DIMS(1, 1, 1, 1), DIMS(1, 1, 1, 1), 3);
  test_copy(run, size, DIMS(1, 1, 0, 5), DIMS(5, 5, 5, 1), DIMS(5, 5, 5, 1), 0);
}

typedef struct {
  int64_t rounds, sum[3];
} barrier_call;

static void barrier_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  barrier_call *c = context;
  for (int64_t i = 0; i < c->rounds; i++) {
    c->sum[thread]++;
    barrier_wait(barrier, threads);
    for (int64_t j = 0; j < threads; j++)
      EXPECT(c->sum[j] == i + 1);
    barrier_wait(barrier, threads);
  }
}

void test_move(void) {
  test_copies(copy_1, 1);
  test_copies(copy_2, 2);
  test_copies(copy_4, 4);
  test_copies(copy_8, 8);
  float f[9];
  int64_t n[5];
  for (int64_t t = 0; t < 2; t++)
    range_f32(f, 9, 1, -0.5f, t, 2);
  for (int64_t t = 0; t < 2; t++)
    range_i64(n, 5, -2, 3, t, 2);
  for (int i = 0; i < 9; i++)
    EXPECT(f[i] == 1 - 0.5f * (float)i);
  for (int i = 0; i < 5; i++)
    EXPECT(n[i] == -2 + 3 * i);
  for (int64_t t = 0; t < 2; t++)
    fill_4(f, 8, 0x3f800000, t, 2);
  EXPECT(f[0] == 1 && f[7] == 1 && f[8] == -3);
  for (int64_t threads = 1; threads <= 3; threads++) {
    barrier_call c = {.rounds = 200};
    kernel_run(barrier_body, &c, threads);
  }
}
