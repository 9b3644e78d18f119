/* Products, softmax and norms of the reference interpreter. */
#include "ir/eval/eval.h"

#include <math.h>

/* ---- products ---- */

/* y[m][n] += a[m][k] b[k][n], each with its own strides. */
typedef struct {
  const double *data;
  int64_t row, col;
} view;

static void multiply(view a, view b, int64_t m, int64_t k, int64_t n, double *y) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t p = 0; p < k; p++) {
      double x = a.data[i * a.row + p * a.col];
      const double *from = b.data + p * b.row;
      for (int64_t j = 0; j < n; j++)
        y[i * n + j] += x * from[j * b.col];
    }
}

typedef struct {
  int64_t m, k, n;
  int32_t rank; /* of the leading axes */
  int64_t dim[LP_MAX_RANK];
  lp_array a, b; /* only leading axes, for broadcasting */
} product;

static lp_status plan_product(const lp_eval *e, const lp_array *a, const lp_array *b, bool ta, bool tb, product *p) {
  *p = (product){0};
  int64_t a_rows = a->dim[a->rank - 2], a_cols = a->dim[a->rank - 1], b_rows = b->dim[b->rank - 2],
          b_cols = b->dim[b->rank - 1];
  p->m = ta ? a_cols : a_rows;
  p->k = ta ? a_rows : a_cols;
  p->n = tb ? b_rows : b_cols;
  if (p->k != (tb ? b_cols : b_rows))
    return lp_eval_fail(e, "inner sizes %" PRId64 " and %" PRId64 " differ", p->k, tb ? b_cols : b_rows);
  p->a = *a;
  p->b = *b;
  p->a.rank -= 2;
  p->b.rank -= 2;
  LP_TRY(lp_eval_broadcast(e, &p->rank, p->dim, p->a.rank, p->a.dim));
  return lp_eval_broadcast(e, &p->rank, p->dim, p->b.rank, p->b.dim);
}

/* The product in doubles, [leading axes][m][n]. */
static lp_status run_product(const lp_eval *e, const lp_array *a, const lp_array *b, bool ta, bool tb, product *p,
                             double **out) {
  LP_TRY(plan_product(e, a, b, ta, tb, p));
  int64_t batch = 1;
  for (int32_t i = 0; i < p->rank; i++)
    batch *= p->dim[i];
  int64_t dim[3] = {batch, p->m, p->n};
  lp_eval shape_only = *e;
  lp_array *checked;
  lp_op no_results = {.loc = e->op->loc};
  shape_only.op = &no_results;
  LP_TRY(lp_eval_out(&shape_only, 0, LP_F64, 3, dim, &checked));
  const double *x = lp_eval_doubles(e, a), *y = lp_eval_doubles(e, b);
  view left = {.row = ta ? 1 : p->k, .col = ta ? p->m : 1}, right = {.row = tb ? 1 : p->n, .col = tb ? p->k : 1};
  *out = checked->data;
  for (int64_t i = 0; i < batch; i++) {
    left.data = x + lp_broadcast_index(&p->a, i, p->rank, p->dim) * p->m * p->k;
    right.data = y + lp_broadcast_index(&p->b, i, p->rank, p->dim) * p->k * p->n;
    multiply(left, right, p->m, p->k, p->n, *out + i * p->m * p->n);
  }
  return LP_OK;
}

static void store(lp_array *out, const double *values) {
  int64_t count = lp_array_numel(out);
  bool floats = lp_dtype_is_float(out->dtype);
  for (int64_t i = 0; i < count; i++)
    if (floats)
      lp_array_set_f64(out, i, values[i]);
    else
      lp_array_set_i64(out, i, (int64_t)values[i]);
}

/* A vector is treated as a matrix of one row or column, which the result then lacks. */
static lp_status product_of(const lp_eval *e, bool ta, bool tb) {
  lp_array a = *e->in[0], b = *e->in[1], *out;
  if (a.rank < 1 || b.rank < 1) return lp_eval_fail(e, "its operands are scalars");
  bool row = a.rank == 1, column = b.rank == 1;
  if (row) a.dim[1] = a.dim[0], a.dim[0] = 1, a.rank = 2;
  if (column) b.dim[1] = 1, b.rank = 2;
  product p;
  double *values;
  LP_TRY(run_product(e, &a, &b, ta, tb, &p, &values));
  if (!row) p.dim[p.rank++] = p.m;
  if (!column) p.dim[p.rank++] = p.n;
  LP_TRY(lp_eval_out(e, 0, a.dtype, p.rank, p.dim, &out));
  store(out, values);
  return LP_OK;
}

