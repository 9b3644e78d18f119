/* Kernels that read or write at computed indices. */
#include "backend/cpu/kernels/pack.h"
#include "kernel_test.h"

#include <math.h>
#include <string.h>

enum { D0 = 3, D1 = 5, D2 = 4, SIZE = D0 * D1 * D2 };

typedef struct {
  float *y;
  const float *x, *updates;
  const void *index, *table;
  const int64_t *dims, *xdims;
  int64_t count, width;
  int axis, reduction, depth, type;
} call;

/* The clamped index of ONNX's negative or wild one. */
static int64_t clamp(int64_t i, int64_t size) {
  return i < -size ? 0 : i < 0 ? i + size : i >= size ? size - 1 : i;
}

static void gather_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  call *c = context;
  gather(c->y, c->x, c->index, D0, c->width, D1, D2 * 4, c->count, c->type, thread, threads);
}

/* The first `axis` of D1 rows, as of a cache that has room for more. */
static void test_plain(int64_t axis, int64_t threads) {
  int64_t wide[7] = {0, 4, -1, -5, 2, 99, -99};
  int32_t narrow[7] = {0, 4, -1, -5, 2, 99, -99};
  float *x = random_floats(SIZE), *y = kernel_alloc(D0 * 7 * D2 * 4);
  for (int type = LPK_I64; type <= LPK_I32; type++) {
    memset(y, 0, D0 * 7 * D2 * 4);
    call c = {.y = y,
              .x = x,
              .index = type == LPK_I64 ? (void *)wide : (void *)narrow,
              .count = 7,
              .width = axis,
              .type = type};
    kernel_run(gather_body, &c, threads);
    for (int o = 0; o < D0; o++)
      for (int i = 0; i < 7; i++)
        EXPECT(memcmp(y + (o * 7 + i) * D2, x + (o * D1 + clamp(wide[i], axis)) * D2, D2 * 4) == 0);
  }
  kernel_free(x);
  kernel_free(y);
}

static void embed_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  call *c = context;
  embed(c->y, c->table, c->index, c->count, 6, c->width, c->type, thread, threads);
}

static void test_embed(int64_t width, int64_t threads) {
  int64_t index[4] = {5, 0, -1, 3};
  kernel_half *half = kernel_alloc((size_t)(6 * width) * 2);
  uint16_t *brain = kernel_alloc((size_t)(6 * width) * 2);
  float *single = random_floats((size_t)(6 * width)), *y = kernel_alloc((size_t)(4 * width) * 4);
  for (int64_t i = 0; i < 6 * width; i++) {
    uint32_t bits;
    single[i] = (float)(int)(single[i] * 100) / 64; /* exact in every type */
    memcpy(&bits, &single[i], 4);
    half[i] = (kernel_half)single[i];
    brain[i] = (uint16_t)(bits >> 16);
  }
  for (int type = LPK_F32; type <= LPK_BF16; type++) {
    void *tables[] = {single, half, brain};
    call c = {.y = y, .table = tables[type], .index = index, .count = 4, .width = width, .type = type};
    kernel_run(embed_body, &c, threads);
    for (int64_t i = 0; i < 4 * width; i++)
      EXPECT(y[i] == single[clamp(index[i / width], 6) * width + i % width]);
  }
  kernel_free(half);
  kernel_free(brain);
  kernel_free(single);
  kernel_free(y);
}

static void embed_groups_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  call *c = context;
  embed_groups(c->y, c->table, c->index, c->count, 40, c->width, c->type, thread, threads);
}

/* The forms of embed_groups() in variants.c. */
static const lpk_group_form forms[] = {{.group = 32, .bits = 8, .scale = LPK_F16},
                                       {.group = 32, .bits = 4, .scale = LPK_F16},
                                       {.group = 16, .bits = 6, .scale = LPK_I8, .super = 16},
                                       {.group = 32, .bits = 5, .scale = LPK_U8, .zeros = LPK_MINIMA, .super = 8},
                                       {.group = 32, .bits = 5, .scale = LPK_BF16, .zeros = LPK_DOUBLES},
                                       {.group = 32, .bits = 8, .scale = LPK_I8, .zeros = LPK_UNEVEN, .super = 8}};

