/* Scattered updates in the reference interpreter. */
#include "ir/eval/eval.h"

#include <math.h>

typedef enum { S_NONE, S_ADD, S_MUL, S_MIN, S_MAX, S_COUNT } reduction;

static lp_status read_reduction(const lp_eval *e, reduction *out) {
  static const char *const names[S_COUNT] = {"none", "add", "mul", "min", "max"};
  const char *name = lp_op_str(e->op, "reduction", "none");
  int i = 0;
  while (i < S_COUNT && !lp_streq(names[i], name))
    i++;
  if (i == S_COUNT) return lp_eval_fail(e, "unknown reduction '%s'", name);
  *out = (reduction)i;
  return LP_OK;
}

/* Integers wrap; joined bools are true or false. */
static int64_t joined_i64(lp_dtype dtype, int64_t old, int64_t update, reduction r) {
  bool less = dtype == LP_U64 ? (uint64_t)update < (uint64_t)old : update < old;
  uint64_t sum = (uint64_t)old + (uint64_t)update, product = (uint64_t)old * (uint64_t)update;
  if (r == S_MIN || r == S_MAX) return less == (r == S_MIN) ? update : old;
  uint64_t joined = r == S_ADD ? sum : product;
  return dtype == LP_BOOL ? joined != 0 : (int64_t)joined;
}

static void scatter_element(lp_array *out, int64_t to, const lp_array *updates, int64_t from, reduction r) {
  if (r == S_NONE) {
    lp_array_copy(out, to, updates, from);
    return;
  }
  if (!lp_dtype_is_float(out->dtype)) {
    lp_array_set_i64(out, to, joined_i64(out->dtype, lp_array_i64(out, to), lp_array_i64(updates, from), r));
    return;
  }
  double old = lp_array_f64(out, to), update = lp_array_f64(updates, from);
  double least = update < old ? update : old, most = update > old ? update : old;
  double result = r == S_ADD ? old + update : r == S_MUL ? old * update : r == S_MIN ? least : most;
  lp_array_set_f64(out, to, isnan(update) ? update : result);
}

static lp_status scatter_out(const lp_eval *e, lp_array **out) {
  const lp_array *data = e->in[0];
  LP_TRY(lp_eval_out(e, 0, data->dtype, data->rank, data->dim, out));
  memcpy((*out)->data, data->data, lp_array_bytes(data));
  return LP_OK;
}

/* The last axis of the index gives the start of a run of elements. */
static lp_status scatter_nd(const lp_eval *e) {
  const lp_array *data = e->in[0], *index = e->in[1], *updates = e->in[2];
  int64_t depth = index->rank > 0 ? index->dim[index->rank - 1] : 0, run = 1, at;
  lp_array *out;
  reduction r;
  LP_TRY(read_reduction(e, &r));
  if (depth < 1 || depth > data->rank) return lp_eval_fail(e, "%" PRId64 " indices into %d axes", depth, data->rank);
  for (int32_t i = (int32_t)depth; i < data->rank; i++)
    run *= data->dim[i];
  int64_t count = lp_array_numel(index) / depth;
  if (lp_array_numel(updates) != count * run) return lp_eval_fail(e, "its updates do not fit its indices");
  LP_TRY(scatter_out(e, &out));
  for (int64_t k = 0; k < count; k++) {
    int64_t to = 0;
    for (int32_t i = 0; i < (int32_t)depth; i++) {
      LP_TRY(lp_eval_index(e, index, k * depth + i, data->dim[i], &at));
      to = to * data->dim[i] + at;
    }
    for (int64_t i = 0; i < run; i++)
      scatter_element(out, to * run + i, updates, k * run + i, r);
  }
  return LP_OK;
}

static lp_status scatter_elements(const lp_eval *e) {
  const lp_array *data = e->in[0], *index = e->in[1], *updates = e->in[2];
  lp_array *out;
  reduction r;
  int32_t axis;
  LP_TRY(read_reduction(e, &r));
  LP_TRY(lp_eval_axis(e, lp_op_i64(e->op, "axis", 0), data->rank, &axis));
  if (index->rank != data->rank || updates->rank != data->rank) return lp_eval_fail(e, "its operands differ in axes");
  for (int32_t i = 0; i < data->rank; i++)
    if (index->dim[i] != updates->dim[i] || (i != axis && index->dim[i] > data->dim[i]))
      return lp_eval_fail(e, "its updates do not fit its indices");
  LP_TRY(scatter_out(e, &out));
  for (int64_t k = 0; k < lp_array_numel(index); k++) {
    int64_t to = 0, stride = 1, at = k, where;
    LP_TRY(lp_eval_index(e, index, k, data->dim[axis], &where));
    for (int32_t i = data->rank - 1; i >= 0; i--) {
      to += (i == axis ? where : at % index->dim[i]) * stride;
      stride *= data->dim[i];
      at /= index->dim[i];
    }
    scatter_element(out, to, updates, k, r);
  }
  return LP_OK;
}

static lp_status scatter(const lp_eval *e, bool nd) {
  return nd ? scatter_nd(e) : scatter_elements(e);
}

lp_status eval_onnx_scatter(const lp_eval *e) {
  return scatter(e, e->op->kind == LP_ONNX_ScatterND);
}

lp_status eval_op_SCATTER_ELEMENTS(const lp_eval *e) {
  return scatter(e, false);
}

lp_status eval_op_SCATTER_ND(const lp_eval *e) {
  return scatter(e, true);
}