lp_status eval_onnx_matmul(const lp_eval *e) {
  return product_of(e, false, false);
}

lp_status eval_op_MATMUL(const lp_eval *e) {
  return product_of(e, lp_op_bool(e->op, "transpose_a", false), lp_op_bool(e->op, "transpose_b", false));
}

lp_status eval_onnx_gemm(const lp_eval *e) {
  if (e->in[0]->rank != 2 || e->in[1]->rank != 2) return lp_eval_fail(e, "operands need two axes");
  product p;
  double *values;
  lp_array *out;
  LP_TRY(run_product(e, e->in[0], e->in[1], lp_op_i64(e->op, "transA", 0) != 0, lp_op_i64(e->op, "transB", 0) != 0, &p,
                     &values));
  int64_t dim[2] = {p.m, p.n}, result[LP_MAX_RANK] = {p.m, p.n};
  int32_t rank = 2;
  LP_TRY(lp_eval_out(e, 0, e->in[0]->dtype, 2, dim, &out));
  const lp_array *bias = lp_eval_in(e, 2);
  if (bias) LP_TRY(lp_eval_broadcast(e, &rank, result, bias->rank, bias->dim));
  if (rank != 2 || result[0] != dim[0] || result[1] != dim[1]) return lp_eval_fail(e, "its bias does not broadcast");
  double alpha = lp_op_f64(e->op, "alpha", 1), beta = lp_op_f64(e->op, "beta", 1);
  for (int64_t i = 0; i < p.m * p.n; i++)
    values[i] = alpha * values[i] + (bias ? beta * lp_array_f64(bias, lp_broadcast_index(bias, i, 2, dim)) : 0);
  store(out, values);
  return LP_OK;
}

/* y = epilogue(x w + bias) + residual; with a gate epilogue(x w_gate) * (x w + bias) + residual. */
lp_status eval_op_LINEAR(const lp_eval *e) {
  lp_array x = *e->in[0], *out;
  if (x.rank < 1) return lp_eval_fail(e, "operands need an axis");
  int64_t rows = 1, dim[LP_MAX_RANK];
  for (int32_t i = 0; i + 1 < x.rank; i++)
    rows *= x.dim[i];
  memcpy(dim, x.dim, sizeof dim);
  x = (lp_array){.dtype = x.dtype, .rank = 2, .dim = {rows, x.dim[x.rank - 1]}, .data = x.data};
  const lp_array *bias = lp_eval_in(e, 2), *residual = lp_eval_in(e, 3), *gate = lp_eval_in(e, 4);
  bool transpose = lp_op_bool(e->op, "transpose_b", false);
  const char *epilogue = lp_op_str(e->op, "epilogue", "none");
  product p;
  double *values, *gates = NULL;
  lp_array w, wg;
  LP_TRY(lp_eval_weight(e, 1, 5, x.dim[1], &w));
  LP_TRY(run_product(e, &x, &w, false, transpose, &p, &values));
  if (gate) LP_TRY(lp_eval_weight(e, 4, 7, x.dim[1], &wg));
  if (gate) LP_TRY(run_product(e, &x, &wg, false, transpose, &p, &gates));
  dim[e->in[0]->rank - 1] = p.n;
  LP_TRY(lp_eval_out(e, 0, e->op->out[0]->type.dtype, e->in[0]->rank, dim, &out));
  for (int64_t i = 0; i < rows * p.n; i++) {
    double y = values[i] + (bias ? lp_array_f64(bias, i % p.n) : 0);
    y = gate ? lp_eval_epilogue(epilogue, gates[i]) * y : lp_eval_epilogue(epilogue, y);
    lp_array_set_f64(out, i, y + (residual ? lp_array_f64(residual, i) : 0));
  }
  return LP_OK;
}

