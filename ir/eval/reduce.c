/* Reductions, running sums and other operators along an axis, of the reference interpreter. */
#include "ir/eval/eval.h"

#include <math.h>

/* ---- reductions ---- */

typedef enum { R_SUM, R_MEAN, R_MAX, R_MIN, R_PROD, R_L1, R_L2, R_SUMSQ, R_LOGSUM, R_LOGSUMEXP, R_COUNT } reduction;

static const char *const reductions[R_COUNT] = {"sum", "mean", "max",   "min",    "prod",
                                                "l1",  "l2",   "sumsq", "logsum", "logsumexp"};

static double reduce_start(reduction r) {
  return r == R_MAX || r == R_LOGSUMEXP ? -INFINITY : r == R_MIN ? INFINITY : r == R_PROD ? 1 : 0;
}

static double reduce_step(reduction r, double total, double x) {
  switch (r) {
  case R_MAX:
    return isnan(x) || x > total ? x : total;
  case R_MIN:
    return isnan(x) || x < total ? x : total;
  case R_PROD:
    return total * x;
  case R_L1:
    return total + fabs(x);
  case R_L2:
  case R_SUMSQ:
    return total + x * x;
  case R_LOGSUMEXP: /* log(exp(total) + exp(x)) without overflow */
    if (isinf(total) && total < 0) return x;
    return fmax(total, x) + log1p(exp(-fabs(total - x)));
  default:
    return total + x;
  }
}

static double reduce_end(reduction r, double total, double count) {
  return r == R_MEAN ? total / count : r == R_L2 ? sqrt(total) : r == R_LOGSUM ? log(total) : total;
}

/* The function on integers, which wraps around; NULL where its results are not integers. */
typedef struct {
  int64_t start;
  int64_t (*step)(int64_t total, int64_t x);
} whole_reduction;

static int64_t whole_add(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}
static int64_t whole_times(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}
static int64_t whole_square(int64_t a, int64_t b) {
  return whole_add(a, whole_times(b, b));
}
static int64_t whole_size(int64_t a, int64_t b) {
  return whole_add(a, b < 0 ? (int64_t)(0 - (uint64_t)b) : b);
}
static int64_t whole_max(int64_t a, int64_t b) {
  return a > b ? a : b;
}
static int64_t whole_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static int64_t natural_max(int64_t a, int64_t b) {
  return (uint64_t)a > (uint64_t)b ? a : b;
}
static int64_t natural_min(int64_t a, int64_t b) {
  return (uint64_t)a < (uint64_t)b ? a : b;
}

/* The least or the greatest number of a type: the maximum or the minimum of no elements. */
static int64_t limit_of(lp_dtype dtype, bool greatest) {
  int32_t bits = dtype == LP_BOOL ? 1 : lp_dtype_bits(dtype);
  bool natural = dtype == LP_BOOL || dtype == LP_U64 || dtype == LP_U32 || dtype == LP_U16 || dtype == LP_U8 ||
                 dtype == LP_U4 || dtype == LP_U2;
  if (natural) return !greatest ? 0 : bits == 64 ? -1 : (int64_t)((1ull << bits) - 1);
  uint64_t half = 1ull << (bits - 1);
  return greatest ? (int64_t)(half - 1) : -(int64_t)(half - 1) - 1;
}

static whole_reduction whole_of(reduction r, lp_dtype dtype) {
  bool natural = dtype == LP_U64;
  switch (r) {
  case R_SUM:
    return (whole_reduction){0, whole_add};
  case R_PROD:
    return (whole_reduction){1, whole_times};
  case R_SUMSQ:
    return (whole_reduction){0, whole_square};
  case R_L1:
    return (whole_reduction){0, natural ? whole_add : whole_size};
  case R_MAX:
    return (whole_reduction){limit_of(dtype, false), natural ? natural_max : whole_max};
  case R_MIN:
    return (whole_reduction){limit_of(dtype, true), natural ? natural_min : whole_min};
  default:
    return (whole_reduction){0, NULL};
  }
}

/* `kept` maps an element of the operand to its element of the result. */
static void reduce_whole(const lp_array *in, const lp_array *kept, whole_reduction whole, lp_array *out,
                         lp_arena *arena) {
  int64_t *totals = LP_NEW_ARRAY(arena, int64_t, lp_array_numel(out) + 1);
  for (int64_t i = 0; i < lp_array_numel(out); i++)
    totals[i] = whole.start;
  for (int64_t i = 0; i < lp_array_numel(in); i++) {
    int64_t *to = &totals[lp_broadcast_index(kept, i, in->rank, in->dim)];
    *to = whole.step(*to, lp_array_i64(in, i));
  }
  for (int64_t i = 0; i < lp_array_numel(out); i++)
    lp_array_set_i64(out, i, totals[i]);
}

