/* lpk_linear and lpk_matmul against sums in double precision, and the packing of weights. */
#include "backend/cpu/kernels/pack.h"
#include "kernel_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
  linear_fn *run;
  int64_t n, k;
  int dtype, act, gated, has_bias, has_residual;
} variant;

#define ENTRY(i, n, k, dtype, act, gated, bias, residual) {linear_##i, n, k, dtype, act, gated, bias, residual},
#if defined(TEST_PAIRS)
enum { PAIRS = 1 };
static const variant variants[] = {PAIRS_VARIANTS(ENTRY)};
#else
enum { PAIRS = 0 };
static const variant variants[] = {LINEAR_VARIANTS(ENTRY)};
#endif
#if defined(TEST_AMX)
enum { AMX = 1 };
#else
enum { AMX = 0 };
#endif

typedef struct {
  const variant *v;
  float *y, *x, *bias, *residual;
  void *w, *scratch;
  int64_t m, ldx, ldy;
} call;

static void body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  call *c = context;
  c->v->run(c->y, c->x, c->w, c->bias, c->residual, c->m, c->ldx, c->ldy, c->scratch, barrier, thread, threads);
}

/* The value that a weight has after rounding to `dtype`. */
static float rounded(float x, int dtype) {
  if (dtype == LPK_F16) return (float)(kernel_half)x;
  if (dtype == LPK_F32) return x;
  uint32_t bits;
  memcpy(&bits, &x, 4);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  memcpy(&x, &bits, 4);
  return x;
}

static double activation(double x, int act) {
  switch (act) {
  case LPK_ACT_RELU:
    return x > 0 ? x : 0;
  case LPK_ACT_GELU_TANH:
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  case LPK_ACT_GELU_ERF:
    return 0.5 * x * (1 + erf(x / sqrt(2)));
  case LPK_ACT_SILU:
    return x / (1 + exp(-x));
  case LPK_ACT_QUICK_GELU:
    return x / (1 + exp(-1.702 * x));
  case LPK_ACT_SIGMOID:
    return 1 / (1 + exp(-x));
  case LPK_ACT_TANH:
    return tanh(x);
  default:
    return x;
  }
}

/* x . column of w [n][k], and the magnitude of its terms. */
static double dot(const float *x, const float *w, int64_t k, int dtype, double *magnitude) {
  const bool rounds = PAIRS && (!AMX || k >= LPK_PAIRS_LEAST);
  double sum = 0;
  for (int64_t i = 0; i < k; i++) {
    double term = (double)(rounds ? rounded(x[i], dtype) : x[i]) * (double)rounded(w[i], dtype);
    sum += term;
    *magnitude += fabs(term);
  }
  return sum;
}

/* weights: [gate, up][n][k]; bias as the kernel has it. */
static double expected(const call *c, float *const *weights, int64_t row, int64_t col, double *magnitude) {
  const variant *v = c->v;
  const float *x = c->x + row * c->ldx;
  int64_t panel = col / LPK_PANEL * (v->gated ? 2 : 1), at = panel * LPK_PANEL + col % LPK_PANEL;
  *magnitude = 1;
  double value = dot(x, weights[0] + col * v->k, v->k, v->dtype, magnitude);
  value = activation(value + (v->has_bias ? (double)c->bias[at] : 0), v->act);
  if (v->gated) {
    double more = 1, up = dot(x, weights[1] + col * v->k, v->k, v->dtype, &more);
    value *= up + (v->has_bias ? (double)c->bias[at + LPK_PANEL] : 0);
    *magnitude *= more;
  }
  return value + (v->has_residual ? (double)c->residual[row * c->ldy + col] : 0);
}

static void check_rows(const call *c, float *const *weights, int64_t threads) {
  const variant *v = c->v;
  int64_t skip = c->m > 40 ? 11 : 1; /* the reference is slow; 11 visits every row of a tile */
  for (int64_t r = 0; r < c->m; r += r + skip < c->m || r == c->m - 1 ? skip : c->m - 1 - r) {
    for (int64_t j = 0; j < v->n; j++) {
      double magnitude, want = expected(c, weights, r, j, &magnitude), got = (double)c->y[r * c->ldy + j];
      if (!near(got, want, magnitude, 1e-6)) {
        kernel_fail("linear_%d m %d threads %d: y[%d][%d] is %g, not %g", (int)(v - variants), (int)c->m, (int)threads,
                    (int)r, (int)j, got, want);
        return;
      }
    }
    for (int64_t j = v->n; j < c->ldy; j++)
      EXPECT(isnan(c->y[r * c->ldy + j]));
  }
}

