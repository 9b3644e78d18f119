/* Operators that run in one launch on a GPU (docs/gpu.md): up to 64 rows their results are the same to the bit as
 * without the group, and operators that must wait for each other do not join. */
#include "harness.h"

#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>

LP_CASE(.timeout = 600);

enum { PRODUCTS = 3, FEW_ROWS = 64 };

static lp_value *join(harness *h, lp_value *value, int64_t group) {
  return harness_i64(h, value, "join", group);
}

/* The number of times that the module's CUDA code names kernels of several operators. */
static size_t count_joined(harness *h, lp_emit_form form, const char *name) {
  const lp_emit_options options = {.side = LP_SIDE_DEVICE, .march = "sm_80"};
  lp_buf text = {0};
  size_t count = 0;
  if (lp_backend_find("cuda")->emit(h->module, &options, form, &text, h->diag) != LP_OK) harness_fail(h, "cannot emit");
  for (const char *at = strstr(lp_buf_text(&text), name); at; at = strstr(at + 1, name))
    count++;
  lp_buf_free(&text);
  return count;
}

/* ---- products ---- */

typedef struct {
  int n[PRODUCTS], k;
  lp_dtype dtype;
  const char *store; /* the type of the weights in the code; NULL: that of the constant */
  const char *activations, *epilogue;
} products_case;

/* Queries, keys and values of a decoder: heads that share keys, columns that do not fill a group, odd rows. */
static const products_case cases[] = {
    {{96, 32, 32}, 128, LP_F16, NULL, NULL, "none"},   {{64, 64, 64}, 64, LP_F32, "int4", NULL, "none"},
    {{72, 40, 24}, 96, LP_F32, "int8", NULL, "none"},  {{50, 33, 16}, 64, LP_BF16, NULL, NULL, "silu"},
    {{40, 17, 17}, 50, LP_F32, NULL, NULL, "none"},    {{48, 24, 24}, 72, LP_F16, NULL, NULL, "none"},
    {{96, 32, 32}, 64, LP_F32, "int4", "int8", "none"}};

static lp_value *product(harness *h, const products_case *c, int i, lp_value *x, lp_value *w, lp_value *bias) {
  char dims[32];
  snprintf(dims, sizeof dims, "b,s,%d", c->n[i]);
  lp_value *in[] = {x, w, bias};
  lp_value *y = harness_op1(h, LP_OP_LINEAR, 3, in, harness_type(h, LP_F32, dims));
  harness_str(h, harness_bool(h, y, "transpose_b", true), "epilogue", c->epilogue);
  if (c->store) harness_str(h, y, "weight_dtype", c->store);
  if (c->activations) harness_str(h, y, "activations", c->activations);
  return y;
}

/* Keeps the answer to whether two values are the same. */
static void keep_same(harness *h, lp_value *a, lp_value *b) {
  lp_type type = a->type;
  type.dtype = LP_BOOL;
  harness_keep(h, harness_str(h, HARNESS_OP(h, LP_OP_MAP, type, a, b), "fn", "eq"));
}

/* Keeps the difference of two values, which is 0 but for rounding. */
static void keep_difference(harness *h, lp_value *a, lp_value *b) {
  harness_keep(h, harness_str(h, HARNESS_OP(h, LP_OP_MAP, a->type, a, b), "fn", "sub"));
}

/* Adds the products together and alone. The second one has a bias. `few`: rows that a kernel of ours multiplies; of
 * more, a library may compute those alone but, because it does not support all of them, not those together. */
static void add_products(harness *h, const products_case *c, lp_value *x, int64_t group, bool few) {
  lp_value *w[PRODUCTS], *bias[PRODUCTS] = {NULL}, *together[PRODUCTS];
  for (int i = 0; i < PRODUCTS; i++) {
    char dims[32];
    snprintf(dims, sizeof dims, "%d,%d", c->n[i], c->k);
    w[i] = harness_constant(h, c->dtype, dims, -1, 1);
    snprintf(dims, sizeof dims, "%d", c->n[i]);
    if (i == 1) bias[i] = harness_constant(h, LP_F32, dims, -1, 1);
  }
  for (int i = 0; i < PRODUCTS; i++)
    together[i] = join(h, product(h, c, i, x, w[i], bias[i]), group);
  for (int i = 0; i < PRODUCTS; i++)
    (few ? keep_same : keep_difference)(h, together[i], product(h, c, i, x, w[i], bias[i]));
}

static void check_products(int64_t b, int64_t s) {
  harness *h = harness_create(b, s, 0);
  lp_value *x[LP_COUNT(cases)];
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    char dims[32];
    snprintf(dims, sizeof dims, "b,s,%d", cases[i].k);
    x[i] = harness_input(h, LP_F32, dims, -1, 1);
  }
  for (size_t i = 0; i < LP_COUNT(cases); i++)
    add_products(h, &cases[i], x[i], (int64_t)i, b * s <= FEW_ROWS);
  harness_finish(h);
  ck_assert_uint_eq(count_joined(h, LP_EMIT_KERNELS, "_one_joined_"), LP_COUNT(cases)); /* a kernel for each */
  harness_check_all(h);
  harness_free(h);
}

LP_TEST(products_are_as_alone) {
  static const int64_t rows[][2] = {{1, 1}, {1, 8}, {2, 20}, {1, 70}};
  for (size_t i = 0; i < LP_COUNT(rows); i++)
    check_products(rows[i][0], rows[i][1]);
}

/* ---- rotations and appends ---- */

enum { HEADS = 6, KV_HEADS = 2, HEAD = 16 };

static lp_value *rotate(harness *h, lp_value *x, lp_value *cos, lp_value *sin) {
  lp_value *y = HARNESS_OP(h, LP_OP_ROTARY, x->type, x, cos, sin);
  return harness_str(h, harness_i64(h, y, "rotary_dim", HEAD), "layout", "bshd");
}

