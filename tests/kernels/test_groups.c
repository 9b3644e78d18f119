/* Compares the products with weights in groups with sums in double precision over the values of the packed codes, and
 * for lpk_linear_integer over the activations that the test rounds itself. */
#include "backend/cpu/kernels/pack.h"
#include "kernel_test.h"

#include <math.h>
#include <string.h>

typedef struct {
  linear_fn *run;
  const char *name;
  int gated;
  lpk_group_form form;
  int rounds; /* activations to 8 bits */
} variant;

#define ENTRY(name, i, n, k, bits, group, scale, zeros, super, gated, rounds)                                          \
  {name##_##i, #name "_" #i, gated, {n, k, group, bits, scale, zeros, super}, rounds},
#define FLOATS(i, ...) ENTRY(groups, i, __VA_ARGS__, 0)
#define INTEGERS(i, ...) ENTRY(integer, i, __VA_ARGS__, 1)
#if defined(TEST_INTEGER)
static const variant variants[] = {INTEGER_VARIANTS(INTEGERS)};
#else
static const variant variants[] = {GROUP_VARIANTS(FLOATS) INTEGER_VARIANTS(INTEGERS)};
#endif

typedef struct {
  const variant *v;
  float *y, *x, *bias;
  double *exact; /* the x that is multiplied */
  void *w, *scratch;
  int64_t m;
} call;

static void body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  call *c = context;
  c->v->run(c->y, c->x, c->w, c->bias, NULL, c->m, c->v->form.k, c->v->form.n, c->scratch, barrier, thread, threads);
}

/* The scale and the zero point, or minimum, of a group: those of a super-block are bytes times one f16. */
static void fill_heads(const lpk_group_form *f, float *scale, float *zero, float *super) {
  int64_t count = f->k / f->group + (f->k % f->group != 0);
  for (int64_t i = 0; i < count * LPK_PANEL; i++) {
    float middle = (float)(1 << (f->bits - 1));
    if (f->super) {
      scale[i] = rintf(scale[i] * (f->scale == LPK_I8 ? 127 : 63)) * (f->scale == LPK_I8 || scale[i] >= 0 ? 1.f : -1.f);
      zero[i] = fabsf(rintf(zero[i] * 63));
    } else {
      scale[i] = lpk_round_to(0.02f + 0.01f * scale[i], f->scale);
      zero[i] = f->zeros == LPK_MINIMA ? lpk_round_to(zero[i], f->scale) : rintf(zero[i] * middle * 0.5f);
    }
  }
  for (int64_t i = 0; i < count * 2 * LPK_PANEL; i++)
    super[i] = lpk_round_to(0.001f * (1.5f + super[i]), LPK_F16);
}