/* Maps each element of the operand to an element of the result: axes that are reduced have stride 0. */
static lp_status reduce(const lp_eval *e, reduction r, const bool *reduced, bool keep) {
  const lp_array *in = e->in[0];
  lp_array *out, kept = {.rank = in->rank};
  int64_t dim[LP_MAX_RANK], total = lp_array_numel(in), count = 1;
  int32_t rank = 0;
  for (int32_t i = 0; i < in->rank; i++) {
    kept.dim[i] = reduced[i] ? 1 : in->dim[i];
    if (reduced[i]) count *= in->dim[i];
    if (!reduced[i] || keep) dim[rank++] = kept.dim[i];
  }
  LP_TRY(lp_eval_out(e, 0, in->dtype, rank, dim, &out));
  whole_reduction whole = whole_of(r, in->dtype);
  if (!lp_dtype_is_float(in->dtype) && whole.step) {
    reduce_whole(in, &kept, whole, out, e->arena);
    return LP_OK;
  }
  double *sums = LP_NEW_ARRAY(e->arena, double, lp_array_numel(out) + 1);
  for (int64_t i = 0; i < lp_array_numel(out); i++)
    sums[i] = reduce_start(r);
  for (int64_t i = 0; i < total; i++) {
    double *to = &sums[lp_broadcast_index(&kept, i, in->rank, in->dim)];
    *to = reduce_step(r, *to, lp_array_f64(in, i));
  }
  for (int64_t i = 0; i < lp_array_numel(out); i++)
    lp_array_set_f64(out, i, reduce_end(r, sums[i], (double)count));
  return LP_OK;
}

static reduction onnx_reduction(lp_kind kind) {
  switch (kind) {
  case LP_ONNX_ReduceMean:
    return R_MEAN;
  case LP_ONNX_ReduceMax:
    return R_MAX;
  case LP_ONNX_ReduceMin:
    return R_MIN;
  case LP_ONNX_ReduceProd:
    return R_PROD;
  case LP_ONNX_ReduceL1:
    return R_L1;
  case LP_ONNX_ReduceL2:
    return R_L2;
  case LP_ONNX_ReduceSumSquare:
    return R_SUMSQ;
  case LP_ONNX_ReduceLogSum:
    return R_LOGSUM;
  case LP_ONNX_ReduceLogSumExp:
    return R_LOGSUMEXP;
  default:
    return R_SUM;
  }
}

lp_status eval_onnx_reduce(const lp_eval *e) {
  int64_t axes[LP_MAX_RANK];
  int32_t count = 0, axis;
  bool reduced[LP_MAX_RANK] = {false};
  if (lp_eval_in(e, 1)) LP_TRY(lp_eval_i64s(e, 1, axes, LP_MAX_RANK, &count));
  if (count == 0 && lp_op_i64(e->op, "noop_with_empty_axes", 0)) {
    e->out[0] = *e->in[0];
    return LP_OK;
  }
  for (int32_t i = 0; i < e->in[0]->rank; i++)
    reduced[i] = count == 0;
  for (int32_t i = 0; i < count; i++) {
    LP_TRY(lp_eval_axis(e, axes[i], e->in[0]->rank, &axis));
    reduced[axis] = true;
  }
  return reduce(e, onnx_reduction(e->op->kind), reduced, lp_op_i64(e->op, "keepdims", 1) != 0);
}

lp_status eval_op_REDUCE(const lp_eval *e) {
  const lp_attr *axes = lp_op_attr(e->op, "axes");
  bool reduced[LP_MAX_RANK] = {false};
  for (int32_t i = 0; i < axes->count; i++) {
    int32_t axis;
    LP_TRY(lp_eval_axis(e, axes->is[i], e->in[0]->rank, &axis));
    reduced[axis] = true;
  }
  int r = 0;
  while (r < R_COUNT && !lp_streq(reductions[r], lp_op_str(e->op, "fn", "")))
    r++;
  if (r == R_COUNT) return lp_eval_fail(e, "unknown reduction '%s'", lp_op_str(e->op, "fn", ""));
  return reduce(e, (reduction)r, reduced, lp_op_bool(e->op, "keepdims", false));
}

/* ---- along an axis ---- */

/* Tells whether element b, which follows a, is the better of the two. */
static bool is_better(const lp_array *in, int64_t a, int64_t b, bool min, bool last) {
  if (lp_dtype_is_float(in->dtype)) {
    double x = lp_array_f64(in, a), y = lp_array_f64(in, b);
    return (min ? y < x : y > x) || (last && x == y);
  }
  int64_t x = lp_array_i64(in, a), y = lp_array_i64(in, b);
  bool less = in->dtype == LP_U64 ? (uint64_t)y < (uint64_t)x : y < x;
  return x == y ? last : less == min;
}

