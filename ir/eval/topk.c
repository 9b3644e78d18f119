/* The greatest elements along an axis, of the reference interpreter. */
#include "ir/eval/eval.h"

#include <math.h>

/* Tells whether element b, which follows element a, sorts before it. A NaN is greater than every number. */
static bool comes_first(const lp_array *in, int64_t a, int64_t b, bool min) {
  if (lp_dtype_is_float(in->dtype)) {
    double x = lp_array_f64(in, min ? b : a), y = lp_array_f64(in, min ? a : b);
    return y > x || (isnan(y) && !isnan(x));
  }
  int64_t x = lp_array_i64(in, min ? b : a), y = lp_array_i64(in, min ? a : b);
  return in->dtype == LP_U64 ? (uint64_t)y > (uint64_t)x : y > x;
}

typedef struct {
  const lp_array *in;
  int64_t first, inner; /* element i of the line is first + i * inner */
  bool min;
} line;

/* Merges the sorted places [from, middle) and [middle, to). Of equal elements those of the first run come first. */
static void merge(const line *l, const int64_t *from, int64_t *to, int64_t start, int64_t middle, int64_t end) {
  int64_t a = start, b = middle;
  for (int64_t i = start; i < end; i++) {
    bool second = a == middle ||
                  (b < end && comes_first(l->in, l->first + from[a] * l->inner, l->first + from[b] * l->inner, l->min));
    to[i] = second ? from[b++] : from[a++];
  }
}

/* The places of a line in order: a merge sort in `places`, with `spare` as long. */
static void sort_line(const line *l, int64_t *places, int64_t *spare, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    places[i] = i;
  for (int64_t run = 1; run < count; run *= 2) {
    for (int64_t i = 0; i < count; i += 2 * run) {
      int64_t middle = i + run < count ? i + run : count, end = i + 2 * run < count ? i + 2 * run : count;
      merge(l, places, spare, i, middle, end);
    }
    memcpy(places, spare, (size_t)count * sizeof(int64_t));
  }
}

static lp_status topk(const lp_eval *e, int64_t k, int64_t axis_given, bool min) {
  const lp_array *in = e->in[0];
  lp_array *values, *found;
  int32_t axis;
  int64_t outer, count, inner, dim[LP_MAX_RANK];
  LP_TRY(lp_eval_axis(e, axis_given, in->rank, &axis));
  lp_array_split(in, axis, &outer, &count, &inner);
  if (k < 0 || k > count) return lp_eval_fail(e, "it takes %" PRId64 " of %" PRId64 " elements", k, count);
  for (int32_t i = 0; i < in->rank; i++)
    dim[i] = i == axis ? k : in->dim[i];
  LP_TRY(lp_eval_out(e, 0, in->dtype, in->rank, dim, &values));
  LP_TRY(lp_eval_out(e, 1, LP_I64, in->rank, dim, &found));
  int64_t *places = LP_NEW_ARRAY(e->arena, int64_t, count + 1), *spare = LP_NEW_ARRAY(e->arena, int64_t, count + 1);
  for (int64_t o = 0; o < outer * inner; o++) {
    line l = {in, o / inner * count * inner + o % inner, inner, min};
    sort_line(&l, places, spare, count);
    for (int64_t i = 0; i < k; i++) {
      int64_t at = (o / inner * k + i) * inner + o % inner;
      lp_array_copy(values, at, in, l.first + places[i] * inner);
      lp_array_set_i64(found, at, places[i]);
    }
  }
  return LP_OK;
}

lp_status eval_onnx_topk(const lp_eval *e) {
  int64_t k;
  int32_t count;
  LP_TRY(lp_eval_i64s(e, 1, &k, 1, &count));
  if (count != 1) return lp_eval_fail(e, "its k is not one number");
  return topk(e, k, lp_op_i64(e->op, "axis", -1), lp_op_i64(e->op, "largest", 1) == 0);
}

lp_status eval_op_TOPK(const lp_eval *e) {
  lp_array *typed;
  int64_t axis = lp_op_i64(e->op, "axis", 0);
  LP_TRY(lp_eval_out_typed(e, 0, &typed)); /* its size along the axis is k */
  return topk(e, typed->dim[axis], axis, lp_op_bool(e->op, "min", false));
}