/* Rows of a table of 40, packed as columns of a linear's weight. */
static void test_embed_groups(int64_t width, int number, int64_t threads) {
  enum { ROWS = 40 };
  lpk_group_form form = forms[number];
  int64_t index[5] = {39, 0, -1, 31, 32}, per_row = (width + form.group - 1) / form.group;
  form.n = ROWS, form.k = width;
  size_t bytes = lpk_group_panel_bytes(&form);
  char *table = kernel_alloc(LPK_PANELS(ROWS) * bytes);
  uint8_t *codes = kernel_alloc((size_t)(width * LPK_PANEL));
  float *scale = kernel_alloc((size_t)(per_row * LPK_PANEL) * 4), *y = kernel_alloc((size_t)(5 * width) * 4);
  float *super = kernel_alloc((size_t)(per_row * LPK_PANEL * 2) * 4);
  float *want = kernel_alloc((size_t)(ROWS * width) * 4);
  for (int64_t panel = 0; panel < LPK_PANELS(ROWS); panel++) {
    for (int64_t i = 0; i < per_row * LPK_PANEL; i++)
      scale[i] = (float)(1 + (i + panel) % 7) / (form.super ? 1 : 8);
    for (int64_t i = 0; i < per_row * LPK_PANEL * 2; i++)
      super[i] = (float)(1 + i % 3) / 4;
    for (int64_t i = 0; i < width * LPK_PANEL; i++) {
      int64_t j = i % LPK_PANEL, row = panel * LPK_PANEL + j, k = i / LPK_PANEL, g = k / form.group;
      int code = (int)((i * 31 + panel * 17) % (1 << form.bits)),
          middle = form.zeros == LPK_MINIMA ? 0 : 1 << (form.bits - 1);
      static const int8_t doubles[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
      static const int8_t uneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
      codes[i] = (uint8_t)(form.bits == 8 ? code - middle : code);
      if (form.zeros == LPK_DOUBLES || form.zeros == LPK_UNEVEN) {
        codes[i] = (uint8_t)(code % 16);
        code = (form.zeros == LPK_DOUBLES ? doubles : uneven)[code % 16], middle = 0;
      }
      float part = scale[g * LPK_PANEL + j], unit = 1, less = 0;
      if (form.super) unit = super[g / form.super * 2 * LPK_PANEL + j];
      if (form.zeros == LPK_MINIMA && form.super)
        less = super[(g / form.super * 2 + 1) * LPK_PANEL + j] * part; /* minima are as the scales */
      if (row < ROWS) want[row * width + k] = (float)(code - middle) * (part * unit) - less;
    }
    lpk_pack_group_panel(table + (size_t)panel * bytes, &form, codes, scale, scale, super);
  }
  call c = {.y = y, .table = table, .index = index, .count = 5, .width = width, .type = number};
  kernel_run(embed_groups_body, &c, threads);
  for (int64_t i = 0; i < 5 * width; i++)
    EXPECT(y[i] == want[clamp(index[i / width], ROWS) * width + i % width]);
  kernel_free(table);
  kernel_free(codes);
  kernel_free(scale);
  kernel_free(super);
  kernel_free(y);
  kernel_free(want);
}

/* Flat offset into [D0][D1][D2] of the element of [dims] at flat index i, with `at` on `axis`. */
static int64_t moved(const int64_t *dims, int64_t i, int axis, int64_t at) {
  int64_t p[3] = {i / dims[2] / dims[1], i / dims[2] % dims[1], i % dims[2]};
  p[axis] = at;
  return (p[0] * D1 + p[1]) * D2 + p[2];
}

static void gather_elements_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  call *c = context;
  gather_elements(c->y, c->x, c->index, c->dims, c->xdims, c->axis, thread, threads);
}

static void scatter_elements_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  call *c = context;
  scatter_elements(c->y, c->x, c->index, c->updates, c->dims, c->xdims, c->axis, c->reduction, barrier, thread,
                   threads);
}

static float joined(float old, float update, int reduction) {
  switch (reduction) {
  case LPK_SCATTER_ADD:
    return old + update;
  case LPK_SCATTER_MUL:
    return old * update;
  case LPK_SCATTER_MIN:
    return fminf(old, update);
  case LPK_SCATTER_MAX:
    return fmaxf(old, update);
  default:
    return update;
  }
}

