/* op.linear and op.matmul: odd sizes, one row and many, weight types, epilogues, gates. */
#include "harness.h"
#include "tests/suite.h"

#include <stdlib.h>

LP_CASE(.timeout = 600);

typedef struct {
  const char *rows;
  int64_t n, k;
  const char *epilogue, *store; /* `store`: attribute weight_dtype, or NULL */
  lp_dtype weight;
  bool transposed, bias, residual, gated;
} linear_case;

static const linear_case linears[] = {
    {"1,1", 1, 1, "none", NULL, LP_F32, false, false, false, false},
    {"b,s", 33, 17, "none", NULL, LP_F32, false, true, false, false},
    {"b,s", 64, 96, "gelu", NULL, LP_F32, true, true, false, false},
    {"b,s", 100, 40, "relu", NULL, LP_F32, false, true, true, false},
    {"b,s", 70, 48, "silu", NULL, LP_F32, true, false, false, true},
    {"b,s", 40, 300, "none", NULL, LP_F32, true, false, true, false},
    {"b,s", 65, 31, "gelu_tanh", NULL, LP_F16, false, true, false, false},
    {"b,s", 64, 64, "quick_gelu", NULL, LP_BF16, true, false, true, true},
    {"b,s", 48, 40, "none", "bf16", LP_F32, true, true, false, false},
    {"b,s", 48, 40, "gelu", "f16", LP_F32, false, true, false, true},
    {"b,s", 36, 20, "none", NULL, LP_F64, false, false, false, false},
    {"1", 300, 520, "none", NULL, LP_F32, true, true, true, false},
};

static void add_linear(harness *h, const linear_case *c, lp_value *x, lp_value *residual) {
  char w[64], n[32], y[64];
  snprintf(w, sizeof w, "%d,%d", (int)(c->transposed ? c->n : c->k), (int)(c->transposed ? c->k : c->n));
  snprintf(n, sizeof n, "%d", (int)c->n);
  snprintf(y, sizeof y, "%s,%d", c->rows, (int)c->n);
  lp_value *in[5] = {x, harness_constant(h, c->weight, w, -0.5, 0.5)};
  if (c->bias) in[2] = harness_constant(h, c->weight, n, -1, 1);
  in[3] = residual;
  if (c->gated) in[4] = harness_constant(h, c->weight, w, -0.5, 0.5);
  lp_value *out = harness_op1(h, LP_OP_LINEAR, 5, in, harness_type(h, LP_F32, y));
  harness_str(h, out, "epilogue", c->epilogue);
  if (c->transposed) harness_bool(h, out, "transpose_b", true);
  if (c->store) harness_str(h, out, "weight_dtype", c->store);
  harness_keep(h, out);
}

