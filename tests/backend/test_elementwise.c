/* op.map and op.fused: every function, broadcasting, element types, casts. */
#include "harness.h"
#include "tests/suite.h"

#include <stdlib.h>

LP_CASE(.timeout = 300);

static lp_value *map(harness *h, const char *fn, lp_dtype dtype, const char *dims, lp_value *x, lp_value *y,
                     lp_value *z) {
  lp_value *in[] = {x, y, z};
  lp_value *out = harness_op1(h, LP_OP_MAP, 3, in, harness_type(h, dtype, dims));
  harness_str(h, out, "fn", fn);
  harness_keep(h, out);
  return out;
}

/* A function of one float, and the range of its operands. */
static const struct {
  const char *fn;
  double low, high;
} unary[] = {
    {"abs", -3, 3},        {"neg", -3, 3},         {"sign", -3, 3},      {"floor", -3, 3},
    {"ceil", -3, 3},       {"round", -9, 9},       {"sqrt", 0, 9},       {"recip", 0.1, 4},
    {"exp", -20, 20},      {"log", 1e-3, 50},      {"sin", -30, 30},     {"cos", -30, 30},
    {"tan", -1.4, 1.4},    {"tanh", -6, 6},        {"sinh", -8, 8},      {"cosh", -8, 8},
    {"asin", -1, 1},       {"acos", -1, 1},        {"atan", -20, 20},    {"erf", -4, 4},
    {"sigmoid", -20, 20},  {"hardsigmoid", -5, 5}, {"hardswish", -5, 5}, {"relu", -2, 2},
    {"leakyrelu", -2, 2},  {"elu", -5, 5},         {"selu", -5, 5},      {"celu", -5, 5},
    {"softplus", -30, 30}, {"softsign", -5, 5},    {"mish", -8, 8},      {"gelu", -6, 6},
    {"gelu_tanh", -6, 6},  {"quick_gelu", -9, 9},  {"silu", -9, 9},      {"asinh", -90, 90},
    {"acosh", 1, 90},      {"atanh", -1, 1},       {"shrink", -2, 2},    {"thresholdedrelu", -3, 3},
};