static void check_attention(int64_t b, int64_t s, int64_t p) {
  harness *h = harness_create(b, s, p);
  lp_value *in[] = {harness_input(h, LP_F32, "b,s,6,16", -1, 1), harness_input(h, LP_F32, "b,s,2,16", -1, 1),
                    harness_input(h, LP_F32, "b,s,2,16", -1, 1)};
  lp_value *cos = harness_input(h, LP_F32, "1,s,8", -1, 1), *sin = harness_input(h, LP_F32, "1,s,8", -1, 1);
  lp_value *q = join(h, rotate(h, in[0], cos, sin), 0), *k = join(h, rotate(h, in[1], cos, sin), 0);
  keep_same(h, q, rotate(h, in[0], cos, sin));
  keep_same(h, k, rotate(h, in[1], cos, sin));
  k = join(h, harness_append(h, k, "bshd", KV_HEADS, HEAD), 1);
  lp_value *v = join(h, harness_append(h, in[2], "bshd", KV_HEADS, HEAD), 1);
  lp_value *y = HARNESS_OP(h, LP_OP_ATTENTION, q->type, q, k, v);
  harness_i64(h, harness_i64(h, harness_i64(h, y, "heads", HEADS), "kv_heads", KV_HEADS), "head_dim", HEAD);
  harness_bool(h, harness_str(h, harness_f64(h, y, "scale", 0.25), "layout", "bshd"), "causal", true);
  harness_keep(h, y);
  harness_finish(h);
  ck_assert_uint_eq(count_joined(h, LP_EMIT_LAUNCHES, "_joined"), 2);
  harness_check_all(h);
  harness_free(h);
}

LP_TEST(attention_is_as_alone) {
  static const int64_t sizes[][3] = {{1, 1, 0}, {1, 1, 33}, {2, 8, 5}, {1, 70, 3}};
  for (size_t i = 0; i < LP_COUNT(sizes); i++)
    check_attention(sizes[i][0], sizes[i][1], sizes[i][2]);
}

/* ---- what joins ---- */

static bool joins(harness *h) {
  return count_joined(h, LP_EMIT_LAUNCHES, "_joined") > 0;
}

/* Two rotations of the same tables, of values that die there. The second one reads the first one's result if it
 * `waits`. */
static harness *two_rotations(bool waits, lp_value *out[4]) {
  harness *h = harness_create(1, 3, 0);
  lp_value *x = harness_input(h, LP_F32, "b,s,2,16", -1, 1), *z = harness_input(h, LP_F32, "b,s,2,16", -1, 1);
  lp_value *cos = harness_input(h, LP_F32, "1,s,8", -1, 1), *sin = harness_input(h, LP_F32, "1,s,8", -1, 1);
  out[0] = harness_str(h, HARNESS_OP(h, LP_OP_MAP, x->type, x), "fn", "neg");
  out[1] = harness_str(h, HARNESS_OP(h, LP_OP_MAP, z->type, z), "fn", "neg");
  out[2] = join(h, rotate(h, out[0], cos, sin), 7);
  out[3] = join(h, rotate(h, waits ? out[2] : out[1], cos, sin), 7);
  harness_keep(h, out[3]);
  harness_keep(h, harness_str(h, HARNESS_OP(h, LP_OP_MAP, x->type, out[2]), "fn", "neg"));
  harness_finish(h);
  return h;
}

LP_TEST(independent_operators_join) {
  lp_value *value[4];
  harness *h = two_rotations(false, value);
  ck_assert(joins(h));
  harness_free(h);
}

LP_TEST(dependent_operators_do_not) {
  lp_value *value[4];
  harness *h = two_rotations(true, value);
  ck_assert(!joins(h));
  harness_check_all(h);
  harness_free(h);
}

static int64_t buffer_of(const lp_value *value) {
  return lp_op_attr(value->def, "buffer")->is[value->index];
}

/* The second result lies where the first rotation reads, as if that value were dead. */
LP_TEST(operators_that_share_memory_do_not) {
  lp_value *value[4];
  harness *h = two_rotations(false, value);
  const lp_attr *slots = lp_op_attr(h->func, "slot_device");
  int64_t moved[HARNESS_MOST_VALUES];
  memcpy(moved, slots->is, (size_t)slots->count * sizeof *moved);
  moved[buffer_of(value[3])] = moved[buffer_of(value[0])];
  lp_op_set_i64s(h->module, h->func, "slot_device", moved, slots->count);
  ck_assert(!joins(h));
  moved[buffer_of(value[3])] = moved[buffer_of(value[2])];
  lp_op_set_i64s(h->module, h->func, "slot_device", moved, slots->count);
  ck_assert(!joins(h));
  harness_free(h);
}

LP_TEST(operators_of_other_segments_do_not) {
  lp_value *value[4];
  harness *h = two_rotations(false, value);
  harness_i64(h, value[3], "segment", 1);
  ck_assert(!joins(h));
  harness_free(h);
}

LP_TEST(appends_to_one_cache_do_not) {
  harness *h = harness_create(1, 3, 0);
  lp_value *x = harness_input(h, LP_F32, "b,s,2,16", -1, 1), *y = harness_input(h, LP_F32, "b,s,2,16", -1, 1);
  lp_value *k = join(h, harness_append(h, x, "bshd", 2, 16), 0), *v = join(h, harness_append(h, y, "bshd", 2, 16), 0);
  harness_finish(h);
  ck_assert(joins(h));
  harness_i64(h, v, "state", lp_op_i64(k->def, "state", 0));
  ck_assert(!joins(h));
  harness_free(h);
}
