/* Attention, rotary positions and caches in ONNX. Attention is written as products and a softmax, because the opsets
 * that are written here have no operator for it. */

#include "backend/onnx/constants.h"
#include "base/map.h"
#include "base/poly.h"

#include <math.h>

static const int64_t swap_heads[] = {0, 2, 1, 3};

static bool heads_first(const lp_op *op) {
  return !lp_streq(lp_op_str(op, "layout", "bhsd"), "bshd");
}

/* [b][kv][t][d] repeated to [b][heads][t][d]. */
static onnx_name repeat_heads(onnx_graph *g, onnx_name x, int64_t heads, int64_t kv_heads, int64_t width) {
  if (heads == kv_heads) return x;
  const int64_t axis = 2, repeats[] = {1, 1, heads / kv_heads, 1, 1}, shape[] = {0, heads, -1, width};
  onnx_name one = ONNX_NODE(g, "Unsqueeze", x, onnx_i64s(g, &axis, 1));
  return ONNX_NODE(g, "Reshape", ONNX_NODE(g, "Expand", one, onnx_i64s(g, repeats, 5)), onnx_i64s(g, shape, 4));
}

static onnx_name scalar_size(onnx_graph *g, const lp_poly *poly) {
  return ONNX_NODE(g, "Squeeze", onnx_size(g, poly));
}

/* [s][t], true where query row i, at position t - s + i, sees key j. */
static onnx_name seen_keys(onnx_graph *g, const lp_poly *rows, const lp_poly *total, bool causal, int64_t window) {
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  lp_buf_printf(&key, "seen %d %" PRId64 " ", causal, window);
  lp_poly_print(rows, &g->module->symbols, &key);
  lp_buf_puts(&key, " of ");
  lp_poly_print(total, &g->module->symbols, &key);
  onnx_name seen = lp_map_get(g->made, lp_buf_text(&key));
  if (!seen) {
    const int64_t axis = 1;
    onnx_name zero = onnx_scalar(g, LP_I64, 0), one = onnx_scalar(g, LP_I64, 1), end = scalar_size(g, total);
    onnx_name first = scalar_size(g, lp_poly_sub(g->module->arena, total, rows));
    onnx_name positions = ONNX_NODE(g, "Unsqueeze", ONNX_NODE(g, "Range", first, end, one), onnx_i64s(g, &axis, 1));
    onnx_name keys = ONNX_NODE(g, "Range", zero, end, one);
    if (causal) seen = ONNX_NODE(g, "LessOrEqual", keys, positions);
    if (window > 0) {
      onnx_name oldest = ONNX_NODE(g, "Sub", positions, onnx_scalar(g, LP_I64, (double)window));
      onnx_name near = ONNX_NODE(g, "Greater", keys, oldest);
      seen = seen ? ONNX_NODE(g, "And", seen, near) : near;
    }
    lp_map_put(g->made, lp_buf_text(&key), (void *)(uintptr_t)seen);
  }
  return seen;
}

static lp_status add_mask(onnx_graph *g, const lp_op *op, const lp_poly *total, onnx_name *scores) {
  const lp_value *mask = lp_op_in(op, 3);
  int64_t width;
  onnx_name name;
  if (!mask) return LP_OK;
  const lp_poly *last = mask->type.rank > 0 ? mask->type.dim[mask->type.rank - 1] : NULL;
  if (last && !lp_poly_equal(last, total) && !(lp_poly_is_const(last, &width) && width == 1))
    return onnx_refuse(g, "its mask is narrower than the keys");
  LP_TRY(onnx_operand(g, 3, &name));
  if (mask->type.dtype == LP_BOOL)
    *scores = ONNX_NODE(g, "Where", name, *scores, onnx_scalar(g, LP_F32, -INFINITY));
  else
    *scores = ONNX_NODE(g, "Add", *scores, mask->type.dtype == LP_F32 ? name : onnx_cast(g, name, LP_F32));
  return LP_OK;
}

