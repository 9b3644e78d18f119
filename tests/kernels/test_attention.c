/* lpk_attention, lpk_rotary and lpk_kv_append. */
#include "kernel_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  attention_fn *run;
  int64_t heads, kv_heads, d, dv;
  double softcap;
  int64_t causal, window, has_mask, has_sinks;
  int dtype;
} variant;

#define ENTRY(i, heads, kv, d, dv, cap, causal, window, mask, sinks, dtype)                                            \
  {attention_##i, heads, kv, d, dv, cap, causal, window, mask, sinks, dtype},
#ifdef TEST_PAIRS
static const variant variants[] = {PAIRS_ATTENTION_VARIANTS(ENTRY)};
static const double tolerance = 8e-3; /* operands are rounded to bf16 */
#else
static const variant variants[] = {ATTENTION_VARIANTS(ENTRY)};
static const double tolerance = 1e-5;
#endif

typedef struct {
  const variant *v;
  float *y, *q, *k, *values, *mask, *sinks;
  void *stored_k, *stored_values; /* in the variant's type */
  int64_t ys[3], qs[3], ms[4], b, s, p, c;
  void *scratch;
} call;

static void body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  call *a = context;
  a->v->run(a->y, a->q, a->stored_k, a->stored_values, a->mask, a->sinks, a->ys, a->qs, a->ms, a->b, a->s, a->p, a->c,
            a->scratch, barrier, thread, threads);
}

/* Probabilities of one query row, unnormalised; returns their sum. */
static double reference_weights(const call *a, int64_t batch, int64_t i, int64_t head, double *weight) {
  const variant *v = a->v;
  int64_t total = a->p + a->s, kv = head / (v->heads / v->kv_heads);
  double max = -INFINITY, sum = 0;
  for (int64_t t = 0; t < total; t++) {
    const float *q = a->q + batch * a->qs[0] + i * a->qs[1] + head * a->qs[2];
    const float *k = a->k + ((batch * v->kv_heads + kv) * a->c + t) * v->d;
    double x = 0;
    for (int64_t e = 0; e < v->d; e++)
      x += (double)q[e] * (double)k[e];
    x *= (double)0.3f;
    if (v->softcap != 0) x = v->softcap * tanh(x / v->softcap);
    if (v->has_mask) x += (double)a->mask[batch * a->ms[0] + head * a->ms[1] + i * a->ms[2] + t * a->ms[3]];
    if ((v->causal && t > a->p + i) || (v->window && t <= a->p + i - v->window)) x = -INFINITY;
    weight[t] = x;
    max = fmax(max, x);
  }
  if (v->has_sinks) max = fmax(max, (double)a->sinks[head]);
  for (int64_t t = 0; t < total; t++)
    sum += weight[t] = isinf(max) ? 0 : exp(weight[t] - max);
  return v->has_sinks ? sum + exp((double)a->sinks[head] - max) : sum;
}

static void check_row(const call *a, int64_t batch, int64_t i, int64_t head, int64_t threads, double *weight) {
  const variant *v = a->v;
  int64_t kv = head / (v->heads / v->kv_heads);
  double sum = reference_weights(a, batch, i, head, weight);
  for (int64_t e = 0; e < v->dv; e++) {
    double want = 0, got = (double)a->y[batch * a->ys[0] + i * a->ys[1] + head * a->ys[2] + e];
    for (int64_t t = 0; t < a->p + a->s; t++)
      want += weight[t] * (double)a->values[((batch * v->kv_heads + kv) * a->c + t) * v->dv + e];
    want = sum > 0 ? want / sum : 0;
    if (!near(got, want, 1, tolerance)) {
      kernel_fail("attention_%d b %d s %d p %d threads %d: y[%d][%d][%d][%d] is %g, not %g", (int)(v - variants),
                  (int)a->b, (int)a->s, (int)a->p, (int)threads, (int)batch, (int)i, (int)head, (int)e, got, want);
      return;
    }
  }
}

