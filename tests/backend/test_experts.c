/* op.experts: rows for each expert from none to more than a block, shared rows, weight types, biases, gates. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>

#include "tests/suite.h"

LP_CASE(.timeout = 600);

typedef struct {
  int64_t experts, chosen, n, k;
  bool shared; /* x is one row for all experts of a token */
  bool bias, gated;
  const char *epilogue, *store, *activations; /* attributes, or NULL */
  lp_dtype weight;
} experts_case;

static const experts_case floats[] = {
    {1, 1, 33, 17, true, false, false, "none", NULL, NULL, LP_F32},
    {5, 2, 40, 24, true, true, false, "silu", NULL, NULL, LP_F32},
    {7, 3, 70, 40, false, false, true, "silu", NULL, NULL, LP_F32},
    {16, 8, 32, 96, true, false, true, "silu", NULL, NULL, LP_F32},
};
/* Tensor cores multiply them by activations in 16 bits. */
static const experts_case halves[] = {
    {4, 3, 64, 300, true, true, true, "gelu_tanh", NULL, NULL, LP_F16},
    {3, 1, 100, 64, false, true, false, "relu", NULL, NULL, LP_BF16},
    {9, 2, 150, 128, true, true, false, "none", NULL, NULL, LP_F16},
};

/* Codes of the model, which GPUs keep. */
static const experts_case codes[] = {
    {6, 2, 40, 128, true, true, false, "none", NULL, NULL, LP_U4},
    {5, 3, 48, 192, false, false, true, "silu", NULL, NULL, LP_U8},
};
enum { GROUP = 64 };

static lp_value *add_experts(harness *h, const experts_case *c, lp_value *x, lp_value *index) {
  char w[64], all[32], y[64];
  snprintf(w, sizeof w, "%d,%d", (int)(c->experts * c->n), (int)c->k);
  snprintf(all, sizeof all, "%d", (int)(c->experts * c->n));
  snprintf(y, sizeof y, "b,s,%d,%d", (int)c->chosen, (int)c->n);
  const bool coded = lp_dtype_is_code(c->weight);
  const double least = coded ? 0 : -0.5, most = coded ? 16 : 0.5;
  lp_value *in[9] = {x, harness_constant(h, c->weight, w, least, most), NULL, index};
  if (c->bias) in[2] = harness_constant(h, coded ? LP_F32 : c->weight, all, -1, 1);
  if (c->gated) in[4] = harness_constant(h, c->weight, w, least, most);
  for (int i = 5; i < (c->gated ? 9 : 7) && coded; i += 2) {
    snprintf(w, sizeof w, "%d,%d", (int)(c->experts * c->n), (int)c->k / GROUP);
    in[i] = harness_constant(h, LP_F16, w, 0.01, 0.05);
    in[i + 1] = harness_constant(h, c->weight, w, 0, 16);
  }
  lp_value *out = harness_op1(h, LP_OP_EXPERTS, coded ? 9 : c->gated ? 5 : 4, in, harness_type(h, LP_F32, y));
  if (coded) harness_i64(h, out, "group", GROUP);
  harness_i64(h, out, "experts", c->experts);
  harness_bool(h, out, "transpose_b", true);
  harness_str(h, out, "epilogue", c->epilogue);
  if (c->store) harness_str(h, out, "weight_dtype", c->store);
  if (c->activations) harness_str(h, out, "activations", c->activations);
  harness_keep(h, out);
  return out;
}

/* Of the indices some are outside, before the first expert and after the last. */
static void check_experts(const experts_case *cases, int32_t count, int64_t b, int64_t s, double atol) {
  lp_value *x[8], *index[8];
  harness *h = harness_create(b, s, 0);
  for (int32_t i = 0; i < count; i++) {
    char dims[64];
    snprintf(dims, sizeof dims, "b,s,%d,%d", cases[i].shared ? 1 : (int)cases[i].chosen, (int)cases[i].k);
    x[i] = harness_input(h, LP_F32, dims, -1, 1);
    snprintf(dims, sizeof dims, "b,s,%d", (int)cases[i].chosen);
    index[i] = harness_input(h, LP_I64, dims, -1, (double)cases[i].experts);
  }
  for (int32_t i = 0; i < count; i++)
    add_experts(h, &cases[i], x[i], index[i]);
  if (atol > 0) h->atol = atol, h->rtol = 0;
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

/* One token, some, and so many that an expert has more rows than a block of the kernel. */
LP_TEST(experts) {
  static const int64_t rows[][2] = {{1, 1}, {2, 3}, {1, 23}, {3, 90}};
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    check_experts(floats, LP_COUNT(floats), rows[i][0], rows[i][1], 0);
    check_experts(halves, LP_COUNT(halves), rows[i][0], rows[i][1], getenv("LP_TEST_GPU") ? 3e-2 : 0);
    check_experts(codes, LP_COUNT(codes), rows[i][0], rows[i][1], harness_is_for_gpu() ? 0.1 : 2e-3);
  }
}

LP_TEST(experts_of_many_rows) {
  static const experts_case all = {2, 2, 40, 24, true, true, true, "silu", NULL, NULL, LP_F32};
  check_experts(&all, 1, 2, 211, 0);
}

/* The reference multiplies by the weights in the file, and by x itself. */
LP_TEST(experts_in_groups) {
  static const int64_t rows[][2] = {{1, 1}, {1, 7}, {2, 40}};
  static const struct {
    const char *store, *activations;
    double error;
  } types[] = {{"int8", NULL, 0.5 / 254},
               {"int4", NULL, 0.5 / 14},
               {"int8", "int8", 0.5 / 254 + 0.5 / 254},
               {"int4", "int8", 0.5 / 14 + 0.5 / 254},
               {"bf16", "bf16", 1.0 / 256}};
  for (size_t t = 0; t < LP_COUNT(types); t++) {
    experts_case cases[] = {{6, 2, 40, 96, true, true, false, "none", NULL, NULL, LP_F32},
                            {5, 3, 48, 80, false, false, true, "silu", NULL, NULL, LP_F32}};
    for (size_t i = 0; i < LP_COUNT(cases); i++)
      cases[i].store = types[t].store, cases[i].activations = types[t].activations;
    for (size_t i = 0; i < LP_COUNT(rows); i++)
      check_experts(cases, LP_COUNT(cases), rows[i][0], rows[i][1], 6 * sqrt(96) * types[t].error);
  }
}