/* Appends a score per head to those of the softmax, and removes it afterwards. */
static lp_status softmax_with_sinks(onnx_graph *g, const lp_op *op, const lp_poly *const *scores_dim, onnx_name scores,
                                    onnx_name *out) {
  const int64_t per_head[] = {1, lp_op_i64(op, "heads", 1), 1, 1}, axis = 3, zero = 0, end = -1;
  const lp_poly *dims[] = {scores_dim[0], scores_dim[1], scores_dim[2], lp_dim_const(g->module, 1)};
  onnx_name sinks;
  LP_TRY(onnx_operand_as(g, 4, LP_F32, &sinks));
  sinks = ONNX_NODE(g, "Expand", ONNX_NODE(g, "Reshape", sinks, onnx_i64s(g, per_head, 4)), onnx_sizes(g, dims, 4));
  scores = ONNX_NODE(g, "Concat", scores, sinks);
  onnx_attr_i(g, "axis", axis);
  onnx_name weights = ONNX_NODE(g, "Softmax", scores);
  onnx_attr_i(g, "axis", -1);
  *out = ONNX_NODE(g, "Slice", weights, onnx_i64s(g, &zero, 1), onnx_i64s(g, &end, 1), onnx_i64s(g, &axis, 1));
  return LP_OK;
}

static lp_status softmax_of(onnx_graph *g, const lp_op *op, const lp_poly *const *dim, onnx_name scores,
                            onnx_name *out) {
  if (lp_op_in(op, 4)) return softmax_with_sinks(g, op, dim, scores, out);
  *out = ONNX_NODE(g, "Softmax", scores);
  onnx_attr_i(g, "axis", -1);
  if (lp_op_in(op, 3)) /* a row that sees no key gives zeros */
    *out = ONNX_NODE(g, "Where", ONNX_NODE(g, "IsNaN", *out), onnx_scalar(g, LP_F32, 0), *out);
  return LP_OK;
}

static onnx_name scores_of(onnx_graph *g, const lp_op *op, onnx_name q, onnx_name k) {
  static const int64_t last_two[] = {0, 1, 3, 2};
  double cap = lp_op_f64(op, "softcap", 0);
  q = ONNX_NODE(g, "Mul", q, onnx_scalar(g, LP_F32, lp_op_f64(op, "scale", 1)));
  onnx_name scores = ONNX_NODE(g, "MatMul", q, onnx_transpose(g, k, last_two, 4));
  if (cap <= 0) return scores;
  onnx_name limit = onnx_scalar(g, LP_F32, cap);
  return ONNX_NODE(g, "Mul", ONNX_NODE(g, "Tanh", ONNX_NODE(g, "Div", scores, limit)), limit);
}

lp_status onnx_lower_attention(onnx_graph *g, const lp_op *op, onnx_name *out) {
  const lp_type query = lp_op_in(op, 0)->type, keys = lp_op_in(op, 1)->type, values = lp_op_in(op, 2)->type;
  int64_t heads = lp_op_i64(op, "heads", 1), kv_heads = lp_op_i64(op, "kv_heads", 1),
          window = lp_op_i64(op, "window", 0);
  int64_t width = 0, value_width = 0;
  bool causal = lp_op_bool(op, "causal", false), first = heads_first(op);
  const lp_poly *rows = query.dim[first ? 2 : 1], *total = keys.dim[2];
  const lp_poly *dim[] = {query.dim[0], query.dim[first ? 1 : 2], rows, total};
  onnx_name q, k, v, weights;
  LP_TRY(onnx_operand_as(g, 0, LP_F32, &q));
  LP_TRY(onnx_operand_as(g, 1, LP_F32, &k));
  LP_TRY(onnx_operand_as(g, 2, LP_F32, &v));
  if (!lp_type_static_dim(keys, 3, &width) || !lp_type_static_dim(values, 3, &value_width))
    return onnx_refuse(g, "the size of its heads is not known");
  if (!first) q = onnx_transpose(g, q, swap_heads, 4);
  k = repeat_heads(g, k, heads, kv_heads, width);
  v = repeat_heads(g, v, heads, kv_heads, value_width);
  onnx_name scores = scores_of(g, op, q, k);
  LP_TRY(add_mask(g, op, total, &scores));
  if (causal || window > 0)
    scores =
        ONNX_NODE(g, "Where", seen_keys(g, rows, total, causal, window), scores, onnx_scalar(g, LP_F32, -INFINITY));
  LP_TRY(softmax_of(g, op, dim, scores, &weights));
  out[0] = ONNX_NODE(g, "MatMul", weights, v);
  if (!first) out[0] = onnx_transpose(g, out[0], swap_heads, 4);
  return LP_OK;
}

