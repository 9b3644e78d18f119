/* Weights in groups, quantising and back, products of integers: codes of every width, whole and odd groups, zero
 * points. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>

#include "backend/quantise.h"
#include "tests/suite.h"

LP_CASE(.timeout = 600);

/* ---- op.linear ---- */

typedef struct {
  int64_t n, k, stored, group; /* stored: rows of w in memory, more than k with padding */
  lp_dtype codes, scale, zero; /* zero LP_BOOL: none */
  bool transposed, gated;
  const char *single; /* the shape of scale and zero point, unless there is one of each for each group */
} linear_case;

static const linear_case linears[] = {
    {33, 64, 64, 32, LP_U4, LP_F32, LP_U4, true, false, NULL},
    {70, 64, 64, 32, LP_I8, LP_F32, LP_BOOL, false, true, NULL},
    {40, 256, 256, 128, LP_U4, LP_F16, LP_U4, true, true, NULL},
    {36, 192, 192, 64, LP_I4, LP_BF16, LP_I4, false, false, NULL},
    {33, 96, 128, 64, LP_U4, LP_F16, LP_U4, true, false, NULL},
    {34, 320, 320, 0, LP_I4, LP_F16, LP_BOOL, true, false, "34"},
    {24, 128, 128, 64, LP_U8, LP_F32, LP_U8, true, false, NULL},
    {20, 256, 256, 0, LP_I8, LP_BF16, LP_I8, true, false, "20"},
    {20, 64, 64, 32, LP_U2, LP_F32, LP_U2, true, false, NULL},
    {20, 64, 64, 0, LP_I2, LP_F16, LP_BOOL, false, false, "20"},
    {33, 256, 256, 128, LP_F8E4M3FN, LP_F32, LP_BOOL, true, false, NULL},
    {48, 128, 128, 0, LP_F8E4M3FN, LP_F32, LP_BOOL, true, true, ""},
};

/* Groups, zero points or rows of other sizes, for which GPUs store f16. */
static const linear_case others[] = {
    {64, 72, 96, 32, LP_U4, LP_F16, LP_U4, true, true, NULL},
    {40, 96, 96, 16, LP_I4, LP_BF16, LP_BOOL, true, false, NULL},
    {31, 50, 50, 0, LP_U8, LP_F32, LP_U8, false, false, "31"},
    {32, 40, 40, 0, LP_I8, LP_F32, LP_BOOL, true, false, "1"},
    {48, 128, 128, 64, LP_U2, LP_F32, LP_F32, true, false, NULL},
    {20, 30, 30, 0, LP_I2, LP_F16, LP_BOOL, false, false, "20"},
    {24, 30, 30, 5, LP_I8, LP_F32, LP_I8, true, true, NULL}, /* dequantised when it is packed */
    {36, 33, 33, 0, LP_U4, LP_F32, LP_U4, true, false, ""},
    {33, 200, 200, 128, LP_F8E4M3FN, LP_F32, LP_BOOL, true, false, NULL},
    {70, 72, 72, 48, LP_F8E4M3FN, LP_BF16, LP_BOOL, true, true, NULL},
    {40, 65, 65, 0, LP_F8E4M3FN, LP_F32, LP_BOOL, false, false, "40"},
    {24, 30, 30, 5, LP_F8E4M3FN, LP_F32, LP_BOOL, true, false, NULL}, /* dequantised when it is packed */
};

static double greatest(lp_dtype codes) {
  switch (codes) {
  case LP_U8:
    return 256;
  case LP_I8:
    return 128;
  case LP_U4:
    return 16;
  case LP_I4:
    return 8;
  case LP_F8E4M3FN:
    return 30;
  default:
    return codes == LP_U2 ? 4 : 2;
  }
}

static double least(lp_dtype codes) {
  return codes == LP_I8 || codes == LP_I4 || codes == LP_I2 || codes == LP_F8E4M3FN ? -greatest(codes) : 0;
}

static lp_value *add_linear(harness *h, const linear_case *c, lp_value *x, const char *activations) {
  char w[64], groups[64], y[64];
  int64_t count = c->group ? (c->k + c->group - 1) / c->group : 1;
  snprintf(w, sizeof w, "%d,%d", (int)(c->transposed ? c->n : c->k), (int)(c->transposed ? c->stored : c->n));
  snprintf(groups, sizeof groups, "%d,%d", (int)(c->transposed ? c->n : count), (int)(c->transposed ? count : c->n));
  snprintf(y, sizeof y, "b,s,%d", (int)c->n);
  const char *shape = c->single ? c->single : groups;
  lp_value *in[9] = {x};
  for (int i = 0; i <= c->gated; i++) {
    in[i ? 4 : 1] = harness_constant(h, c->codes, w, least(c->codes), greatest(c->codes));
    in[5 + 2 * i] = harness_constant(h, c->scale, shape, 0.01, 0.05);
    if (c->zero != LP_BOOL) in[6 + 2 * i] = harness_constant(h, c->zero, shape, 0, greatest(c->codes));
  }
  lp_value *out = harness_op1(h, LP_OP_LINEAR, 9, in, harness_type(h, LP_F32, y));
  if (c->transposed) harness_bool(h, out, "transpose_b", true);
  if (c->gated) harness_str(h, out, "epilogue", "silu");
  harness_i64(h, out, "group", c->group);
  if (activations) harness_str(h, out, "activations", activations);
  harness_keep(h, out);
  return out;
}