static lp_status argmax(const lp_eval *e, bool keep, bool min, bool last) {
  const lp_array *in = e->in[0];
  lp_array *out;
  int32_t axis, rank = 0;
  int64_t outer, count, inner, dim[LP_MAX_RANK];
  LP_TRY(lp_eval_axis(e, lp_op_i64(e->op, "axis", 0), in->rank, &axis));
  for (int32_t i = 0; i < in->rank; i++)
    if (i != axis || keep) dim[rank++] = i == axis ? 1 : in->dim[i];
  LP_TRY(lp_eval_out(e, 0, LP_I64, rank, dim, &out));
  lp_array_split(in, axis, &outer, &count, &inner);
  for (int64_t o = 0; o < outer * inner; o++) {
    int64_t first = o / inner * count * inner + o % inner, best = 0;
    for (int64_t i = 1; i < count; i++)
      if (is_better(in, first + best * inner, first + i * inner, min, last)) best = i;
    lp_array_set_i64(out, o, best);
  }
  return LP_OK;
}

lp_status eval_onnx_argmax(const lp_eval *e) {
  return argmax(e, lp_op_i64(e->op, "keepdims", 1) != 0, e->op->kind == LP_ONNX_ArgMin,
                lp_op_i64(e->op, "select_last_index", 0) != 0);
}

lp_status eval_op_ARGMAX(const lp_eval *e) {
  return argmax(e, lp_op_bool(e->op, "keepdims", false), lp_op_bool(e->op, "min", false),
                lp_op_bool(e->op, "last", false));
}

typedef struct {
  int64_t axis;
  bool exclusive, reverse, product;
} running;

static double run_float(double total, double x, bool product) {
  return product ? total * x : total + x;
}

static void run_along(const running *r, const lp_array *in, lp_array *out, int64_t first, int64_t count,
                      int64_t inner) {
  double total = r->product;
  int64_t whole = r->product;
  bool floats = lp_dtype_is_float(in->dtype);
  for (int64_t i = 0; i < count; i++) {
    int64_t at = first + (r->reverse ? count - 1 - i : i) * inner;
    double next = floats ? run_float(total, lp_array_f64(in, at), r->product) : 0;
    int64_t x = floats ? 0 : lp_array_i64(in, at);
    int64_t next_whole = r->product ? whole_times(whole, x) : whole_add(whole, x);
    if (floats)
      lp_array_set_f64(out, at, r->exclusive ? total : next);
    else
      lp_array_set_i64(out, at, r->exclusive ? whole : next_whole);
    total = next;
    whole = next_whole;
  }
}

static lp_status cumsum(const lp_eval *e, const running *r) {
  const lp_array *in = e->in[0];
  lp_array *out;
  int32_t axis;
  int64_t outer, count, inner;
  LP_TRY(lp_eval_axis(e, r->axis, in->rank, &axis));
  LP_TRY(lp_eval_out(e, 0, in->dtype, in->rank, in->dim, &out));
  lp_array_split(in, axis, &outer, &count, &inner);
  for (int64_t o = 0; o < outer * inner; o++)
    run_along(r, in, out, o / inner * count * inner + o % inner, count, inner);
  return LP_OK;
}

lp_status eval_onnx_cumsum(const lp_eval *e) {
  running r = {.exclusive = lp_op_i64(e->op, "exclusive", 0) != 0,
               .reverse = lp_op_i64(e->op, "reverse", 0) != 0,
               .product = e->op->kind == LP_ONNX_CumProd};
  int32_t count;
  LP_TRY(lp_eval_i64s(e, 1, &r.axis, 1, &count));
  if (count != 1) return lp_eval_fail(e, "its axis is not one number");
  return cumsum(e, &r);
}

lp_status eval_op_CUMSUM(const lp_eval *e) {
  running r = {lp_op_i64(e->op, "axis", 0), lp_op_bool(e->op, "exclusive", false), lp_op_bool(e->op, "reverse", false),
               lp_op_bool(e->op, "product", false)};
  return cumsum(e, &r);
}

lp_status eval_onnx_trilu(const lp_eval *e) {
  const lp_array *in = e->in[0], *diagonal = lp_eval_in(e, 1);
  lp_array *out;
  if (in->rank < 2) return lp_eval_fail(e, "input 0 has %d axes, at least 2 wanted", in->rank);
  if (diagonal && lp_array_numel(diagonal) != 1) return lp_eval_fail(e, "its diagonal is not one number");
  LP_TRY(lp_eval_out(e, 0, in->dtype, in->rank, in->dim, &out));
  int64_t k = diagonal ? lp_array_i64(diagonal, 0) : 0, cols = in->dim[in->rank - 1], rows = in->dim[in->rank - 2];
  bool upper = lp_op_i64(e->op, "upper", 1) != 0;
  for (int64_t i = 0; i < lp_array_numel(in); i++) {
    int64_t row = i / cols % rows, col = i % cols;
    bool kept = upper ? (double)col >= (double)row + (double)k : (double)col <= (double)row + (double)k;
    if (kept) lp_array_copy(out, i, in, i);
  }
  return LP_OK;
}