/* The values of the codes of a book. */
static const int8_t *book_of(const lpk_group_form *f) {
  static const int8_t doubles[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  static const int8_t uneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  static const int8_t normal[16] = {-127, -88, -67, -50, -36, -23, -12, 0, 10, 20, 31, 43, 56, 71, 92, 127};
  return f->zeros == LPK_DOUBLES ? doubles : f->zeros == LPK_UNEVEN ? uneven : f->zeros == LPK_NORMAL ? normal : NULL;
}

/* A float e4m3 by the definition of its format, not a NaN. */
static double float8(int code) {
  int exponent = code >> 3 & 15, mantissa = code & 7;
  double value = exponent ? ldexp(8 + mantissa, exponent - 10) : ldexp(mantissa, -9);
  return code & 0x80 ? -value : value;
}

/* Random codes, scales and zero points of one panel; real[k][LPK_PANEL] receives their values. */
static void fill_panel(const lpk_group_form *f, void *panel, double *real) {
  int64_t groups = (f->k + f->group - 1) / f->group, count = f->k * LPK_PANEL;
  uint8_t *codes = kernel_alloc((size_t)count);
  float *scale = random_floats((size_t)(groups * LPK_PANEL)), *zero = random_floats((size_t)(groups * LPK_PANEL));
  float *super = random_floats((size_t)(groups * LPK_PANEL * 2)), *random = random_floats((size_t)count);
  const int8_t *book = book_of(f);
  int middle = 1 << (f->bits - 1);
  fill_heads(f, scale, zero, super);
  for (int64_t i = 0; i < count; i++) {
    int code = (int)floorf((random[i] * 0.5f + 0.5f) * (float)(2 * middle - 1)) - (f->bits == 8 ? middle : 0);
    int64_t g = i / LPK_PANEL / f->group, at = g * LPK_PANEL + i % LPK_PANEL, j = i % LPK_PANEL;
    double none = f->bits == 8 ? 0 : middle, unit = 1, less = 1;
    if (f->super) unit = (double)super[g / f->super * 2 * LPK_PANEL + j];
    if (f->super) less = (double)super[(g / f->super * 2 + 1) * LPK_PANEL + j];
    if (j < 2) code = j ? 2 * middle - 1 : 0; /* the extremes of a code, whose sums are largest */
    if (j < 2 && f->bits == 8) code -= middle;
    if (f->zeros == LPK_E4M3 && j < 2) code = (int)(i / LPK_PANEL); /* all codes, but zeros for NaN */
    if (f->zeros == LPK_E4M3 && (code & 0x7f) == 0x7f) code &= 0x80;
    if (book) code = book[code & 15];
    codes[i] = (uint8_t)code;
    for (int c = 0; book && c < 16; c++)
      if (book[c] == code) codes[i] = (uint8_t)c;
    if (f->zeros == LPK_E4M3)
      real[i] = float8(code & 0xff) * (double)scale[at];
    else if (book)
      real[i] = code * unit * (double)scale[at];
    else if (f->zeros == LPK_MINIMA)
      real[i] = code * unit * (double)scale[at] - less * (double)zero[at];
    else
      real[i] = (code - (f->zeros ? (double)zero[at] : none)) * unit * (double)scale[at];
  }
  lpk_pack_group_panel(panel, f, codes, scale, zero, super);
  kernel_free(codes);
  kernel_free(scale);
  kernel_free(zero);
  kernel_free(super);
  kernel_free(random);
}

/* Rows of random numbers; the second and third have only the extremes. */
static void fill_rows(call *c) {
  int64_t k = c->v->form.k;
  c->x = random_floats((size_t)(c->m * k));
  for (int64_t i = k; i < 3 * k && i < c->m * k; i++)
    c->x[i] = i < 2 * k || i % 2 ? 1 : -1;
  c->exact = kernel_alloc((size_t)(c->m * k) * sizeof *c->exact);
  for (int64_t i = 0; i < c->m * k; i++)
    c->exact[i] = (double)c->x[i];
}

static void round_rows(call *c) {
  int64_t k = c->v->form.k;
  for (int64_t row = 0; row < c->m; row++)
    for (int64_t k0 = 0; k0 < k; k0 += 32) {
      float most = 0;
      for (int64_t i = k0; i < k && i < k0 + 32; i++)
        most = fmaxf(most, fabsf(c->x[row * k + i]));
      /* Beside codes below 5 bits the scale is the next power of two. */
      float scale = c->v->form.bits < 5 ? exp2f(ceilf(log2f(most / 127))) : most / 127;
      float inverse = c->v->form.bits < 5 ? 1 / scale : 127 / most;
      for (int64_t i = k0; i < k && i < k0 + 32; i++)
        c->exact[row * k + i] = (double)rintf(c->x[row * k + i] * inverse) * (double)scale;
    }
}

static double product(const call *c, const double *real, int64_t row, int64_t column, int64_t panel,
                      double *magnitude) {
  const lpk_group_form *f = &c->v->form;
  double sum = (double)c->bias[panel * LPK_PANEL + column];
  for (int64_t i = 0; i < f->k; i++) {
    double term = c->exact[row * f->k + i] * real[(panel * f->k + i) * LPK_PANEL + column];
    sum += term;
    *magnitude += fabs(term) * 8; /* codes and zero points are summed apart */
  }
  return sum;
}

static void check(const call *c, const double *real, int64_t threads) {
  const variant *v = c->v;
  for (int64_t r = 0; r < c->m; r++)
    for (int64_t j = 0; j < v->form.n; j++) {
      int64_t panel = j / LPK_PANEL * (v->gated ? 2 : 1), column = j % LPK_PANEL;
      double magnitude = 1, more = 1, want = product(c, real, r, column, panel, &magnitude);
      if (v->gated) want = want / (1 + exp(-want)) * product(c, real, r, column, panel + 1, &more);
      double got = (double)c->y[r * v->form.n + j];
      if (near(got, want, magnitude * more, 1e-6)) continue;
      kernel_fail("%s m %d threads %d: y[%d][%d] is %g, not %g", v->name, (int)c->m, (int)threads, (int)r, (int)j, got,
                  want);
      return;
    }
}

static void check_alone(const call *c, int64_t threads) {
  if (KERNEL_INSTRUMENTED) return;
  call one = *c;
  one.m = 1;
  one.y = kernel_alloc((size_t)c->v->form.n * 4);
  for (int64_t r = 0; r < c->m; r++) {
    one.x = c->x + r * c->v->form.k;
    kernel_run(body, &one, threads);
    if (memcmp(one.y, c->y + r * c->v->form.n, (size_t)c->v->form.n * 4) != 0)
      kernel_fail("%s: row %d of %d is another when it is alone", c->v->name, (int)r, (int)c->m);
  }
  kernel_free(one.y);
}

static size_t scratch_bytes(const variant *v, int64_t m, int64_t threads) {
  int64_t k = v->form.k;
  return (size_t)(v->rounds ? LPK_INTEGER_SCRATCH(m, k, threads) : LPK_LINEAR_SCRATCH(m, k, threads));
}

/* Rows of the identity give the values themselves, rounded once; `m` of them at a time. */
static void test_values(const variant *v, const void *packed, const double *real, int64_t m) {
  const int64_t k = v->form.k, n = v->form.n;
  call c = {.v = v, .w = (void *)packed, .m = m};
  c.bias = kernel_alloc((size_t)(LPK_PANELS(n) * LPK_PANEL) * 4);
  c.x = kernel_alloc((size_t)(m * k) * 4);
  c.y = kernel_alloc((size_t)(m * n) * 4);
  c.scratch = kernel_alloc(scratch_bytes(v, m, 1));
  memset(c.bias, 0, (size_t)(LPK_PANELS(n) * LPK_PANEL) * 4);
  for (int64_t first = 0; first + m <= k; first += m) {
    memset(c.x, 0, (size_t)(m * k) * 4);
    for (int64_t r = 0; r < m; r++)
      c.x[r * k + first + r] = 1;
    kernel_run(body, &c, 1);
    for (int64_t i = 0; i < m * n; i++) {
      const int64_t row = first + i / n, column = i % n;
      const float want = (float)real[(column / LPK_PANEL * k + row) * LPK_PANEL + column % LPK_PANEL];
      if (c.y[i] != want)
        kernel_fail("%s: element [%d][%d] is %g, not %g", v->name, (int)row, (int)column, (double)c.y[i], (double)want);
    }
  }
  kernel_free(c.bias);
  kernel_free(c.x);
  kernel_free(c.y);
  kernel_free(c.scratch);
}

static void test_variant(const variant *v) {
  static const int64_t rows[] = {0, 1, 2, 3, 4, 5, 13, 31, 40};
  const lpk_group_form *f = &v->form;
  int64_t panels = LPK_PANELS(f->n) * (v->gated ? 2 : 1);
  size_t bytes = lpk_group_panel_bytes(f);
  char *packed = kernel_alloc((size_t)panels * bytes);
  double *real = kernel_alloc((size_t)(panels * f->k) * LPK_PANEL * sizeof *real);
  for (int64_t j = 0; j < panels; j++)
    fill_panel(f, packed + (size_t)j * bytes, real + j * f->k * LPK_PANEL);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int64_t threads = 1; threads <= 3; threads++) {
      if (!kernel_included()) continue;
      call c = {.v = v, .w = packed, .m = rows[i]};
      c.bias = random_floats((size_t)(panels * LPK_PANEL));
      fill_rows(&c);
      if (v->rounds) round_rows(&c);
      c.y = kernel_alloc((size_t)(c.m * f->n) * 4);
      c.scratch = kernel_alloc(scratch_bytes(v, c.m, threads));
      kernel_run(body, &c, threads);
      check(&c, real, threads);
      check_alone(&c, threads);
      kernel_free(c.bias);
      kernel_free(c.x);
      kernel_free(c.exact);
      kernel_free(c.y);
      kernel_free(c.scratch);
    }
  for (int64_t m = 1; f->zeros == LPK_E4M3 && !v->gated && m <= f->k && kernel_included(); m += f->k / 2 - 1)
    test_values(v, packed, real, m);
  kernel_free(packed);
  kernel_free(real);
}