static void check_cases(const linear_case *cases, size_t count, int64_t b, int64_t s, const char *activations) {
  harness *h = harness_create(b, s, 0);
  lp_value *x[LP_COUNT(linears) + LP_COUNT(others)];
  for (size_t i = 0; i < count; i++) {
    char dims[64];
    snprintf(dims, sizeof dims, "b,s,%d", (int)cases[i].k);
    x[i] = harness_input(h, LP_F32, dims, -1, 1);
  }
  for (size_t i = 0; i < count; i++)
    if (!activations || !cases[i].gated)
      (void)add_linear(h, &cases[i], x[i], activations);    /* a gate multiplies errors */
  h->atol = 2e-4, h->rtol = 2e-5;                           /* 8-bit codes of up to 255 * 0.05 in sums of 128 */
  if (harness_is_for_gpu()) h->atol = 2e-3, h->rtol = 1e-4; /* scales of 16 digits */
  if (cases == others && harness_is_for_gpu()) h->atol = 1, h->rtol = 3e-3; /* f16, and a gate multiplies errors */
  if (activations) h->atol = 128 * 255 * 0.05 / 254, h->rtol = 0.05;
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

static void check_linears(int64_t b, int64_t s, const char *activations) {
  check_cases(linears, LP_COUNT(linears), b, s, activations);
  check_cases(others, LP_COUNT(others), b, s, activations);
}

LP_TEST(linear_in_groups) {
  static const int64_t rows[][2] = {{1, 1}, {1, 2}, {1, 3}, {2, 2}, {1, 5}, {1, 13}, {3, 19}};
  for (size_t i = 0; i < LP_COUNT(rows); i++)
    check_linears(rows[i][0], rows[i][1], NULL);
}

/* llmpart quantises the weight; the reference multiplies by the weight in the file. int8 is within 1/254 of a group's
 * largest weight, int4 within 1/14. */
static void check_stored(const char *store, const char *activations, double error) {
  static const int64_t sizes[][2] = {{1, 96}, {7, 80}, {7, 96}, {70, 80}, {70, 96}};
  for (size_t i = 0; i < LP_COUNT(sizes); i++) {
    char of_x[32], of_w[32];
    snprintf(of_x, sizeof of_x, "b,s,%d", (int)sizes[i][1]);
    snprintf(of_w, sizeof of_w, "%d,48", (int)sizes[i][1]);
    harness *h = harness_create(1, sizes[i][0], 0);
    lp_value *x = harness_input(h, LP_F32, of_x, -1, 1);
    lp_value *in[5] = {x, harness_constant(h, LP_F32, of_w, -0.5, 0.5), NULL, NULL,
                       harness_constant(h, LP_F32, of_w, -0.5, 0.5)};
    for (int gated = 0; gated < 2; gated++) {
      lp_value *y = harness_op1(h, LP_OP_LINEAR, gated ? 5 : 2, in, harness_type(h, LP_F32, "b,s,48"));
      harness_str(h, y, "weight_dtype", store);
      if (activations) harness_str(h, y, "activations", activations);
      harness_keep(h, y);
    }
    h->atol = 6 * sqrt((double)sizes[i][1]) * error, h->rtol = 0;
    harness_finish(h);
    harness_check_all(h);
    harness_free(h);
  }
}

LP_TEST(linear_quantised) {
  check_stored("int8", NULL, 0.5 / 254);
  check_stored("int4", NULL, 0.5 / 14);
}

/* Activations of at most 1 that are rounded to 8 bits are within 1/254 of themselves. */
LP_TEST(linear_of_integers) {
  check_stored("int8", "int8", 0.5 / 254 + 0.5 / 254);
  check_stored("int4", "int8", 0.5 / 14 + 0.5 / 254);
}

/* Floats of 8 bits may be stored in other types, and a NaN among them must reach the results. */
static void check_float8(const char *store, double error, int64_t rows) {
  static const linear_case of_floats = {33, 192, 192, 96, LP_F8E4M3FN, LP_F32, LP_BOOL, true, false, NULL};
  harness *h = harness_create(1, rows, 0);
  lp_value *y = add_linear(h, &of_floats, harness_input(h, LP_F32, "b,s,192", -1, 1), NULL);
  lp_tensor w;
  ck_assert(lp_value_constant(lp_op_in(y->def, 1), &w));
  if (store)
    harness_str(h, y, "weight_dtype", store);
  else
    ((uint8_t *)(uintptr_t)w.data)[3 * 192 + 191] = 0xff;
  h->atol = 2e-4 + 6 * sqrt(192.0) * error * 30 * 0.05, h->rtol = 2e-5;
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

LP_TEST(linear_of_float8) {
  for (int64_t rows = 1; rows < 20; rows += 12) {
    check_float8(NULL, 0, rows);
    check_float8("f32", 0, rows);
    check_float8("bf16", 1.0 / 512, rows);
    check_float8("int8", 0.5 / 127, rows);
    check_float8("int4", 0.5 / 7, rows);
  }
}

/* Models' own groups: those of whole blocks are computed in integers, the others in floats. */
LP_TEST(linear_in_groups_of_integers) {
  check_linears(1, 1, "int8");
  check_linears(1, 13, "int8");
}

/* ---- op.quantize, op.dequantize ---- */

static const struct {
  lp_dtype codes;
  const char *x, *scale;
  int64_t axis, block;
  bool zero;
} forms[] = {
    {LP_U8, "b,s,33", "", 0, 0, true},        {LP_I8, "b,s,33", "33", 2, 0, true},
    {LP_U4, "5,7,3", "7", 1, 0, true},        {LP_I4, "b,s,40", "", 0, 0, false},
    {LP_U16, "b,s,9", "1", 0, 0, true},       {LP_I16, "6,s", "6", 0, 0, false},
    {LP_U4, "b,s,64", "b,s,4", 2, 16, true},  {LP_I8, "s,10,3", "s,4,3", 1, 3, true},
    {LP_U2, "7,9", "", 0, 0, true},           {LP_I2, "s,8", "", 0, 0, false},
    {LP_F8E4M3FN, "b,s,17", "", 0, 0, false}, {LP_F4E2M1, "3,s,5", "", 0, 0, false},
};

static void check_forms(int64_t s) {
  harness *h = harness_create(2, s, 0);
  lp_value *x[LP_COUNT(forms)], *scale[LP_COUNT(forms)];
  for (size_t i = 0; i < LP_COUNT(forms); i++) {
    x[i] = harness_input(h, LP_F32, forms[i].x, -20, 20);
    scale[i] = harness_input(h, LP_F32, forms[i].scale, 0.05, 0.9);
  }
  for (size_t i = 0; i < LP_COUNT(forms); i++) {
    lp_value *zero = forms[i].zero
                         ? harness_constant(h, forms[i].codes, strchr(forms[i].scale, 's') ? "" : forms[i].scale, 0,
                                            greatest(forms[i].codes))
                         : NULL;
    lp_value *in[] = {x[i], scale[i], zero};
    int32_t count = zero ? 3 : 2;
    lp_value *q = harness_op1(h, LP_OP_QUANTIZE, count, in, harness_type(h, forms[i].codes, forms[i].x));
    in[0] = q;
    lp_value *y = harness_op1(h, LP_OP_DEQUANTIZE, count, in, harness_type(h, LP_F32, forms[i].x));
    harness_i64(h, harness_i64(h, q, "axis", forms[i].axis), "block_size", forms[i].block);
    harness_i64(h, harness_i64(h, y, "axis", forms[i].axis), "block_size", forms[i].block);
    harness_keep(h, q);
    harness_keep(h, y);
  }
  harness_finish(h);
  h->gpu_lacks = "there is no kernel for it";
  harness_check_all(h);
  harness_free(h);
}

LP_TEST(quantize_and_back) {
  check_forms(1);
  check_forms(23);
}

/* No code stands for an infinity or a NaN. A group with one has no scale, but its codes are still defined. */
LP_TEST(what_is_no_number) {
  const float groups[][4] = {{1, NAN, 2, 3}, {NAN, 5, 1, 0}, {1, -INFINITY, 2, 3}, {INFINITY, NAN, 0, 0}};
  const lp_dtype scales[] = {LP_F32, LP_F16, LP_BF16};
  for (size_t i = 0; i < LP_COUNT(groups) * LP_COUNT(scales); i++) {
    const float *w = groups[i % LP_COUNT(groups)];
    lp_dtype scale = scales[i / LP_COUNT(groups)];
    uint8_t wide[4], narrow[4];
    ck_assert(isnan(lp_quantise(w, 4, 1, NULL, LP_I8, scale, wide)));
    ck_assert(isnan(lp_quantise(w, 4, 1, NULL, LP_U4, scale, narrow)));
    ck_assert_mem_eq(wide, ((uint8_t[]){0, 0, 0, 0}), 4);
    ck_assert_mem_eq(narrow, ((uint8_t[]){8, 8, 8, 8}), 4);
  }
}

/* The sum of an int4 or int8 group's squared errors, each times a weight. */
static double weighted_error(const float *w, const float *weight, const uint8_t *code, float scale, bool wide) {
  double sum = 0;
  for (int i = 0; i < LP_WEIGHT_GROUP; i++) {
    double error = (double)w[i] - (double)scale * (wide ? (int8_t)code[i] : code[i] - 8);
    sum += (double)weight[i] * error * error;
  }
  return sum;
}

/* The least error over 4,000 scales, each with the nearest codes. */
static double least_error(const float *w, const float *weight, float most, bool wide) {
  double least = INFINITY, low = wide ? -127 : -8, high = wide ? 127 : 7;
  for (int i = 1; i <= 4000; i++) {
    double scale = 2 * (double)most / high * i / 4000, sum = 0;
    for (int sign = -1; sign <= 1; sign += 2, sum = 0) {
      for (int k = 0; k < LP_WEIGHT_GROUP; k++) {
        double code = fmin(fmax(rint(w[k] / (sign * scale)), low), high), error = (double)w[k] - sign * scale * code;
        sum += (double)weight[k] * error * error;
      }
      least = fmin(least, sum);
    }
  }
  return least;
}

/* Groups whose elements matter differently have nearly the least weighted error, and less than without the weights. A
 * group of zeros, and weights that are all zero, are quantised as without weights. */
LP_TEST(scales_by_weighted_error) {
  uint32_t seed = 7;
  for (int wide = 0; wide < 2; wide++) {
    double with = 0, without = 0, least = 0;
    for (int round = 0; round < 60; round++) {
      float w[LP_WEIGHT_GROUP], weight[LP_WEIGHT_GROUP], most = 0;
      uint8_t code[LP_WEIGHT_GROUP];
      for (int i = 0; i < LP_WEIGHT_GROUP; i++) {
        double u[6];
        for (int k = 0; k < 6; k++) {
          seed = seed * 1664525u + 1013904223u;
          u[k] = (double)(seed >> 8) / (1 << 24);
        }
        w[i] = (float)(u[0] + u[1] + u[2] + u[3] - 2);
        weight[i] = (float)exp(8 * u[4]);
        most = fmaxf(most, fabsf(w[i]));
      }
      lp_dtype codes = wide ? LP_I8 : LP_U4;
      float scale = lp_quantise(w, LP_WEIGHT_GROUP, 1, weight, codes, LP_F32, code);
      with += weighted_error(w, weight, code, scale, wide);
      scale = lp_quantise(w, LP_WEIGHT_GROUP, 1, NULL, codes, LP_F32, code);
      without += weighted_error(w, weight, code, scale, wide);
      least += least_error(w, weight, most, wide);
    }
    ck_assert_double_le(with, (wide ? 1.5 : 1.1) * least); /* fewer scales are tried for int8 */
    ck_assert_double_lt(with, 0.9 * without);
  }
  const float zeros[LP_WEIGHT_GROUP] = {0}, some[LP_WEIGHT_GROUP] = {1, -3, 2};
  uint8_t code[LP_WEIGHT_GROUP], plain[LP_WEIGHT_GROUP];
  ck_assert_float_eq(lp_quantise(zeros, LP_WEIGHT_GROUP, 1, some, LP_U4, LP_F16, code), 0);
  ck_assert_float_eq(lp_quantise(some, LP_WEIGHT_GROUP, 1, zeros, LP_U4, LP_F16, code),
                     lp_quantise(some, LP_WEIGHT_GROUP, 1, NULL, LP_U4, LP_F16, plain));
  ck_assert_mem_eq(code, plain, sizeof code);
}

/* ---- op.matmul of other types ---- */

LP_TEST(matmul_of_other_types) {
  static const lp_dtype dtypes[] = {LP_I32, LP_I64, LP_F64, LP_U32};
  harness *h = harness_create(2, 7, 0);
  lp_value *a[LP_COUNT(dtypes)], *b[LP_COUNT(dtypes)];
  for (size_t i = 0; i < LP_COUNT(dtypes); i++) {
    a[i] = harness_input(h, dtypes[i], "b,3,s,40", 0, 255);
    b[i] = harness_input(h, dtypes[i], "40,17", 0, 128);
  }
  for (size_t i = 0; i < LP_COUNT(dtypes); i++)
    harness_keep(h, HARNESS_OP(h, LP_OP_MATMUL, harness_type(h, dtypes[i], "b,3,s,17"), a[i], b[i]));
  h->gpu_lacks = "it computes in f32, found i32";
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}