/* A row is the same, to the bit, regardless of the rows that are computed with it. */
static void check_alone(const call *c, int64_t threads) {
  if (KERNEL_INSTRUMENTED) return;
  call one = *c;
  one.m = 1;
  one.y = kernel_alloc((size_t)c->ldy * 4);
  for (int64_t r = 0; r < c->m; r += r + 37 < c->m || r == c->m - 1 ? 37 : c->m - 1 - r) {
    one.x = c->x + r * c->ldx;
    one.residual = c->residual + r * c->ldy;
    kernel_run(body, &one, threads);
    if (memcmp(one.y, c->y + r * c->ldy, (size_t)c->v->n * 4) != 0)
      kernel_fail("linear_%d: row %d of %d is another when it is alone", (int)(c->v - variants), (int)r, (int)c->m);
  }
  kernel_free(one.y);
}

static void run_variant(const variant *v, int64_t m, int64_t threads, float *const *weights, void *packed,
                        float *bias) {
  call c = {.v = v, .w = packed, .bias = bias, .m = m, .ldx = v->k + 3, .ldy = v->n + 5};
  c.x = random_floats((size_t)(m * c.ldx));
  c.residual = random_floats((size_t)(m * c.ldy));
  c.y = kernel_alloc((size_t)(m * c.ldy) * 4);
  c.scratch = kernel_alloc((size_t)LPK_LINEAR_SCRATCH(m, v->k, threads));
  kernel_run(body, &c, threads);
  check_rows(&c, weights, threads);
  check_alone(&c, threads);
  if (v->has_residual) { /* in place */
    memcpy(c.y, c.residual, (size_t)(m * c.ldy) * 4);
    for (int64_t r = 0; r < m; r++)
      for (int64_t j = v->n; j < c.ldy; j++)
        c.y[r * c.ldy + j] = NAN;
    float *kept = c.residual;
    c.residual = c.y;
    kernel_run(body, &c, threads);
    c.residual = kept;
    check_rows(&c, weights, threads);
  }
  kernel_free(c.x);
  kernel_free(c.y);
  kernel_free(c.residual);
  kernel_free(c.scratch);
}

static void test_variant(const variant *v) {
  static const int64_t rows[] = {0, 1, 2, 3, 4, 5, 7, 12, 13, 31, 200, 397};
  size_t count = (size_t)(v->n * v->k);
  int64_t panels = LPK_PANELS(v->n) * (v->gated ? 2 : 1);
  float *weights[2] = {random_floats(count), random_floats(count)};
  char *packed = kernel_alloc((size_t)panels * lpk_panel_bytes(v->k, v->dtype));
  for (int i = 0; i <= v->gated; i++) {
    lpk_weight w = {weights[i], v->n, v->k, LPK_F32, true};
    lpk_pack_linear(packed + (size_t)i * lpk_panel_bytes(v->k, v->dtype), v->dtype, &w, v->gated ? 2 : 1);
  }
  float *bias = random_floats((size_t)(panels * LPK_PANEL));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int64_t threads = 1; threads <= 3; threads++)
      if (kernel_included()) run_variant(v, rows[i], threads, weights, packed, bias);
  kernel_free(weights[0]);
  kernel_free(weights[1]);
  kernel_free(packed);
  kernel_free(bias);
}