/* Returns `count` floats in `dtype`, and rounds `x` to that type. */
static void *stored(float *x, int64_t count, int dtype) {
  float *memory = kernel_alloc((size_t)count * sizeof *x);
  kernel_half *halves = (kernel_half *)memory;
  uint16_t *bits = (uint16_t *)memory;
  if (dtype == LPK_F32) memcpy(memory, x, (size_t)count * sizeof *x);
  for (int64_t i = 0; i < count && dtype == LPK_F16; i++) {
    halves[i] = (kernel_half)x[i];
    x[i] = (float)halves[i];
  }
  for (int64_t i = 0; i < count && dtype == LPK_BF16; i++) {
    uint32_t wide;
    memcpy(&wide, &x[i], sizeof wide);
    bits[i] = (uint16_t)(wide >> 16);
    wide = (uint32_t)bits[i] << 16;
    memcpy(&x[i], &wide, sizeof wide);
  }
  return memory;
}

/* One thread gives the same bits. */
static void check_bits(const call *a, int64_t count, int64_t threads) {
  call alone = *a;
  if (threads == 1) return;
  alone.y = kernel_alloc((size_t)count * sizeof *alone.y);
  kernel_run(body, &alone, 1);
  for (int64_t i = 0; i < count; i++)
    if (memcmp(&a->y[i], &alone.y[i], sizeof *a->y) != 0) {
      kernel_fail("attention_%d b %d s %d p %d: y[%d] is %a with %d threads, %a with one", (int)(a->v - variants),
                  (int)a->b, (int)a->s, (int)a->p, (int)i, (double)a->y[i], (int)threads, (double)alone.y[i]);
      break;
    }
  kernel_free(alone.y);
}

/* Rows i .. i + rows of every sequence, computed by themselves, are the same to the bit. */
static void check_alone(const call *a, int64_t i, int64_t rows) {
  call some = *a;
  some.s = rows;
  some.p = a->v->causal ? a->p + i : a->p + a->s - rows;
  some.q += i * a->qs[1];
  some.mask += i * a->ms[2];
  some.y = kernel_alloc((size_t)(a->b * a->ys[0]) * sizeof *some.y);
  kernel_run(body, &some, 2);
  for (int64_t batch = 0; batch < a->b; batch++)
    for (int64_t n = 0; n < rows * a->v->heads; n++) {
      int64_t at = batch * a->ys[0] + n / a->v->heads * a->ys[1] + n % a->v->heads * a->ys[2];
      if (memcmp(some.y + at, a->y + at + i * a->ys[1], (size_t)a->v->dv * sizeof *some.y) == 0) continue;
      kernel_fail("attention_%d b %d s %d p %d: position %d, of %d computed alone, differs in head %d",
                  (int)(a->v - variants), (int)a->b, (int)a->s, (int)a->p, (int)(i + n / a->v->heads), (int)rows,
                  (int)(n % a->v->heads));
      break;
    }
  kernel_free(some.y);
}

static void check_parts(const call *a) {
  if (a->s == 1 || KERNEL_INSTRUMENTED) return;
  for (int64_t i = 0; i < a->s; i += 1 + a->s / 9)
    check_alone(a, i, 1);
  check_alone(a, a->s / 2, (a->s + 1) / 2);
  check_alone(a, a->s / 3, 2 < a->s - a->s / 3 ? 2 : 1);
}

static void run_variant(const variant *v, int64_t b, int64_t s, int64_t p, int64_t threads) {
  call a = {.v = v, .b = b, .s = s, .p = p, .c = p + s + 3};
  int64_t total = p + s;
  a.qs[2] = v->d + 1, a.qs[1] = a.qs[2] * v->heads, a.qs[0] = a.qs[1] * s;
  a.ys[2] = v->dv, a.ys[1] = a.ys[2] * v->heads + 2, a.ys[0] = a.ys[1] * s;
  a.ms[3] = s % 2 ? 1 : b, a.ms[2] = total * a.ms[3], a.ms[1] = 0, a.ms[0] = s % 2 ? s * total : 1;
  a.q = random_floats((size_t)(b * a.qs[0]));
  a.k = random_floats((size_t)(b * v->kv_heads * a.c * v->d));
  a.values = random_floats((size_t)(b * v->kv_heads * a.c * v->dv));
  a.stored_k = stored(a.k, b * v->kv_heads * a.c * v->d, v->dtype);
  a.stored_values = stored(a.values, b * v->kv_heads * a.c * v->dv, v->dtype);
  a.sinks = random_floats((size_t)v->heads);
  a.mask = random_floats((size_t)(b * s * total));
  for (int64_t i = 0; i < b * s * total; i += 7)
    a.mask[i] = -INFINITY;
  a.y = kernel_alloc((size_t)(b * a.ys[0]) * 4);
  a.scratch = kernel_alloc((size_t)LPK_ATTENTION_SCRATCH(v->d, v->dv, total, threads > 2 ? threads : 2));
  kernel_run(body, &a, threads);
  check_bits(&a, b * a.ys[0], threads);
  check_parts(&a);
  double *weight = malloc((size_t)total * sizeof *weight);
  int64_t skip = s > 40 ? 7 : 1; /* the reference is slow */
  for (int64_t batch = 0; batch < b; batch++)
    for (int64_t i = 0; i < s; i += i + skip < s || i == s - 1 ? skip : s - 1 - i)
      for (int64_t head = 0; head < v->heads; head++)
        check_row(&a, batch, i, head, threads, weight);
  free(weight);
  kernel_free(a.q);
  kernel_free(a.k);
  kernel_free(a.values);
  kernel_free(a.stored_k);
  kernel_free(a.stored_values);
  kernel_free(a.sinks);
  kernel_free(a.mask);
  kernel_free(a.y);
  kernel_free(a.scratch);
}

