/* Linear attention, and columns that are carried from step to step. */
#include "kernel_test.h"

#include <math.h>
#include <string.h>

enum { B = 2, ROWS = 7 };

typedef struct {
  int64_t heads, kv_heads, d, dv;
  bool has_past, has_decay, per_key;
  int64_t betas;
  recurrence_variant *run;
} form;

#define FORM(i, heads, kv_heads, d, dv, past, decay, per_key, betas)                                                   \
  {heads, kv_heads, d, dv, past, decay, per_key, betas, recurrence_##i},
static const form forms[] = {RECURRENCE_VARIANTS(FORM)};

typedef struct {
  const form *f;
  float *y, *state, *q, *k, *v, *past, *decay, *beta;
  int64_t rows, first, b, tokens; /* rows [first, first + b * rows) of tokens */
} call;

static void body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  const call *c = context;
  const form *f = c->f;
  const int64_t at = c->first, keys = f->kv_heads * f->d;
  f->run(c->y + at * f->heads * f->dv, c->state, c->q + at * f->heads * f->d, c->k + at * keys,
         c->v + at * f->kv_heads * f->dv, c->past, c->decay + at * (f->per_key ? keys : f->kv_heads),
         c->beta + at * f->betas, c->b, c->rows, c->tokens, thread, threads);
}

/* S = exp(decay) S + k (x) w and y = S^T q / 2, where w is v or beta (v - S^T k). */
static void check_head(const call *c, int64_t batch, int64_t head) {
  const form *f = c->f;
  double state[16 * 48] = {0};
  for (int64_t i = 0; i < f->d * f->dv; i++)
    state[i] = f->has_past ? (double)c->past[(batch * f->kv_heads + head) * f->d * f->dv + i] : 0;
  for (int64_t t = batch * ROWS; t < (batch + 1) * ROWS; t++) {
    const int64_t at = t * f->kv_heads + head, group = f->heads / f->kv_heads;
    for (int64_t i = 0; i < f->d * f->dv && f->has_decay; i++)
      state[i] *= exp((double)c->decay[f->per_key ? at * f->d + i / f->dv : at]);
    for (int64_t j = 0; j < f->dv; j++) {
      double found = 0, wanted = (double)c->v[at * f->dv + j];
      for (int64_t i = 0; i < f->d; i++)
        found += state[i * f->dv + j] * (double)c->k[at * f->d + i];
      if (f->betas) wanted = (wanted - found) * (double)c->beta[t * f->betas + (f->betas > 1 ? head : 0)];
      for (int64_t i = 0; i < f->d; i++)
        state[i * f->dv + j] += wanted * (double)c->k[at * f->d + i];
    }
    for (int64_t h = head * group; h < (head + 1) * group; h++)
      for (int64_t j = 0; j < f->dv; j++) {
        double sum = 0;
        for (int64_t i = 0; i < f->d; i++)
          sum += state[i * f->dv + j] * (double)c->q[(t * f->heads + h) * f->d + i];
        EXPECT(near((double)c->y[(t * f->heads + h) * f->dv + j], sum / 2, 4, 1e-5));
      }
  }
  for (int64_t i = 0; i < f->d * f->dv; i++)
    EXPECT(near((double)c->state[(batch * f->kv_heads + head) * f->d * f->dv + i], state[i], 4, 1e-5));
}

/* Runs the tokens in parts: 3 of a sequence, then one, then the others, on the state that the one before left. */
static void check_parts(const call *whole) {
  const form *f = whole->f;
  static const int64_t parts[] = {3, 1, ROWS - 4};
  const size_t results = (size_t)(ROWS * f->heads * f->dv), cells = (size_t)(f->kv_heads * f->d * f->dv);
  call c = *whole;
  c.b = 1;
  c.first = 0;
  c.y = kernel_alloc(results * sizeof(float));
  c.state = kernel_alloc(cells * sizeof(float));
  for (size_t i = 0; i < sizeof parts / sizeof *parts; c.first += parts[i++]) {
    c.rows = parts[i];
    c.tokens = c.first;
    kernel_run(body, &c, 2);
  }
  EXPECT(memcmp(c.y, whole->y, results * sizeof(float)) == 0);
  EXPECT(memcmp(c.state, whole->state, cells * sizeof(float)) == 0);
  kernel_free(c.y);
  kernel_free(c.state);
}

static void check_form(const form *f, int64_t threads) {
  const size_t tokens = B * ROWS, cells = (size_t)(B * f->kv_heads * f->d * f->dv);
  call c = {.f = f,
            .y = kernel_alloc(tokens * (size_t)(f->heads * f->dv) * sizeof(float)),
            .state = kernel_alloc(cells * sizeof(float)),
            .q = random_floats(tokens * (size_t)(f->heads * f->d)),
            .k = random_floats(tokens * (size_t)(f->kv_heads * f->d)),
            .v = random_floats(tokens * (size_t)(f->kv_heads * f->dv)),
            .past = random_floats(cells),
            .decay = random_floats(tokens * (size_t)(f->kv_heads * f->d)),
            .beta = random_floats(tokens * (size_t)f->kv_heads),
            .rows = ROWS,
            .b = B,
            .tokens = -1};
  for (size_t i = 0; i < tokens * (size_t)(f->kv_heads * f->d); i++)
    c.decay[i] -= 1; /* at most 0 */
  kernel_run(body, &c, threads);
  for (int64_t batch = 0; batch < B; batch++)
    for (int64_t head = 0; head < f->kv_heads; head++)
      check_head(&c, batch, head);
  if (!f->has_past && !KERNEL_INSTRUMENTED) check_parts(&c);
  float *const all[] = {c.y, c.state, c.q, c.k, c.v, c.past, c.decay, c.beta};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    kernel_free(all[i]);
}

typedef struct {
  float *y, *last;
  const float *x;
  int64_t s, tokens;
} carrying;

static void carry_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier) {
  (void)barrier;
  const carrying *c = context;
  carry_columns(c->y, c->last, c->x, 5, c->s, c->tokens, thread, threads);
}

/* Steps of as many columns give each the three before it. */
static void check_columns(int64_t s, int64_t threads) {
  enum { STEPS = 4 };
  float *x = random_floats((size_t)(STEPS * 5 * s)), *last = kernel_alloc(15 * sizeof(float));
  float *y = kernel_alloc((size_t)(5 * (s + 3)) * sizeof(float));
  for (int64_t step = 0; step < STEPS; step++) {
    carrying c = {.y = y, .last = last, .x = x + step * 5 * s, .s = s, .tokens = step * s};
    kernel_run(carry_body, &c, threads);
    for (int64_t row = 0; row < 5; row++)
      for (int64_t i = 0; i < s + 3; i++) {
        const int64_t at = step * s + i - 3; /* of the column among all */
        const float wanted = at < 0 ? 0 : x[(at / s * 5 + row) * s + at % s];
        EXPECT(y[row * (s + 3) + i] == wanted && (i < s || last[row * 3 + i - s] == wanted));
      }
  }
  kernel_free(x);
  kernel_free(y);
  kernel_free(last);
}

void test_recurrence(void) {
  for (int64_t threads = 1; threads <= 3; threads++) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
      check_form(&forms[i], threads);
    for (int64_t s = 1; s <= 5; s++)
      check_columns(s, threads);
  }
}
