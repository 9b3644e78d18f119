/* op.linear_attention and op.carry_columns: with a state that is an operand, and with one that they replace. */
#include "harness.h"
#include "tests/suite.h"

#include "base/poly.h"

#include <string.h>

LP_CASE(.timeout = 300);

typedef struct {
  int heads, kv_heads, d, dv, decays, betas; /* decays, betas: of a token */
  bool past;
} recurrence_case;

static const recurrence_case cases[] = {
    {3, 3, 8, 16, 3, 0, true}, {4, 2, 5, 33, 10, 0, false}, {2, 2, 16, 20, 2, 2, true},
    {6, 2, 4, 48, 0, 1, true}, {2, 2, 128, 32, 2, 0, true}, {3, 3, 7, 9, 0, 0, false},
};

/* Makes a cache of f32 of the last result, which the operator replaces: with p = 0, whatever was in it. */
static void replace_state(harness *h, lp_op *op) {
  const lp_value *last = op->out[op->out_count - 1];
  const int64_t count = lp_poly_eval(lp_type_numel(h->module, last->type), h->sym, LP_SYM_COUNT);
  const size_t bytes = (size_t)count * sizeof(float);
  lp_op_set_i64(h->module, op, "state", h->state_count);
  harness_state *state = &h->state[h->state_count++];
  *state = (harness_state){.bytes = count * 4, .before = lp_alloc(bytes), .data = lp_alloc(bytes)};
  memset(state->before, 0xff, bytes); /* NaN */
}

static lp_value *tokens(harness *h, int width, double low, double high) {
  char dims[32];
  snprintf(dims, sizeof dims, "b,s,%d", width);
  return width ? harness_input(h, LP_F32, dims, low, high) : NULL;
}

static void add(harness *h, const recurrence_case *c, lp_value *const *in, bool replaces) {
  char y[32], state[32];
  snprintf(y, sizeof y, "b,s,%d", c->heads * c->dv);
  snprintf(state, sizeof state, "b,%d,%d,%d", c->kv_heads, c->d, c->dv);
  const lp_type types[] = {harness_type(h, LP_F32, y), harness_type(h, LP_F32, state)};
  lp_value *operands[] = {in[0], in[1], in[2], c->past && !replaces ? in[3] : NULL, in[4], in[5]};
  lp_op *op = harness_op(h, LP_OP_LINEAR_ATTENTION, 6, operands, 2, types);
  harness_i64(h, harness_i64(h, op->out[0], "heads", c->heads), "kv_heads", c->kv_heads);
  harness_bool(h, harness_f64(h, op->out[0], "scale", 0.5), "delta", c->betas > 0);
  harness_keep(h, op->out[0]);
  if (replaces)
    replace_state(h, op);
  else
    harness_keep(h, op->out[1]);
}

static void check(int64_t b, int64_t s, int64_t p) {
  harness *h = harness_create(b, s, p);
  lp_value *in[LP_COUNT(cases)][6];
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    const recurrence_case *c = &cases[i];
    char state[32];
    snprintf(state, sizeof state, "b,%d,%d,%d", c->kv_heads, c->d, c->dv);
    in[i][0] = tokens(h, c->heads * c->d, -1, 1);
    in[i][1] = tokens(h, c->kv_heads * c->d, -0.5, 0.5);
    in[i][2] = tokens(h, c->kv_heads * c->dv, -1, 1);
    in[i][3] = harness_input(h, LP_F32, state, -1, 1);
    in[i][4] = tokens(h, c->decays, -2, 0);
    in[i][5] = tokens(h, c->betas, 0, 1);
  }
  for (size_t i = 0; i < LP_COUNT(cases); i++)
    for (int replaces = 0; replaces <= (p == 0); replaces++)
      add(h, &cases[i], in[i], replaces);
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

LP_TEST(linear_attention) {
  check(1, 1, 0);
  check(2, 7, 0);
  check(1, 19, 4);
}

LP_TEST(carried_columns) {
  static const int64_t sizes[][2] = {{1, 1}, {2, 2}, {1, 9}};
  for (size_t i = 0; i < LP_COUNT(sizes); i++) {
    harness *h = harness_create(sizes[i][0], sizes[i][1], 0);
    lp_value *x = harness_input(h, LP_F32, "b,11,s", -1, 1);
    const lp_type types[] = {harness_type(h, LP_F32, "b,11,s + 3"), harness_type(h, LP_F32, "b,11,3")};
    lp_op *op = harness_op(h, LP_OP_CARRY_COLUMNS, 1, &x, 2, types);
    replace_state(h, op);
    harness_keep(h, op->out[0]);
    harness_finish(h);
    harness_check_all(h);
    harness_free(h);
  }
}