LP_TEST(unary_functions) {
  harness *h = harness_create(1, 1, 0);
  lp_value *x[LP_COUNT(unary)];
  for (size_t i = 0; i < LP_COUNT(unary); i++)
    x[i] = harness_input(h, LP_F32, "3,37", unary[i].low, unary[i].high);
  for (size_t i = 0; i < LP_COUNT(unary); i++)
    map(h, unary[i].fn, LP_F32, "3,37", x[i], NULL, NULL);
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

/* Doubles are computed as doubles. */
LP_TEST(double_functions) {
  harness *h = harness_create(1, 1, 0);
  h->rtol = 1e-11;
  h->atol = 1e-13;
  lp_value *x[LP_COUNT(unary)], *y = harness_input(h, LP_F64, "3,37", -4, 4);
  for (size_t i = 0; i < LP_COUNT(unary); i++)
    x[i] = harness_input(h, LP_F64, "3,37", unary[i].low, unary[i].high);
  for (size_t i = 0; i < LP_COUNT(unary); i++)
    map(h, unary[i].fn, LP_F64, "3,37", x[i], NULL, NULL);
  map(h, "pow", LP_F64, "3,37", x[7], y, NULL);
  map(h, "fmod", LP_F64, "3,37", x[0], y, NULL);
  h->gpu_lacks = "values of type f64";
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

/* Bits, and shifts by less than the width, by the width, and by more. */
LP_TEST(bits) {
  static const lp_dtype dtypes[] = {LP_U8, LP_I8, LP_U16, LP_I16, LP_I32, LP_U32, LP_I64, LP_U64};
  static const char *const fns[] = {"bitand", "bitor", "bitxor", "shl", "shr"};
  harness *h = harness_create(1, 1, 0);
  lp_value *x[LP_COUNT(dtypes)], *y[LP_COUNT(dtypes)];
  for (size_t i = 0; i < LP_COUNT(dtypes); i++) {
    x[i] = harness_input(h, dtypes[i], "3,41", i % 2 ? -120 : 0, 127);
    y[i] = harness_input(h, dtypes[i], "41", 0, 66);
  }
  lp_value *f = harness_input(h, LP_F32, "41", -9, 9), *g = harness_input(h, LP_F16, "41", -9, 9);
  lp_value *d = harness_input(h, LP_F64, "41", -9, 9), *b = harness_input(h, LP_BF16, "41", -9, 9);
  for (size_t i = 0; i < LP_COUNT(dtypes); i++) {
    for (size_t k = 0; k < LP_COUNT(fns); k++)
      map(h, fns[k], dtypes[i], "3,41", x[i], y[i], NULL);
    map(h, "bitnot", dtypes[i], "3,41", x[i], NULL, NULL);
  }
  map(h, "bitcast", LP_I32, "41", f, NULL, NULL);
  map(h, "bitcast", LP_I16, "41", g, NULL, NULL);
  map(h, "bitcast", LP_U16, "41", b, NULL, NULL);
  map(h, "bitcast", LP_U64, "41", d, NULL, NULL);
  map(h, "bitcast", LP_U8, "3,41", x[1], NULL, NULL);
  h->gpu_lacks = "fn 'shl'";
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

static const char *const arithmetic[] = {"add", "sub", "mul", "div", "pow", "mod", "fmod", "min", "max", "prelu"};
static const char *const comparisons[] = {"eq", "lt", "le", "gt", "ge"};

LP_TEST(binary_functions) {
  static const lp_dtype dtypes[] = {LP_F32, LP_F64, LP_I64, LP_I32, LP_F16, LP_BF16, LP_U8};
  harness *h = harness_create(1, 1, 0);
  h->rtol = 1e-3; /* operands are whole, because pow and mod of f32 are not exact near a jump */
  lp_value *x[LP_COUNT(dtypes)], *y[LP_COUNT(dtypes)];
  for (size_t i = 0; i < LP_COUNT(dtypes); i++) {
    x[i] = harness_input(h, dtypes[i], "2,33", lp_dtype_is_float(dtypes[i]) ? 0.5 : 1, 6);
    y[i] = harness_input(h, dtypes[i], "2,33", 1, 4);
  }
  for (size_t i = 0; i < LP_COUNT(dtypes); i++) {
    for (size_t k = 0; k < LP_COUNT(arithmetic); k++)
      map(h, arithmetic[k], dtypes[i], "2,33", x[i], y[i], NULL);
    for (size_t k = 0; k < LP_COUNT(comparisons); k++)
      map(h, comparisons[k], LP_BOOL, "2,33", x[i], y[i], NULL);
  }
  h->gpu_lacks = "values of type f64";
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

/* Integer division and remainders of both signs, by zero only where it must not trap. */
LP_TEST(integer_signs) {
  harness *h = harness_create(1, 1, 0);
  lp_value *x = harness_input(h, LP_I64, "129", -40, 40), *y = harness_input(h, LP_I64, "129", -9, -1);
  lp_value *small = harness_input(h, LP_I32, "65", -100, 100), *two = harness_constant(h, LP_I32, "1", 3, 3.5);
  static const char *const fns[] = {"div", "mod", "fmod", "min", "max"};
  for (size_t i = 0; i < LP_COUNT(fns); i++) {
    map(h, fns[i], LP_I64, "129", x, y, NULL);
    map(h, fns[i], LP_I32, "65", small, two, NULL);
  }
  static const char *const ones[] = {"abs", "neg", "sign", "relu"};
  for (size_t i = 0; i < LP_COUNT(ones); i++)
    map(h, ones[i], LP_I64, "129", x, NULL, NULL);
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

/* Shapes of two operands and the result. */
static const char *const broadcasts[][3] = {
    {"5,7", "7", "5,7"},
    {"5,7", "5,1", "5,7"},
    {"5,1", "1,7", "5,7"},
    {"2,3,4,17", "3,1,17", "2,3,4,17"},
    {"2,1,4,1", "3,1,17", "2,3,4,17"},
    {"b,s,19", "1,1,19", "b,s,19"},
    {"b,s,1", "b,s,33", "b,s,33"},
    {"b,1,s,s", "1,3,1,s", "b,3,s,s"},
    {"1", "1", "1"},
    {"", "1,1", "1,1"},
    {"3,5,2", "1", "3,5,2"},
};

LP_TEST(broadcasting) {
  harness *h = harness_create(2, 5, 0);
  lp_value *x[LP_COUNT(broadcasts)], *y[LP_COUNT(broadcasts)];
  for (size_t i = 0; i < LP_COUNT(broadcasts); i++) {
    x[i] = harness_input(h, LP_F32, broadcasts[i][0], -2, 2);
    y[i] = harness_input(h, LP_F32, broadcasts[i][1], -2, 2);
  }
  for (size_t i = 0; i < LP_COUNT(broadcasts); i++) {
    map(h, "sub", LP_F32, broadcasts[i][2], x[i], y[i], NULL);
    map(h, "mul", LP_F32, broadcasts[i][2], y[i], x[i], NULL);
  }
  lp_value *weight = harness_constant(h, LP_F16, "33", -1, 1), *number = harness_constant(h, LP_F32, "", 0.5, 0.5);
  map(h, "add", LP_F32, "b,s,33", y[6], weight, NULL);
  map(h, "pow", LP_F32, "b,s,33", y[6], harness_constant(h, LP_F32, "1", 2, 2), NULL);
  map(h, "add", LP_F32, "b,s,33", number, y[6], NULL);
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

LP_TEST(casts) {
  static const lp_dtype dtypes[] = {LP_F32, LP_F64, LP_F16, LP_BF16, LP_I64, LP_I32, LP_I16, LP_I8, LP_U8, LP_BOOL};
  static const lp_dtype minis[] = {LP_F8E4M3FN, LP_F8E4M3FNUZ, LP_F8E5M2, LP_F8E5M2FNUZ, LP_F8E8M0};
  harness *h = harness_create(1, 1, 0);
  lp_value *x[LP_COUNT(dtypes)];
  for (size_t i = 0; i < LP_COUNT(dtypes); i++)
    x[i] = harness_input(h, dtypes[i], "41", 0, 50);
  lp_value *wide = harness_input(h, LP_F32, "257", -600, 600), *positive = harness_input(h, LP_F32, "65", 0, 9);
  for (size_t i = 0; i < LP_COUNT(dtypes); i++)
    for (size_t k = 0; k < LP_COUNT(dtypes); k++)
      map(h, "cast", dtypes[k], "41", x[i], NULL, NULL);
  for (size_t i = 0; i < LP_COUNT(minis); i++) {
    lp_value *from = minis[i] == LP_F8E8M0 ? positive : wide;
    const char *dims = minis[i] == LP_F8E8M0 ? "65" : "257";
    lp_value *cut = map(h, "cast", minis[i], dims, from, NULL, NULL);
    harness_bool(h, map(h, "cast", minis[i], dims, from, NULL, NULL), "saturate", false);
    harness_str(h, map(h, "cast", minis[i], dims, from, NULL, NULL), "round", "nearest");
    map(h, "cast", LP_F32, dims, cut, NULL, NULL);
  }
  h->gpu_lacks = "values of type f64";
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

LP_TEST(logic_and_choice) {
  harness *h = harness_create(3, 7, 0);
  lp_value *p = harness_input(h, LP_BOOL, "b,s", 0, 1), *q = harness_input(h, LP_BOOL, "s", 0, 1);
  lp_value *x = harness_input(h, LP_F32, "b,s", -1, 1), *y = harness_input(h, LP_F32, "1,s", -1, 1);
  static const char *const fns[] = {"and", "or", "xor"};
  for (size_t i = 0; i < LP_COUNT(fns); i++)
    map(h, fns[i], LP_BOOL, "b,s", p, q, NULL);
  map(h, "not", LP_BOOL, "b,s", p, NULL, NULL);
  map(h, "where", LP_F32, "b,s", p, x, y);
  map(h, "where", LP_F32, "b,s", q, y, x);
  map(h, "isnan", LP_BOOL, "b,s", x, NULL, NULL);
  map(h, "isinf", LP_BOOL, "b,s", x, NULL, NULL);
  lp_value *clipped = map(h, "clip", LP_F32, "b,s", x, NULL, NULL);
  harness_f64(h, harness_f64(h, clipped, "alpha", -0.25), "beta", 0.5);
  lp_value *swish = map(h, "elu", LP_F32, "b,s", x, NULL, NULL);
  harness_f64(h, swish, "alpha", 1.5);
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

/* (x + w) * c, silu of it: two results from one loop. */
LP_TEST(fused) {
  harness *h = harness_create(2, 9, 0);
  lp_value *x = harness_input(h, LP_F32, "b,s,21", -2, 2), *r = harness_input(h, LP_F32, "b,s,1", -2, 2);
  lp_value *w = harness_constant(h, LP_F32, "21", -1, 1), *c = harness_constant(h, LP_F32, "", 0.75, 0.75);
  lp_value *in[] = {x, r, w, c};
  lp_type types[4], out[] = {x->type, harness_type(h, LP_BOOL, "b,s,21")};
  for (int i = 0; i < 4; i++)
    types[i] = in[i]->type;
  lp_op *op = harness_op(h, LP_OP_FUSED, 4, in, 2, out);
  lp_block *block = lp_op_add_region(h->module, op, 4, types);
  lp_block *outside = h->block;
  h->block = block;
  lp_value *sum = HARNESS_OP(h, LP_OP_MAP, x->type, block->arg[0], block->arg[2]);
  lp_value *scaled = HARNESS_OP(h, LP_OP_MAP, x->type, sum, block->arg[3]);
  lp_value *act = HARNESS_OP(h, LP_OP_MAP, x->type, scaled);
  lp_value *less = HARNESS_OP(h, LP_OP_MAP, out[1], act, block->arg[1]);
  static const char *const fns[] = {"add", "mul", "silu", "lt"};
  lp_value *const values[] = {sum, scaled, act, less};
  for (int i = 0; i < 4; i++)
    harness_str(h, values[i], "fn", fns[i]);
  lp_op *yield = lp_op_create(h->module, LP_OP_YIELD, LP_LOC_NONE, 2, &values[2], 0, NULL);
  lp_op_append(block, yield);
  h->block = outside;
  harness_keep(h, op->out[0]);
  harness_keep(h, op->out[1]);
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}
