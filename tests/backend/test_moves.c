/* Operators that move elements: gathers, concat, slice, transpose, expand, pad, and those that compute from sizes. */
#include "base/poly.h"
#include "harness.h"
#include "tests/suite.h"

#include <stdlib.h>

LP_CASE(.timeout = 300);

static const lp_poly *size(harness *h, const char *text) {
  return harness_type(h, LP_I64, text).dim[0];
}

static lp_value *polys(harness *h, lp_value *value, const char *name, const char *const *texts, int32_t count) {
  const lp_poly *list[LP_MAX_RANK];
  for (int32_t i = 0; i < count; i++)
    list[i] = size(h, texts[i]);
  lp_op_set_polys(h->module, value->def, name, list, count);
  return value;
}

static lp_value *i64s(harness *h, lp_value *value, const char *name, const int64_t *list, int32_t count) {
  lp_op_set_i64s(h->module, value->def, name, list, count);
  return value;
}

LP_TEST(gathers) {
  harness *h = harness_create(2, 5, 0);
  lp_value *ids = harness_input(h, LP_I64, "b,s", 0, 40), *small = harness_input(h, LP_I32, "3", -3, 3);
  lp_value *x = harness_input(h, LP_F32, "b,s,7", -1, 1), *one = harness_input(h, LP_I64, "", 1, 2);
  lp_value *wide = harness_input(h, LP_I64, "b,9", 0, 100), *at = harness_input(h, LP_I64, "b,4,7", 0, 5);
  static const lp_dtype tables[] = {LP_F32, LP_F16, LP_BF16};
  for (size_t i = 0; i < LP_COUNT(tables); i++) {
    lp_value *table = harness_constant(h, tables[i], "40,33", -1, 1);
    harness_keep(h,
                 harness_i64(h, HARNESS_OP(h, LP_OP_GATHER, harness_type(h, LP_F32, "b,s,33"), table, ids), "axis", 0));
  }
  harness_keep(h, harness_i64(h, HARNESS_OP(h, LP_OP_GATHER, harness_type(h, LP_F32, "b,3,7"), x, small), "axis", 1));
  harness_keep(h, harness_i64(h, HARNESS_OP(h, LP_OP_GATHER, harness_type(h, LP_F32, "b,s"), x, one), "axis", 2));
  harness_keep(h, harness_i64(h, HARNESS_OP(h, LP_OP_GATHER, harness_type(h, LP_I64, "b,3"), wide, small), "axis", 1));
  harness_keep(
      h, harness_i64(h, HARNESS_OP(h, LP_OP_GATHER_ELEMENTS, harness_type(h, LP_F32, "b,4,7"), x, at), "axis", 1));
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

/* Indices that occur twice or are out of range are clamped and joined in the order of the index, for any number of
 * threads. */
LP_TEST(scatters) {
  static const char *const reductions[] = {"none", "add", "mul", "min", "max"};
  static const lp_dtype dtypes[] = {LP_F32, LP_F64, LP_I32, LP_I64, LP_U64, LP_U8, LP_F16};
  harness *h = harness_create(2, 5, 0);
  lp_value *line = harness_input(h, LP_I64, "b,4,3", -5, 4), *pair = harness_input(h, LP_I32, "9,2", 0, 1);
  lp_value *deep = harness_input(h, LP_I64, "s,3", 0, 1);
  lp_value *x[LP_COUNT(dtypes)], *few[LP_COUNT(dtypes)], *rows[LP_COUNT(dtypes)], *cells[LP_COUNT(dtypes)];
  for (size_t i = 0; i < LP_COUNT(dtypes); i++) {
    x[i] = harness_input(h, dtypes[i], "b,s,7", 0, 9);
    few[i] = harness_input(h, dtypes[i], "b,4,3", 0, 9);
    rows[i] = harness_input(h, dtypes[i], "9,7", 0, 9);
    cells[i] = harness_input(h, dtypes[i], "s", 0, 9);
  }
  for (size_t i = 0; i < LP_COUNT(dtypes); i++)
    for (size_t k = 0; k < (dtypes[i] == LP_U8 || dtypes[i] == LP_F16 ? 1 : LP_COUNT(reductions)); k++) {
      lp_value *y = HARNESS_OP(h, LP_OP_SCATTER_ELEMENTS, harness_type(h, dtypes[i], "b,s,7"), x[i], line, few[i]);
      harness_keep(h, harness_str(h, harness_i64(h, y, "axis", 1), "reduction", reductions[k]));
      y = HARNESS_OP(h, LP_OP_SCATTER_ND, harness_type(h, dtypes[i], "b,s,7"), x[i], pair, rows[i]);
      harness_keep(h, harness_str(h, y, "reduction", reductions[k]));
      y = HARNESS_OP(h, LP_OP_SCATTER_ND, harness_type(h, dtypes[i], "b,s,7"), x[i], deep, cells[i]);
      harness_keep(h, harness_str(h, y, "reduction", reductions[k]));
    }
  h->gpu_lacks = "there is no kernel for it";
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

LP_TEST(copies) {
  harness *h = harness_create(2, 6, 3);
  lp_value *x = harness_input(h, LP_F32, "b,s,5", -1, 1), *y = harness_input(h, LP_F32, "b,4,5", -1, 1);
  lp_value *i = harness_input(h, LP_I64, "s,8", -9, 9), *flag = harness_input(h, LP_BOOL, "b,s", 0, 1);
  harness_keep(h,
               harness_i64(h, HARNESS_OP(h, LP_OP_CONCAT, harness_type(h, LP_F32, "b,2*s + 4,5"), x, y, x), "axis", 1));
  harness_keep(h, harness_last_rows(h, x));
  lp_value *back = HARNESS_OP(h, LP_OP_SLICE, harness_type(h, LP_I64, "s,4"), i);
  harness_keep(h, i64s(h, polys(h, back, "starts", (const char *[]){"s - 1", "1"}, 2), "steps", (int64_t[]){-1, 2}, 2));
  lp_value *nothing = HARNESS_OP(h, LP_OP_SLICE, harness_type(h, LP_F32, "b,s,0"), x);
  harness_keep(
      h, i64s(h, polys(h, nothing, "starts", (const char *[]){"0", "0", "5"}, 3), "steps", (int64_t[]){1, 1, 1}, 3));
  harness_keep(h, harness_i64(h, HARNESS_OP(h, LP_OP_CONCAT, x->type, nothing, x), "axis", 2));
  lp_value *turned = HARNESS_OP(h, LP_OP_TRANSPOSE, harness_type(h, LP_F32, "5,b,s"), x);
  harness_keep(h, i64s(h, turned, "perm", (int64_t[]){2, 0, 1}, 3));
  lp_value *bits = HARNESS_OP(h, LP_OP_TRANSPOSE, harness_type(h, LP_BOOL, "s,b"), flag);
  harness_keep(h, i64s(h, bits, "perm", (int64_t[]){1, 0}, 2));
  harness_keep(h, HARNESS_OP(h, LP_OP_EXPAND, harness_type(h, LP_BOOL, "3,b,s"), flag));
  lp_value *row = HARNESS_OP(h, LP_OP_RESHAPE, harness_type(h, LP_F32, "b,1,s,5"), x);
  harness_keep(h, HARNESS_OP(h, LP_OP_EXPAND, harness_type(h, LP_F32, "b,3,s,5"), row));
  lp_value *padded =
      harness_f64(h, HARNESS_OP(h, LP_OP_PAD, harness_type(h, LP_F32, "b,s + p + 2,6"), x), "value", -1.5);
  harness_keep(h, polys(h, padded, "before", (const char *[]){"0", "p", "1"}, 3));
  lp_value *constant = harness_constant(h, LP_F16, "1,1,5", -1, 1);
  harness_keep(h, HARNESS_OP(h, LP_OP_EXPAND, harness_type(h, LP_F16, "b,s,5"), constant));
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

/* Windows over one, two and three axes. */
LP_TEST(windows) {
  harness *h = harness_create(2, 9, 0);
  lp_value *x = harness_input(h, LP_F32, "b,3,s", -1, 1), *y = harness_input(h, LP_F64, "2,7,8", -1, 1);
  lp_value *z = harness_input(h, LP_U8, "1,2,4,5,3", 0, 99);
  lp_value *one = HARNESS_OP(h, LP_OP_WINDOWS, harness_type(h, LP_F32, "b,3,3,s - 4"), x);
  i64s(h, i64s(h, one, "window", (int64_t[]){3}, 1), "steps", (int64_t[]){1}, 1);
  harness_keep(h, i64s(h, one, "dilations", (int64_t[]){2}, 1));
  lp_value *two = HARNESS_OP(h, LP_OP_WINDOWS, harness_type(h, LP_F64, "2,3,2,3,4"), y);
  i64s(h, i64s(h, two, "window", (int64_t[]){3, 2}, 2), "steps", (int64_t[]){2, 2}, 2);
  harness_keep(h, i64s(h, two, "dilations", (int64_t[]){1, 1}, 2));
  lp_value *three = HARNESS_OP(h, LP_OP_WINDOWS, harness_type(h, LP_U8, "1,2,2,3,1,3,2,3"), z);
  i64s(h, i64s(h, three, "window", (int64_t[]){2, 3, 1}, 3), "steps", (int64_t[]){1, 2, 1}, 3);
  harness_keep(h, i64s(h, three, "dilations", (int64_t[]){1, 1, 1}, 3));
  h->gpu_lacks = "values of type f64";
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

LP_TEST(made_from_sizes) {
  static const lp_dtype dtypes[] = {LP_F32, LP_I64, LP_I32, LP_F16, LP_U8, LP_F64};
  harness *h = harness_create(2, 6, 3);
  harness_input(h, LP_F32, "1", 0, 1);
  for (size_t i = 0; i < LP_COUNT(dtypes); i++) {
    lp_value *iota = harness_op1(h, LP_OP_IOTA, 0, NULL, harness_type(h, dtypes[i], "p + s"));
    lp_op_set_poly(h->module, iota->def, "start", size(h, "p"));
    lp_op_set_poly(h->module, iota->def, "step", size(h, i == 4 ? "1" : "2 - s"));
    lp_value *fill = harness_op1(h, LP_OP_FILL, 0, NULL, harness_type(h, dtypes[i], "b,s,3"));
    harness_keep(h, iota);
    harness_keep(h, harness_f64(h, fill, "value", i % 2 ? 7 : 3));
  }
  lp_value *dims = harness_op1(h, LP_OP_DIMS, 0, NULL, harness_type(h, LP_I64, "3"));
  harness_keep(h, polys(h, dims, "values", (const char *[]){"b", "p + s", "17"}, 3));
  h->gpu_lacks = "values of type f64";
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}