/* ---- softmax ---- */

static void softmax_run(const lp_array *in, lp_array *out, int64_t first, int64_t count, int64_t stride,
                        bool logarithm) {
  double max = -INFINITY, sum = 0;
  for (int64_t i = 0; i < count; i++)
    max = fmax(max, lp_array_f64(in, first + i * stride));
  for (int64_t i = 0; i < count; i++)
    sum += exp(lp_array_f64(in, first + i * stride) - max);
  for (int64_t i = 0; i < count; i++) {
    double x = lp_array_f64(in, first + i * stride) - max;
    lp_array_set_f64(out, first + i * stride, logarithm ? x - log(sum) : exp(x) / sum);
  }
}

/* The operand as [outer][count][inner], `count` along the axis; with `flatten` over everything from it on. */
typedef struct {
  int64_t outer, count, inner;
} rows;

static lp_status split_rows(const lp_eval *e, int64_t axis_attr, bool flatten, rows *r, lp_array **out) {
  const lp_array *in = e->in[0];
  int32_t axis = 0;
  if (in->rank > 0 && !(flatten && axis_attr == in->rank)) LP_TRY(lp_eval_axis(e, axis_attr, in->rank, &axis));
  LP_TRY(lp_eval_out(e, 0, in->dtype, in->rank, in->dim, out));
  if (flatten && axis_attr == in->rank) axis = in->rank;
  lp_array_split(in, axis, &r->outer, &r->count, &r->inner);
  if (flatten) r->count *= r->inner, r->inner = 1;
  return LP_OK;
}

/* The axis of a softmax, or the first of those that a flattened one runs over. */
static int64_t softmax_axis(const lp_eval *e) {
  return lp_op_i64(e->op, "axis", lp_op_bool(e->op, "flatten", false) ? 1 : -1);
}

static lp_status softmax(const lp_eval *e, int64_t axis, bool flatten, bool logarithm) {
  lp_array *out;
  rows r;
  LP_TRY(split_rows(e, axis, flatten, &r, &out));
  for (int64_t o = 0; o < r.outer; o++)
    for (int64_t i = 0; i < r.inner; i++)
      softmax_run(e->in[0], out, o * r.count * r.inner + i, r.count, r.inner, logarithm);
  return LP_OK;
}

lp_status eval_onnx_softmax(const lp_eval *e) {
  return softmax(e, softmax_axis(e), lp_op_bool(e->op, "flatten", false), e->op->kind == LP_ONNX_LogSoftmax);
}

lp_status eval_onnx_hardmax(const lp_eval *e) {
  rows r;
  lp_array *out;
  LP_TRY(split_rows(e, softmax_axis(e), lp_op_bool(e->op, "flatten", false), &r, &out));
  for (int64_t row = 0; row < r.outer * r.inner && r.count > 0; row++) {
    int64_t first = row / r.inner * r.count * r.inner + row % r.inner, best = 0;
    for (int64_t i = 1; i < r.count; i++)
      if (lp_array_f64(e->in[0], first + i * r.inner) > lp_array_f64(e->in[0], first + best * r.inner)) best = i;
    for (int64_t i = 0; i < r.count; i++)
      lp_array_set_f64(out, first + i * r.inner, i == best);
  }
  return LP_OK;
}

lp_status eval_op_SOFTMAX(const lp_eval *e) {
  return softmax(e, -1, false, lp_op_bool(e->op, "log", false));
}

/* ---- norms ---- */

typedef struct {
  bool rms;
  double epsilon;
  const lp_array *weight, *bias;
  int64_t count; /* elements of one group */
} norm;

static void norm_run(const norm *n, const double *x, int64_t first, lp_array *out, double *mean, double *inverse) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n->count; i++)
    sum += x[first + i];
  *mean = n->rms ? 0 : sum / (double)n->count;
  for (int64_t i = 0; i < n->count; i++)
    squares += (x[first + i] - *mean) * (x[first + i] - *mean);
  *inverse = 1 / sqrt(squares / (double)n->count + n->epsilon);
  for (int64_t i = 0; i < n->count; i++) {
    double y = (x[first + i] - *mean) * *inverse;
    if (n->weight) y *= lp_array_f64(n->weight, lp_broadcast_index(n->weight, first + i, out->rank, out->dim));
    if (n->bias) y += lp_array_f64(n->bias, lp_broadcast_index(n->bias, first + i, out->rank, out->dim));
    lp_array_set_f64(out, first + i, y);
  }
}