/* A row with a NaN or an infinity, or with a number whose block has no scale, must not become a row of numbers. */
static void test_not_finite(const variant *v) {
  const lpk_group_form *f = &v->form;
  int64_t panels = LPK_PANELS(f->n) * (v->gated ? 2 : 1), bad = 0;
  call c = {.v = v, .w = kernel_alloc((size_t)panels * lpk_group_panel_bytes(f)), .m = 3};
  c.bias = random_floats((size_t)(panels * LPK_PANEL));
  c.x = random_floats((size_t)(c.m * f->k));
  c.y = kernel_alloc((size_t)(c.m * f->n) * 4);
  c.scratch = kernel_alloc(scratch_bytes(v, c.m, 1));
  memset(c.w, 0, (size_t)panels * lpk_group_panel_bytes(f));
  c.x[f->k - 1] = NAN, c.x[f->k] = INFINITY;
  c.x[2 * f->k] = v->rounds && f->bits < 5 ? 0x1p40f : -INFINITY;
  kernel_run(body, &c, 1);
  for (int64_t i = 0; i < c.m * f->n; i++)
    bad += !isnan(c.y[i]);
  if (bad) kernel_fail("%s: %d results of rows that are not finite are numbers", v->name, (int)bad);
  kernel_free(c.w);
  kernel_free(c.bias);
  kernel_free(c.x);
  kernel_free(c.y);
  kernel_free(c.scratch);
}

void test_groups(void) {
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
    test_variant(&variants[i]);
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
    if (variants[i].rounds) test_not_finite(&variants[i]);
}