static void check_linears(int64_t b, int64_t s, lp_dtype stored, bool only_long) {
  harness *h = harness_create(b, s, 0);
  h->only_long = only_long;
  lp_value *x[LP_COUNT(linears)], *residual[LP_COUNT(linears)] = {NULL};
  for (size_t i = 0; i < LP_COUNT(linears); i++) {
    char dims[64];
    snprintf(dims, sizeof dims, "%s,%d", linears[i].rows, (int)linears[i].k);
    h->step = linears[i].weight == LP_BF16 || linears[i].weight == LP_F16 ? 1.0 / 64 : 0; /* as below */
    x[i] = harness_input(h, LP_F32, dims, -1, 1);
    h->step = 0;
    snprintf(dims, sizeof dims, "%s,%d", linears[i].rows, (int)linears[i].n);
    if (linears[i].residual) residual[i] = harness_input(h, LP_F32, dims, -1, 1);
  }
  for (size_t i = 0; i < LP_COUNT(linears); i++) {
    bool narrow = linears[i].store != NULL;
    if ((stored == LP_F32) != narrow) add_linear(h, &linears[i], x[i], residual[i]);
  }
  /* the reference multiplies by the weight as the file has it */
  if (stored != LP_F32) h->atol = 3e-2, h->rtol = 1e-2;
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

/* The operators are compiled again for each count, so the quick part has one row, some, and more than a tile. */
LP_TEST(linear) {
  static const int64_t counts[][2] = {{1, 1}, {1, 5}, {3, 19}}, others[][2] = {{1, 3}, {2, 2}, {1, 13}, {1, 211}};
  for (size_t i = 0; i < LP_COUNT(counts); i++)
    check_linears(counts[i][0], counts[i][1], LP_F32, false);
  for (size_t i = 0; (lp_part("long") || lp_part("soak")) && i < LP_COUNT(others); i++)
    check_linears(others[i][0], others[i][1], LP_F32, true);
}

LP_TEST(linear_narrowed) {
  check_linears(1, 7, LP_F16, false);
}

/* Operands that 16 bits represent exactly, so that tensor cores and the reference multiply the same numbers. Of integer
 * weights the codes are exact, not the scales. */
static const linear_case halves[] = {
    {"b,s", 33, 8, "none", NULL, LP_F16, false, true, false, false},
    {"b,s", 200, 136, "gelu", NULL, LP_F16, true, true, true, false},
    {"b,s", 72, 72, "silu", NULL, LP_F16, true, true, false, true},
    {"b,s", 136, 40, "none", NULL, LP_BF16, false, false, true, false},
    {"b,s", 90, 96, "quick_gelu", NULL, LP_BF16, true, true, true, true},
    {"1", 40, 64, "relu", NULL, LP_BF16, true, false, false, false},
    {"b,s", 48, 64, "relu", NULL, LP_F16, true, true, false, false},
    {"b,s", 32, 40, "gelu_tanh", NULL, LP_BF16, false, true, false, false},
};
static const linear_case coded[] = {
    {"b,s", 140, 96, "none", "int8", LP_F32, true, true, false, false},
    {"b,s", 50, 64, "silu", "int8", LP_F32, true, false, true, true},
    {"b,s", 140, 96, "relu", "int4", LP_F32, false, true, true, false},
    {"b,s", 130, 64, "gelu_tanh", "int4", LP_F32, true, true, false, true},
};

/* Tells whether the stand-in for CUDA or OpenCL is a GPU on which weights of 16 bits are multiplied and summed in
 * f16. */
static bool multiplies_halves(void) {
  const char *sm = getenv("LP_FAKE_CUDA_SM"), *opencl = getenv("LP_FAKE_OPENCL_HALVES");
  return (sm && atoi(sm) >= 53 && atoi(sm) < 80) || (opencl && atoi(opencl) == 7);
}

static void check_narrow_operands(const linear_case *cases, size_t count, int64_t b, int64_t s, double step,
                                  bool only_long) {
  harness *h = harness_create(b, s, 0);
  h->only_long = only_long;
  lp_value *x[LP_COUNT(halves)], *residual[LP_COUNT(halves)] = {NULL};
  h->step = 1.0 / 64;
  for (size_t i = 0; i < count; i++) {
    char dims[64];
    snprintf(dims, sizeof dims, "%s,%d", cases[i].rows, (int)cases[i].k);
    x[i] = harness_input(h, LP_F32, dims, -1, 1);
    snprintf(dims, sizeof dims, "%s,%d", cases[i].rows, (int)cases[i].n);
    if (cases[i].residual) residual[i] = harness_input(h, LP_F32, dims, -1, 1);
  }
  h->step = step;
  for (size_t i = 0; i < count; i++)
    add_linear(h, &cases[i], x[i], residual[i]);
  if (step > 0) h->atol = 2e-2;                         /* the scales have 11 digits */
  if (step == 0 && multiplies_halves()) h->atol = 1e-2; /* and so have sums of a few products */
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

LP_TEST(linear_of_many_rows) {
  static const int64_t rows[][2] = {{1, 17}, {2, 32}, {1, 129}, {3, 90}};
  for (size_t i = 0; i < (lp_part("long") || lp_part("soak") ? LP_COUNT(rows) : 1); i++) {
    check_narrow_operands(halves, LP_COUNT(halves), rows[i][0], rows[i][1], 0, i > 0);
    check_narrow_operands(coded, LP_COUNT(coded), rows[i][0], rows[i][1], 0.5, i > 0);
  }
}

/* x, y, result, transpositions */
static const struct {
  const char *a, *b, *y;
  bool ta, tb;
} matmuls[] = {
    {"5,7", "7,3", "5,3", false, false},
    {"b,4,s,17", "b,4,17,s", "b,4,s,s", false, false},
    {"b,4,s,17", "b,4,s,17", "b,4,s,s", false, true},
    {"b,4,17,s", "1,1,s,17", "b,4,17,17", false, false},
    {"17,s", "b,17,9", "b,s,9", true, false},
    {"b,1,s,40", "3,40,33", "b,3,s,33", false, false},
    {"b,1,1,40", "40,33", "b,1,1,33", false, false},
};

static void check_matmuls(int64_t s) {
  harness *h = harness_create(2, s, 0);
  lp_value *a[LP_COUNT(matmuls)], *b[LP_COUNT(matmuls)];
  for (size_t i = 0; i < LP_COUNT(matmuls); i++) {
    a[i] = harness_input(h, LP_F32, matmuls[i].a, -1, 1);
    b[i] = harness_input(h, LP_F32, matmuls[i].b, -1, 1);
  }
  for (size_t i = 0; i < LP_COUNT(matmuls); i++) {
    lp_value *y = HARNESS_OP(h, LP_OP_MATMUL, harness_type(h, LP_F32, matmuls[i].y), a[i], b[i]);
    if (matmuls[i].ta) harness_bool(h, y, "transpose_a", true);
    if (matmuls[i].tb) harness_bool(h, y, "transpose_b", true);
    harness_keep(h, y);
  }
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

LP_TEST(matmul) {
  check_matmuls(5);
  check_matmuls(70);
}