lp_status eval_onnx_norm(const lp_eval *e) {
  const lp_array *in = e->in[0];
  lp_array *out, *means, *inverses;
  int32_t axis, rank = in->rank;
  int64_t outer, count, inner, dim[LP_MAX_RANK];
  memcpy(dim, in->dim, sizeof dim);
  LP_TRY(lp_eval_axis(e, lp_op_i64(e->op, "axis", -1), in->rank, &axis));
  norm n = {.rms = e->op->kind != LP_ONNX_LayerNormalization, .epsilon = lp_op_f64(e->op, "epsilon", 1e-5)};
  n.weight = lp_eval_in(e, 1);
  n.bias = n.rms ? NULL : lp_eval_in(e, 2);
  LP_TRY(lp_eval_broadcast(e, &rank, dim, n.weight->rank, n.weight->dim));
  if (n.bias) LP_TRY(lp_eval_broadcast(e, &rank, dim, n.bias->rank, n.bias->dim));
  if (rank != in->rank || memcmp(dim, in->dim, (size_t)rank * sizeof *dim) != 0)
    return lp_eval_fail(e, "its scale or bias does not broadcast to its input");
  LP_TRY(lp_eval_out(e, 0, in->dtype, in->rank, in->dim, &out));
  lp_array_split(in, axis, &outer, &count, &inner);
  n.count = count * inner;
  for (int32_t i = axis; i < rank; i++)
    dim[i] = 1;
  /* RMS norms have one statistic, the inverse deviation */
  LP_TRY(lp_eval_out(e, n.rms ? INT16_MAX : 1, LP_F32, rank, dim, &means));
  LP_TRY(lp_eval_out(e, n.rms ? 1 : 2, LP_F32, rank, dim, &inverses));
  const double *x = lp_eval_doubles(e, in);
  for (int64_t o = 0; o < outer; o++) {
    double mean, inverse;
    norm_run(&n, x, o * n.count, out, &mean, &inverse);
    lp_array_set_f64(means, o, mean);
    lp_array_set_f64(inverses, o, inverse);
  }
  return LP_OK;
}

static lp_status norm_rows(const lp_eval *e, const lp_array *in, int32_t first_parameter, int32_t result) {
  lp_array *out;
  if (in->rank < 1) return lp_eval_fail(e, "operands need an axis");
  norm n = {.rms = lp_streq(lp_op_str(e->op, "type", ""), "rms"), .epsilon = lp_op_f64(e->op, "epsilon", 1e-5)};
  n.weight = lp_eval_in(e, first_parameter);
  n.bias = lp_eval_in(e, first_parameter + 1);
  n.count = in->dim[in->rank - 1];
  LP_TRY(lp_eval_out(e, result, e->op->out[result]->type.dtype, in->rank, in->dim, &out));
  const double *x = lp_eval_doubles(e, in);
  for (int64_t at = 0; n.count > 0 && at < lp_array_numel(in); at += n.count) {
    double mean, inverse;
    norm_run(&n, x, at, out, &mean, &inverse);
  }
  return LP_OK;
}

lp_status eval_op_NORM(const lp_eval *e) {
  return norm_rows(e, e->in[0], 1, 0);
}

lp_status eval_op_ADD_NORM(const lp_eval *e) {
  lp_array *sum;
  LP_TRY(lp_eval_out(e, 0, e->op->out[0]->type.dtype, e->in[0]->rank, e->in[0]->dim, &sum));
  if (lp_array_numel(e->in[1]) != lp_array_numel(sum)) return lp_eval_fail(e, "its operands differ in shape");
  for (int64_t i = 0; i < lp_array_numel(sum); i++)
    lp_array_set_f64(sum, i, lp_array_f64(e->in[0], i) + lp_array_f64(e->in[1], i));
  return norm_rows(e, sum, 2, 1);
}