#ifndef TEST_PAIRS
/* ---- rotary ---- */

typedef struct {
  rotary_fn *rotate;
  append_fn *append;
  int64_t heads, d, rotary_dim, interleaved;
} rotary_variant;

#define ROTARY_ENTRY(i, heads, d, rotary_dim, interleaved) {rotary_##i, append_##i, heads, d, rotary_dim, interleaved},
static const rotary_variant rotary_variants[] = {
    ROTARY_VARIANTS(ROTARY_ENTRY){NULL, append_plain, 2, 24, 0, 0},
};

typedef struct {
  const rotary_variant *v;
  float *y, *x, *cos, *sin;
  int64_t ys[3], xs[3], table_batch, table_row, b, s, p, c;
} rotary_call;

static void rotary_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  rotary_call *r = context;
  r->v->rotate(r->y, r->x, r->cos, r->sin, r->ys, r->xs, r->table_batch, r->table_row, r->b, r->s, thread, threads);
}

static void append_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  rotary_call *r = context;
  r->v->append(r->y, r->x, r->cos, r->sin, r->xs, r->table_batch, r->table_row, r->b, r->s, r->p, r->c, thread,
               threads);
}

static double rotated(const rotary_call *r, int64_t batch, int64_t token, int64_t head, int64_t e) {
  const rotary_variant *v = r->v;
  const float *x = r->x + batch * r->xs[0] + token * r->xs[1] + head * r->xs[2];
  int64_t half = v->rotary_dim / 2, pair = v->interleaved ? e / 2 : e % (half ? half : 1);
  int64_t other = v->interleaved ? e ^ 1 : (e < half ? e + half : e - half);
  if (e >= v->rotary_dim) return (double)x[e];
  int64_t at = batch * r->table_batch + token * r->table_row + pair;
  int first = v->interleaved ? e % 2 == 0 : e < half;
  double turn = (double)x[other] * (double)r->sin[at];
  return (double)x[e] * (double)r->cos[at] + (first ? -turn : turn);
}

static void check_rotary(const rotary_call *r, const int64_t *ys) {
  const rotary_variant *v = r->v;
  for (int64_t b = 0; b < r->b; b++)
    for (int64_t t = 0; t < r->s; t++)
      for (int64_t h = 0; h < v->heads; h++)
        for (int64_t e = 0; e < v->d; e++) {
          double got = (double)r->y[b * ys[0] + t * ys[1] + h * ys[2] + e];
          if (!near(got, rotated(r, b, t, h, e), 1, 3e-7)) {
            kernel_fail("rotary_%d: [%d][%d][%d][%d] is %g", (int)(v - rotary_variants), (int)b, (int)t, (int)h, (int)e,
                        got);
            return;
          }
        }
}

