/* The kernel that finds the greatest of rows, through the runtime: equals, what is no number, ids that no float
 * holds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gpu/gpu.h"
#include "tests/backend/harness.h"

LP_CASE(.timeout = 300);

enum { APART = 3 }; /* elements between rows */

static const float *row_of; /* for `order` */

static float value(int32_t id) {
  return isnan(row_of[id]) ? -INFINITY : row_of[id];
}

/* Tells whether an element ranks before another. */
static bool is_before(int32_t left, int32_t right) {
  return value(left) != value(right) ? value(left) > value(right) : left < right;
}

/* Kernels of a module, with those of the runtime. */
static lp_gpu *open_gpu(harness *h, lp_buf *kernels, lp_buf *table) {
  const lp_backend *cuda = lp_backend_find("cuda");
  const lp_emit_options options = {.side = LP_SIDE_DEVICE, .march = "sm_80"};
  lp_value *x = harness_input(h, LP_F32, "b,s,8", -1, 1);
  harness_keep(h, HARNESS_OP(h, LP_OP_SOFTMAX, x->type, x));
  harness_finish(h);
  ck_assert_int_eq(cuda->emit(h->module, &options, LP_EMIT_KERNELS, kernels, h->diag), LP_OK);
  ck_assert_int_eq(cuda->emit(h->module, &options, LP_EMIT_LAUNCHES, table, h->diag), LP_OK);
  const lp_gpu_source source = {.kernels_file = "kernels.cu",
                                .kernels = lp_buf_text(kernels),
                                .kernels_size = kernels->size,
                                .table_file = "launches.json",
                                .table = lp_buf_text(table),
                                .table_size = table->size,
                                .weights = ""};
  lp_gpu *gpu = NULL;
  ck_assert_int_eq(lp_gpu_create(&source, &gpu, h->diag), LP_OK);
  ck_assert(lp_gpu_has_top(gpu));
  return gpu;
}

/* The element after `last` in rank, or the first for -1; `vocab`: there is none. */
static int32_t next_of(int32_t last, int32_t vocab) {
  int32_t best = vocab;
  for (int32_t i = 0; i < vocab; i++)
    if ((last < 0 || is_before(last, i)) && (best == vocab || is_before(i, best))) best = i;
  return best;
}

static void compare(const float *row, int32_t vocab, int64_t wanted, const float *found) {
  double sum = 0;
  row_of = row;
  for (int32_t k = 0, last = -1, id; k < wanted; k++) {
    last = last == vocab ? vocab : next_of(last, vocab);
    memcpy(&id, found + 1 + wanted + k, sizeof id);
    ck_assert_int_eq(id, last);
    if (last < vocab) ck_assert(found[1 + k] == value(last));
  }
  for (int32_t i = 0; i < vocab; i++)
    sum += exp((double)value(i) - (double)found[1]);
  ck_assert_double_eq_tol((double)found[0], sum, 1e-4 * sum); /* it sums floats */
}

static void check(lp_gpu *gpu, float *rows, int64_t count, int64_t vocab, int64_t wanted, lp_diag *diag) {
  const lp_gpu_top top = {.rows = count, .vocab = vocab, .apart = vocab + APART, .wanted = wanted};
  const size_t bytes = (size_t)(count * top.apart) * sizeof *rows;
  float *found = malloc((size_t)(count * (1 + 2 * wanted)) * sizeof *found);
  lp_gpu_memory *memory = lp_gpu_memory_create(gpu);
  ck_assert_int_eq(lp_gpu_make_arena(gpu, memory, bytes, diag), LP_OK);
  ck_assert_int_eq(lp_gpu_write(gpu, memory, 0, rows, bytes, diag), LP_OK);
  ck_assert_int_eq(lp_gpu_find_top(gpu, memory, &top, found, diag), LP_OK);
  for (int64_t i = 0; i < count; i++)
    compare(rows + i * top.apart, (int32_t)vocab, wanted, found + i * (1 + 2 * wanted));
  lp_gpu_memory_free(gpu, memory);
  free(found);
}

/* A few values, so that there are equals; between the rows there are greater ones. */
static float *random_rows(int64_t count, int64_t vocab) {
  float *rows = malloc((size_t)(count * (vocab + APART)) * sizeof *rows);
  for (int64_t i = 0; i < count * (vocab + APART); i++)
    rows[i] = i % (vocab + APART) >= vocab ? 1000 : rand() % 50 == 0 ? NAN : (float)(rand() % 16) * 0.5f;
  return rows;
}

LP_TEST(greatest_of_rows) {
  static const int64_t sizes[][2] = {{1, 1}, {5, 8}, {1000, 21}, {70001, 5}};
  harness *h = harness_create(1, 1, 0);
  lp_buf kernels = {0}, table = {0};
  lp_gpu *gpu = open_gpu(h, &kernels, &table);
  srand(1);
  for (size_t i = 0; i < LP_COUNT(sizes); i++) {
    float *rows = random_rows(2, sizes[i][0]);
    rows[0] = 1;
    check(gpu, rows, 2, sizes[i][0], sizes[i][1], h->diag);
    free(rows);
  }
  lp_gpu_free(gpu);
  lp_buf_free(&kernels);
  lp_buf_free(&table);
  harness_free(h);
}

/* From 2^24 on floats hold only every other id. */
LP_TEST(ids_beyond_floats) {
  enum { BEYOND = 1 << 24, VOCAB = BEYOND + 64 };
  harness *h = harness_create(1, 1, 0);
  lp_buf kernels = {0}, table = {0};
  lp_gpu *gpu = open_gpu(h, &kernels, &table);
  float *row = calloc(VOCAB + APART, sizeof *row);
  row[BEYOND + 1] = row[BEYOND + 3] = row[BEYOND + 33] = 2;
  row[BEYOND + 7] = 3;
  check(gpu, row, 1, VOCAB, 4, h->diag);
  free(row);
  lp_gpu_free(gpu);
  lp_buf_free(&kernels);
  lp_buf_free(&table);
  harness_free(h);
}