/* present = past followed by the new rows */
lp_status onnx_lower_kv_append(onnx_graph *g, const lp_op *op, onnx_name *out) {
  int64_t state = lp_op_i64(op, "state", 0);
  onnx_name past = NULL, x;
  if (lp_op_bool(op, "once", false)) return onnx_refuse(g, "a cache that holds the keys of an encoder's states");
  if (lp_cache_is_coded(op->out[0]->type.dtype)) return onnx_refuse(g, "a cache in codes");
  for (size_t i = 0; i < g->part->in.count; i++)
    if (g->part->in.data[i].role == ONNX_PORT_PAST && g->part->in.data[i].state == state)
      past = g->part->in.data[i].name;
  LP_TRY(onnx_operand_as(g, 0, op->out[0]->type.dtype, &x));
  if (!heads_first(op)) x = onnx_transpose(g, x, swap_heads, 4);
  out[0] = ONNX_NODE(g, "Concat", past, x);
  onnx_attr_i(g, "axis", 2);
  return LP_OK;
}

/* ---- rotary positions -------------------------------------------------------------------------------------------- */

static onnx_name slice_last(onnx_graph *g, onnx_name x, int64_t from, int64_t to, int64_t step) {
  const int64_t axis = 3;
  return ONNX_NODE(g, "Slice", x, onnx_i64s(g, &from, 1), onnx_i64s(g, &to, 1), onnx_i64s(g, &axis, 1),
                   onnx_i64s(g, &step, 1));
}

static onnx_name join_last(onnx_graph *g, onnx_name a, onnx_name b) {
  onnx_name y = ONNX_NODE(g, "Concat", a, b);
  onnx_attr_i(g, "axis", -1);
  return y;
}

/* (2 i, 2 i + 1) side by side again: [..][half] twice -> [..][half][2] -> [..][rotary]. */
static onnx_name interleave(onnx_graph *g, onnx_name a, onnx_name b, int64_t rotary) {
  const int64_t axis = 4, shape[] = {0, 0, 0, rotary};
  onnx_name both = join_last(g, ONNX_NODE(g, "Unsqueeze", a, onnx_i64s(g, &axis, 1)),
                             ONNX_NODE(g, "Unsqueeze", b, onnx_i64s(g, &axis, 1)));
  return ONNX_NODE(g, "Reshape", both, onnx_i64s(g, shape, 4));
}

lp_status onnx_lower_rotary(onnx_graph *g, const lp_op *op, onnx_name *out) {
  int64_t rotary = lp_op_i64(op, "rotary_dim", 0), half = rotary / 2, dim = 0, axis = heads_first(op) ? 1 : 2;
  bool interleaved = lp_op_bool(op, "interleaved", false);
  onnx_name x, cosine, sine;
  LP_TRY(onnx_operand_as(g, 0, LP_F32, &x));
  LP_TRY(onnx_operand_as(g, 1, LP_F32, &cosine));
  LP_TRY(onnx_operand_as(g, 2, LP_F32, &sine));
  if (!lp_type_static_dim(lp_op_in(op, 0)->type, -1, &dim)) return onnx_refuse(g, "the size of its heads is not known");
  cosine = ONNX_NODE(g, "Unsqueeze", cosine, onnx_i64s(g, &axis, 1));
  sine = ONNX_NODE(g, "Unsqueeze", sine, onnx_i64s(g, &axis, 1));
  onnx_name a = interleaved ? slice_last(g, x, 0, rotary, 2) : slice_last(g, x, 0, half, 1);
  onnx_name b = interleaved ? slice_last(g, x, 1, rotary, 2) : slice_last(g, x, half, rotary, 1);
  onnx_name first = ONNX_NODE(g, "Sub", ONNX_NODE(g, "Mul", a, cosine), ONNX_NODE(g, "Mul", b, sine));
  onnx_name second = ONNX_NODE(g, "Add", ONNX_NODE(g, "Mul", a, sine), ONNX_NODE(g, "Mul", b, cosine));
  out[0] = interleaved ? interleave(g, first, second, rotary) : join_last(g, first, second);
  if (rotary < dim) out[0] = join_last(g, out[0], slice_last(g, x, rotary, dim, 1));
  return LP_OK;
}
