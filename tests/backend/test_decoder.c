/* Whole decoder layers: operators that wait for each other, share slots and scratch, and append to caches, with enough
 * threads to show a missing barrier. */
#include "base/poly.h"
#include "harness.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>

LP_CASE(.timeout = 600);

enum { HIDDEN = 96, HEADS = 6, KV_HEADS = 2, HEAD = 16, FFN = 200, VOCAB = 131 };

static lp_value *linear(harness *h, lp_value *x, int n, int k, const char *dims, const char *epilogue,
                        lp_value *residual, bool gated) {
  char w[32];
  snprintf(w, sizeof w, "%d,%d", n, k);
  lp_value *in[5] = {x, harness_constant(h, LP_F32, w, -0.15, 0.15), NULL, residual};
  if (gated) in[4] = harness_constant(h, LP_F32, w, -0.15, 0.15);
  lp_value *y = harness_op1(h, LP_OP_LINEAR, 5, in, harness_type(h, LP_F32, dims));
  return harness_bool(h, harness_str(h, y, "epilogue", epilogue), "transpose_b", true);
}

static lp_value *norm(harness *h, lp_value *x) {
  lp_value *y = HARNESS_OP(h, LP_OP_NORM, x->type, x, harness_constant(h, LP_F32, "96", 0.5, 1.5));
  return harness_f64(h, harness_str(h, y, "type", "rms"), "epsilon", 1e-5);
}

static lp_value *heads(harness *h, lp_value *x, const char *dims, lp_value *cos, lp_value *sin) {
  x = HARNESS_OP(h, LP_OP_RESHAPE, harness_type(h, LP_F32, dims), x);
  if (!cos) return x;
  lp_value *y = HARNESS_OP(h, LP_OP_ROTARY, x->type, x, cos, sin);
  return harness_str(h, harness_i64(h, y, "rotary_dim", HEAD), "layout", "bshd");
}

static lp_value *attend(harness *h, lp_value *x, lp_value *cos, lp_value *sin) {
  lp_value *q = heads(h, linear(h, x, HIDDEN, HIDDEN, "b,s,96", "none", NULL, false), "b,s,6,16", cos, sin);
  lp_value *k = heads(h, linear(h, x, KV_HEADS * HEAD, HIDDEN, "b,s,32", "none", NULL, false), "b,s,2,16", cos, sin);
  lp_value *v = heads(h, linear(h, x, KV_HEADS * HEAD, HIDDEN, "b,s,32", "none", NULL, false), "b,s,2,16", NULL, NULL);
  k = harness_append(h, k, "bshd", KV_HEADS, HEAD);
  v = harness_append(h, v, "bshd", KV_HEADS, HEAD);
  lp_value *y = HARNESS_OP(h, LP_OP_ATTENTION, q->type, q, k, v);
  harness_i64(h, harness_i64(h, harness_i64(h, y, "heads", HEADS), "kv_heads", KV_HEADS), "head_dim", HEAD);
  harness_bool(h, harness_str(h, harness_f64(h, y, "scale", 0.25), "layout", "bshd"), "causal", true);
  return HARNESS_OP(h, LP_OP_RESHAPE, harness_type(h, LP_F32, "b,s,96"), y);
}

static lp_value *layer(harness *h, lp_value *x, lp_value *cos, lp_value *sin) {
  lp_value *y = attend(h, norm(h, x), cos, sin);
  lp_value *o = linear(h, y, HIDDEN, HIDDEN, "b,s,96", "none", NULL, false);
  lp_value *in[] = {x, o, harness_constant(h, LP_F32, "96", 0.5, 1.5)};
  lp_type types[] = {x->type, x->type};
  lp_op *add = harness_op(h, LP_OP_ADD_NORM, 3, in, 2, types);
  harness_f64(h, harness_str(h, add->out[0], "type", "rms"), "epsilon", 1e-5);
  lp_value *act = linear(h, add->out[1], FFN, HIDDEN, "b,s,200", "silu", NULL, true);
  return linear(h, act, HIDDEN, FFN, "b,s,96", "none", add->out[0], false);
}

static void check_decoder(const int64_t size[3]) {
  harness *h = harness_create(size[0], size[1], size[2]);
  h->atol = 2e-4; /* two layers of rounding */
  lp_value *ids = harness_input(h, LP_I64, "b,s", 0, VOCAB);
  lp_value *cos = harness_input(h, LP_F32, "1,s,8", -1, 1), *sin = harness_input(h, LP_F32, "1,s,8", -1, 1);
  lp_value *table = harness_constant(h, LP_F32, "131,96", -1, 1);
  lp_value *x = harness_i64(h, HARNESS_OP(h, LP_OP_GATHER, harness_type(h, LP_F32, "b,s,96"), table, ids), "axis", 0);
  x = norm(h, layer(h, layer(h, x, cos, sin), cos, sin));
  lp_value *last = harness_last_rows(h, x);
  lp_value *logits = HARNESS_OP(h, LP_OP_LINEAR, harness_type(h, LP_F32, "b,r,131"), last, table);
  harness_keep(h, harness_bool(h, logits, "transpose_b", true));
  harness_finish(h);
  harness_check_all(h);
  for (int64_t threads = 4; threads <= 8; threads++) /* the harness itself takes 1 to 3 */
    if (lp_part(threads == 4 || threads == 8 ? "quick" : "long")) harness_check(h, "cpu", "native", threads);
  harness_free(h);
}

LP_TEST(decoder) {
  static const int64_t sizes[][3] = {{1, 1, 0}, {1, 1, 33}, {1, 4, 2}, {1, 5, 2}, {2, 9, 0}, {4, 1, 7}, {1, 75, 10}};
  for (size_t i = 0; i < LP_COUNT(sizes); i++)
    check_decoder(sizes[i]);
}