static void test_elements(int axis, int64_t threads) {
  static const int64_t xdims[3] = {D0, D1, D2};
  int64_t dims[3] = {2, 3, 4}, index[24];
  dims[axis] = xdims[axis] < dims[axis] ? xdims[axis] : dims[axis];
  int64_t total = dims[0] * dims[1] * dims[2];
  float *x = random_floats(SIZE), *y = kernel_alloc(SIZE * 4), *updates = random_floats(24), want[SIZE];
  for (int64_t i = 0; i < total; i++)
    index[i] = random_below(2 * xdims[axis]) - xdims[axis];
  call c = {.y = y, .x = x, .updates = updates, .index = index, .dims = dims, .xdims = xdims, .axis = axis};
  kernel_run(gather_elements_body, &c, threads);
  for (int64_t i = 0; i < total; i++)
    EXPECT(y[i] == x[moved(dims, i, axis, clamp(index[i], xdims[axis]))]);
  for (int reduction = LPK_SCATTER_NONE; reduction <= LPK_SCATTER_MAX; reduction++) { /* places that come twice */
    c.reduction = reduction;
    kernel_run(scatter_elements_body, &c, threads);
    memcpy(want, x, sizeof want);
    for (int64_t i = 0; i < total; i++) {
      float *to = &want[moved(dims, i, axis, clamp(index[i], xdims[axis]))];
      *to = joined(*to, updates[i], reduction);
    }
    EXPECT(memcmp(y, want, sizeof want) == 0);
  }
  kernel_free(x);
  kernel_free(y);
  kernel_free(updates);
}

static void scatter_nd_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  call *c = context;
  scatter_nd(c->y, c->x, c->index, c->updates, c->xdims, c->count, c->depth, c->reduction, thread, threads);
}

static void test_scatter_nd(int reduction, int64_t threads) {
  static const int64_t xdims[3] = {D0, D1, D2};
  int64_t index[10] = {0, 2, -1, -1, 1, 4, 0, 2, 99, -99};
  float *x = random_floats(SIZE), *y = kernel_alloc(SIZE * 4), *updates = random_floats(5 * D2), want[SIZE];
  call c = {.y = y, .x = x, .updates = updates, .index = index, .xdims = xdims, .count = 5, .depth = 2};
  c.reduction = reduction;
  kernel_run(scatter_nd_body, &c, threads);
  memcpy(want, x, sizeof want);
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < D2; j++) {
      float *to = &want[(clamp(index[2 * i], D0) * D1 + clamp(index[2 * i + 1], D1)) * D2 + j];
      *to = joined(*to, updates[i * D2 + j], reduction);
    }
  EXPECT(memcmp(y, want, sizeof want) == 0);
  kernel_free(x);
  kernel_free(y);
  kernel_free(updates);
}

/* min and max give a NaN if the old or the new element is one. */
static void test_scatter_nan(void) {
  static const int64_t xdims[3] = {1, 1, 4}, index[4] = {0, 0, 0, 0};
  const float x[4] = {NAN, 1, NAN, 2}, updates[4] = {1, NAN, NAN, 1};
  float y[4];
  call c = {.y = y, .x = x, .updates = updates, .index = index, .xdims = xdims, .count = 1, .depth = 2};
  for (int reduction = LPK_SCATTER_MIN; reduction <= LPK_SCATTER_MAX; reduction++) {
    c.reduction = reduction;
    kernel_run(scatter_nd_body, &c, 1);
    EXPECT(isnan(y[0]) && isnan(y[1]) && isnan(y[2]) && y[3] == (reduction == LPK_SCATTER_MIN ? 1 : 2));
  }
}

void test_gather(void) {
  for (int64_t threads = 1; threads <= 3; threads++) {
    test_plain(D1, threads);
    test_plain(D1 - 2, threads);
    test_embed(48, threads);
    test_embed(7, threads);
    test_embed_groups(96, 0, threads);
    test_embed_groups(96, 1, threads);
    test_embed_groups(40, 0, threads);
    test_embed_groups(512, 2, threads);
    test_embed_groups(256, 3, threads);
    test_embed_groups(96, 4, threads);
    test_embed_groups(256, 5, threads);
    for (int axis = 0; axis < 3; axis++)
      test_elements(axis, threads);
    for (int reduction = LPK_SCATTER_NONE; reduction <= LPK_SCATTER_MAX; reduction++)
      test_scatter_nd(reduction, threads);
  }
  test_scatter_nan();
}