static void test_rotary(const rotary_variant *v, int64_t threads) {
  rotary_call r = {.v = v, .b = 2, .s = 5, .p = 3, .c = 11, .table_row = v->rotary_dim / 2};
  r.table_batch = threads % 2 ? r.s * r.table_row : 0;
  r.xs[2] = v->d, r.xs[1] = v->d * v->heads, r.xs[0] = r.xs[1] * r.s;
  r.ys[1] = v->d, r.ys[2] = v->d * r.s, r.ys[0] = r.ys[2] * v->heads;
  size_t table = (size_t)(r.b * r.s * (r.table_row + 1)), size = (size_t)(r.b * r.s * v->heads * v->d);
  r.x = random_floats(size);
  r.cos = random_floats(table);
  r.sin = random_floats(table);
  r.y = kernel_alloc(size * 4);
  if (v->rotate) {
    kernel_run(rotary_body, &r, threads);
    check_rotary(&r, r.ys);
  }
  kernel_free(r.y);
  float *cache = kernel_alloc((size_t)(r.b * v->heads * r.c * v->d) * 4);
  r.y = cache;
  kernel_run(append_body, &r, threads);
  r.y = cache + r.p * v->d;
  check_rotary(&r, (int64_t[3]){v->heads * r.c * v->d, v->d, r.c * v->d});
  EXPECT(isnan(cache[r.p * v->d - 1]) && isnan(cache[(r.p + r.s) * v->d]));
  kernel_free(cache);
  kernel_free(r.x);
  kernel_free(r.cos);
  kernel_free(r.sin);
}

/* A cache of 16 bits: rows p .. p + s hold x to the type's precision, and nothing else is written. */
static void test_narrow_append(append_fn *append, int dtype, int64_t threads) {
  static const rotary_variant plain = {NULL, NULL, 2, 24, 0, 0};
  rotary_variant v = plain;
  v.append = append;
  rotary_call r = {.v = &v, .b = 2, .s = 5, .p = 3, .c = 11};
  int64_t d = v.d, count = r.b * v.heads * r.c * d;
  r.xs[2] = d, r.xs[1] = d * v.heads, r.xs[0] = r.xs[1] * r.s;
  r.x = random_floats((size_t)(r.b * r.s * v.heads * d));
  uint16_t *cache = kernel_alloc((size_t)count * sizeof *cache);
  memset(cache, 0x55, (size_t)count * sizeof *cache);
  r.y = (float *)(void *)cache;
  kernel_run(append_body, &r, threads);
  for (int64_t i = 0; i < count; i++) {
    int64_t e = i % d, token = i / d % r.c - r.p, head = i / d / r.c % v.heads, batch = i / d / r.c / v.heads;
    if (token < 0 || token >= r.s) {
      EXPECT(cache[i] == 0x5555);
      continue;
    }
    kernel_half half;
    uint32_t wide = (uint32_t)cache[i] << 16;
    float found, want = r.x[batch * r.xs[0] + token * r.xs[1] + head * r.xs[2] + e];
    memcpy(&half, &cache[i], sizeof half);
    memcpy(&found, &wide, sizeof found);
    if (dtype == LPK_F16) found = (float)half;
    if (dtype == LPK_F16) /* numbers below 2^-14 have fewer bits */
      EXPECT(near((double)found, (double)want, fmax(fabs((double)want), 0x1p-14), 0x1p-11));
    else
      EXPECT(near((double)found, (double)want, fabs((double)want), 0x1p-8));
  }
  kernel_free(cache);
  kernel_free(r.x);
}

#endif

void test_attention(void) {
  static const int64_t shapes[][3] = {{1, 1, 0},   {1, 1, 5},    {1, 1, 100}, {2, 1, 300}, {1, 7, 0},   {1, 33, 10},
                                      {2, 130, 3}, {1, 2, 1300}, {3, 4, 64},  {1, 1, 700}, {1, 70, 500}};
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
    for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++)
      for (int64_t threads = 1; threads <= 3; threads++)
        if (kernel_included()) run_variant(&variants[i], shapes[j][0], shapes[j][1], shapes[j][2], threads);
#ifndef TEST_PAIRS
  for (int64_t threads = 1; threads <= 3; threads++) {
    test_narrow_append(append_f16, LPK_F16, threads);
    test_narrow_append(append_bf16, LPK_BF16, threads);
  }
  run_variant(&variants[0], 1, 1, 700, 5);
  run_variant(&variants[1], 1, 70, 500, 5);
  run_variant(&variants[5], 1, 40, -10, 2); /* fewer keys than queries */
  for (size_t i = 0; i < sizeof rotary_variants / sizeof *rotary_variants; i++)
    for (int64_t threads = 1; threads <= 3; threads++)
      test_rotary(&rotary_variants[i], threads);
#endif
}