#if !defined(TEST_PAIRS)
/* Every source type and orientation packs to the same panels; conversions round as the compiler's do. */
static void test_pack(void) {
  enum { N = 45, K = 19 };
  float *w = random_floats(N * K);
  w[3] = 1e-7f, w[4] = 65519.0f, w[5] = 65520.0f, w[6] = -3e-5f, w[7] = INFINITY, w[8] = 5.9e-8f;
  for (int dtype = LPK_F32; dtype <= LPK_BF16; dtype++) {
    float *turned = kernel_alloc(N * K * 4);
    for (int j = 0; j < N; j++)
      for (int i = 0; i < K; i++)
        turned[i * N + j] = w[j * K + i];
    size_t bytes = LPK_PANELS(N) * lpk_panel_bytes(K, dtype);
    char *a = kernel_alloc(bytes), *b = kernel_alloc(bytes), *again = kernel_alloc(bytes);
    lpk_pack_linear(a, dtype, &(lpk_weight){w, N, K, LPK_F32, true}, 1);
    lpk_pack_linear(b, dtype, &(lpk_weight){turned, N, K, LPK_F32, false}, 1);
    EXPECT(memcmp(a, b, bytes) == 0);
    /* a packed panel is itself a [k][32] weight */
    lpk_pack_panel(again, dtype, &(lpk_weight){a, LPK_PANEL, K, dtype, false}, 0);
    EXPECT(memcmp(a, again, lpk_panel_bytes(K, dtype)) == 0);
    float *wide = kernel_alloc(LPK_PANELS(N) * lpk_panel_bytes(K, LPK_F32));
    lpk_pack_panel(wide, LPK_F32, &(lpk_weight){a, LPK_PANEL, K, dtype, false}, 0);
    for (int i = 0; i < K; i++)
      for (int j = 0; j < LPK_PANEL; j++)
        EXPECT(wide[i * LPK_PANEL + j] == rounded(w[j * K + i], dtype));
    kernel_free(turned);
    kernel_free(a);
    kernel_free(b);
    kernel_free(again);
    kernel_free(wide);
  }
  kernel_free(w);
}

/* ---- matmul ---- */

typedef struct {
  float *c, *a, *b;
  int64_t dims[2], m, n, k;
  lpk_matrix cs, as, bs;
  void *scratch;
} product;

static void product_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  product *p = context;
  matmul(p->c, p->a, p->b, p->dims, &p->cs, &p->as, &p->bs, p->m, p->n, p->k, 2, 0.5f, p->scratch, thread, threads);
}

static void check_product(const product *p) {
  for (int64_t i = 0; i < p->dims[0]; i++)
    for (int64_t j = 0; j < p->dims[1]; j++)
      for (int64_t r = 0; r < p->m; r++)
        for (int64_t c = 0; c < p->n; c++) {
          double sum = 0;
          for (int64_t l = 0; l < p->k; l++)
            sum += (double)p->a[i * p->as.batch[0] + j * p->as.batch[1] + r * p->as.row + l * p->as.col] *
                   (double)p->b[i * p->bs.batch[0] + j * p->bs.batch[1] + l * p->bs.row + c * p->bs.col];
          double got = (double)p->c[i * p->cs.batch[0] + j * p->cs.batch[1] + r * p->cs.row + c];
          if (!near(got, 0.5 * sum, 1 + (double)p->k, 1e-7)) {
            kernel_fail("matmul %dx%dx%d: c[%d][%d] is %g, not %g", (int)p->m, (int)p->n, (int)p->k, (int)r, (int)c,
                        got, 0.5 * sum);
            return;
          }
        }
}

static void test_matmul(void) {
  static const int64_t sizes[][3] = {{1, 1, 1},      {1, 70, 40},   {5, 32, 300}, {13, 129, 17},
                                     {100, 200, 64}, {97, 33, 258}, {2, 3, 0}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int64_t trans = 0; trans < 4; trans++)
      for (int64_t threads = 1; threads <= 3; threads++) {
        if (!kernel_included()) continue;
        product p = {.dims = {2, 3}, .m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2]};
        p.as = trans & 1 ? (lpk_matrix){1, p.m, {p.m * p.k, 0}} : (lpk_matrix){p.k, 1, {p.m * p.k, 0}};
        p.bs = trans & 2 ? (lpk_matrix){1, p.k, {0, p.k * p.n}} : (lpk_matrix){p.n, 1, {0, p.k * p.n}};
        p.cs = (lpk_matrix){p.n, 1, {3 * p.m * p.n, p.m * p.n}};
        p.a = random_floats((size_t)(2 * p.m * p.k));
        p.b = random_floats((size_t)(3 * p.k * p.n));
        p.c = kernel_alloc((size_t)(6 * p.m * p.n) * 4);
        p.scratch = kernel_alloc((size_t)LPK_MATMUL_SCRATCH(threads));
        kernel_run(product_body, &p, threads);
        check_product(&p);
        kernel_free(p.a);
        kernel_free(p.b);
        kernel_free(p.c);
        kernel_free(p.scratch);
      }
}

#endif

void test_linear(void) {
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
    test_variant(&variants[i]);
#if !defined(TEST_PAIRS)
  test_pack();
  test_matmul();
#endif
}
