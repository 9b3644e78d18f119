/* Norms, softmax, reductions, argmax, running sums. */
#include "harness.h"
#include "tests/suite.h"

#include <stdlib.h>

LP_CASE(.timeout = 300);

static lp_value *norm(harness *h, lp_kind kind, int32_t count, lp_value *const *in, const char *type) {
  lp_type types[] = {in[0]->type, in[0]->type};
  while (!in[count - 1])
    count--;
  lp_op *op = harness_op(h, kind, count, in, kind == LP_OP_NORM ? 1 : 2, types);
  harness_f64(h, harness_str(h, op->out[0], "type", type), "epsilon", 1e-5);
  for (int32_t i = 0; i < op->out_count; i++)
    harness_keep(h, op->out[i]);
  return op->out[0];
}

LP_LOOP_TEST(norms, 0, 2) {
  static const int sizes[] = {1, 7, 64, 100, 576};
  harness *h = harness_create(2, _i ? 9 : 1, 0);
  lp_value *x[LP_COUNT(sizes)], *r[LP_COUNT(sizes)];
  for (size_t i = 0; i < LP_COUNT(sizes); i++) {
    char dims[32];
    snprintf(dims, sizeof dims, "b,s,%d", sizes[i]);
    x[i] = harness_input(h, LP_F32, dims, -3, 3);
    r[i] = harness_input(h, LP_F32, dims, -3, 3);
  }
  for (size_t i = 0; i < LP_COUNT(sizes); i++) {
    char n[16];
    snprintf(n, sizeof n, "%d", sizes[i]);
    lp_value *w = harness_constant(h, i % 2 ? LP_F16 : LP_F32, n, 0.5, 1.5),
             *bias = harness_constant(h, LP_F32, n, -1, 1);
    norm(h, LP_OP_NORM, 3, (lp_value *[]){x[i], w, NULL}, "rms");
    norm(h, LP_OP_NORM, 3, (lp_value *[]){x[i], w, bias}, "layer");
    norm(h, LP_OP_NORM, 1, (lp_value *[]){x[i]}, "layer");
    norm(h, LP_OP_ADD_NORM, 4, (lp_value *[]){x[i], r[i], w, NULL}, "rms");
    norm(h, LP_OP_ADD_NORM, 4, (lp_value *[]){x[i], r[i], w, bias}, "layer");
  }
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

LP_TEST(softmax) {
  harness *h = harness_create(2, 7, 12);
  lp_value *x = harness_input(h, LP_F32, "b,3,s,p + s", -9, 9), *one = harness_input(h, LP_F32, "5,1", -1, 1);
  harness_keep(h, HARNESS_OP(h, LP_OP_SOFTMAX, x->type, x));
  harness_keep(h, harness_bool(h, HARNESS_OP(h, LP_OP_SOFTMAX, x->type, x), "log", true));
  harness_keep(h, HARNESS_OP(h, LP_OP_SOFTMAX, one->type, one));
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

static void reduce(harness *h, const char *fn, lp_value *x, const int64_t *axes, int32_t count, const char *dims) {
  lp_value *y = HARNESS_OP(h, LP_OP_REDUCE, harness_type(h, x->type.dtype, dims), x);
  harness_bool(h, harness_str(h, y, "fn", fn), "keepdims", true);
  lp_op_set_i64s(h->module, y->def, "axes", axes, count);
  harness_keep(h, y);
}

LP_TEST(reductions) {
  static const char *const fns[] = {"sum", "mean", "max", "min", "prod", "l1", "l2", "sumsq", "logsumexp"};
  harness *h = harness_create(2, 6, 0);
  lp_value *x = harness_input(h, LP_F32, "b,s,3,19", -1.5, 1.5), *i = harness_input(h, LP_I64, "b,s,5", -4, 4);
  lp_value *wide = harness_input(h, LP_F64, "b,s,3", 0.5, 1.5), *small = harness_input(h, LP_I32, "b,s,3", -9, 9);
  for (size_t k = 0; k < LP_COUNT(fns); k++) {
    reduce(h, fns[k], x, (int64_t[]){3}, 1, "b,s,3,1");
    reduce(h, fns[k], x, (int64_t[]){1}, 1, "b,1,3,19");
    reduce(h, fns[k], x, (int64_t[]){2, 3}, 2, "b,s,1,1");
    reduce(h, fns[k], x, (int64_t[]){0, 1, 2, 3}, 4, "1,1,1,1");
    reduce(h, fns[k], x, (int64_t[]){0, 2}, 2, "1,s,1,19");
    reduce(h, fns[k], wide, (int64_t[]){1}, 1, "b,1,3");
    if (k < 4) reduce(h, fns[k], i, (int64_t[]){2}, 1, "b,s,1");
    if (k < 6) reduce(h, fns[k], small, (int64_t[]){0}, 1, "1,s,3");
  }
  h->gpu_lacks = "it computes in f32, found f64";
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

LP_TEST(argmax_and_cumsum) {
  harness *h = harness_create(2, 6, 0);
  lp_value *x = harness_input(h, LP_F32, "b,s,101", -2, 2), *ties = harness_input(h, LP_I64, "b,9", 0, 3);
  lp_value *whole = HARNESS_OP(h, LP_OP_MAP, harness_type(h, LP_F32, "b,9"), ties);
  harness_str(h, whole, "fn", "cast");
  for (int last = 0; last < 2; last++) {
    lp_value *y = HARNESS_OP(h, LP_OP_ARGMAX, harness_type(h, LP_I64, "b,s"), x);
    lp_value *z = HARNESS_OP(h, LP_OP_ARGMAX, harness_type(h, LP_I64, "b,1"), whole);
    lp_value *m = HARNESS_OP(h, LP_OP_ARGMAX, harness_type(h, LP_I64, "b,101"), x);
    harness_bool(h, harness_i64(h, y, "axis", 2), "keepdims", false);
    harness_bool(h, harness_i64(h, z, "axis", 1), "keepdims", true);
    harness_bool(h, harness_i64(h, m, "axis", 1), "keepdims", false);
    lp_value *const all[] = {y, z, m};
    for (int i = 0; i < 3; i++)
      harness_keep(h, last ? harness_bool(h, all[i], "last", true) : all[i]);
  }
  for (int how = 0; how < 4; how++) {
    lp_value *y = harness_i64(h, HARNESS_OP(h, LP_OP_CUMSUM, x->type, x), "axis", how / 2 + 1);
    lp_value *i = harness_i64(h, HARNESS_OP(h, LP_OP_CUMSUM, ties->type, ties), "axis", 1);
    harness_keep(h, harness_bool(h, harness_bool(h, y, "exclusive", how & 1), "reverse", how & 2));
    harness_keep(h, harness_bool(h, harness_bool(h, i, "exclusive", how & 2), "reverse", how & 1));
  }
  h->gpu_lacks = "there is no kernel for it";
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

/* Every element type, by the plain loops. */
LP_TEST(axis_types) {
  static const lp_dtype dtypes[] = {LP_F64, LP_F16, LP_I64, LP_I32, LP_U32, LP_I8, LP_U8, LP_U64};
  harness *h = harness_create(2, 5, 0);
  lp_value *x[LP_COUNT(dtypes)];
  for (size_t i = 0; i < LP_COUNT(dtypes); i++)
    x[i] = harness_input(h, dtypes[i], "b,7,s", dtypes[i] == LP_F64 ? -2 : 0, 3);
  for (size_t i = 0; i < LP_COUNT(dtypes); i++)
    for (int how = 0; how < 4; how++) {
      lp_value *best = HARNESS_OP(h, LP_OP_ARGMAX, harness_type(h, LP_I64, "b,s"), x[i]);
      harness_bool(h, harness_i64(h, best, "axis", 1), "keepdims", false);
      harness_keep(h, harness_bool(h, harness_bool(h, best, "min", how & 1), "last", how & 2));
      lp_value *run = harness_i64(h, HARNESS_OP(h, LP_OP_CUMSUM, x[i]->type, x[i]), "axis", how / 2 + 1);
      harness_bool(h, harness_bool(h, run, "product", how & 1), "exclusive", how & 2);
      harness_keep(h, harness_bool(h, run, "reverse", how == 1));
    }
  h->gpu_lacks = "it computes in f32";
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

/* Of floats, which GPUs compare too, along the last axis and one before it. */
LP_TEST(greatest_floats) {
  harness *h = harness_create(2, 6, 0);
  lp_value *few = harness_input(h, LP_I64, "b,s,70,3", 0, 9), *x = harness_input(h, LP_F32, "b,s,300", -2, 2);
  lp_value *ties = HARNESS_OP(h, LP_OP_MAP, harness_type(h, LP_F32, "b,s,70,3"), few);
  harness_str(h, ties, "fn", "cast");
  lp_value *root = HARNESS_OP(h, LP_OP_MAP, x->type, x); /* NaN where x is negative */
  harness_str(h, root, "fn", "sqrt");
  const struct {
    lp_value *x;
    const char *dims;
    int64_t axis;
  } of[] = {{ties, "b,s,8,3", 2}, {ties, "b,s,70,3", 2}, {ties, "b,s,70,2", 3}, {x, "b,s,6", 2}, {root, "b,s,200", 2}};
  for (size_t i = 0; i < LP_COUNT(of); i++)
    for (int min = 0; min < 2; min++) {
      lp_type types[] = {harness_type(h, LP_F32, of[i].dims), harness_type(h, LP_I64, of[i].dims)};
      lp_op *op = harness_op(h, LP_OP_TOPK, 1, (lp_value *[]){of[i].x}, 2, types);
      harness_bool(h, harness_i64(h, op->out[0], "axis", of[i].axis), "min", min);
      harness_keep(h, op->out[0]);
      harness_keep(h, op->out[1]);
    }
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

/* Many ties, few to all places, and every element type. */
LP_TEST(greatest) {
  static const lp_dtype dtypes[] = {LP_F32, LP_F64, LP_F16, LP_BF16, LP_I64, LP_U64,
                                    LP_I32, LP_U32, LP_I16, LP_U16,  LP_I8,  LP_U8};
  static const char *const dims[] = {"b,1,s", "b,5,s", "b,37,s"};
  harness *h = harness_create(2, 6, 0);
  lp_value *x[LP_COUNT(dtypes)];
  for (size_t i = 0; i < LP_COUNT(dtypes); i++)
    x[i] = harness_input(h, dtypes[i], "b,37,s", 0, 9);
  for (size_t i = 0; i < LP_COUNT(dtypes); i++)
    for (size_t k = 0; k < LP_COUNT(dims); k++)
      for (int min = 0; min < 2; min++) {
        lp_type types[] = {harness_type(h, dtypes[i], dims[k]), harness_type(h, LP_I64, dims[k])};
        lp_op *op = harness_op(h, LP_OP_TOPK, 1, &x[i], 2, types);
        harness_bool(h, harness_i64(h, op->out[0], "axis", 1), "min", min);
        harness_keep(h, op->out[0]);
        harness_keep(h, op->out[1]);
      }
  h->gpu_lacks = "it computes in f32";
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}
