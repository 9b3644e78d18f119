/* Type rules of op.* operators, one function per rule column of ops.def. Each checks the types that its operator's
 * sentence in ops.def promises, and reports what it found and what it wanted. */
#include "base/poly.h"
#include "ir/ir.h"
#include "ir/ir_internal.h"

typedef struct {
  lp_module *m;
  const lp_op *op;
  lp_diag *diag;
} rule_context;

static lp_type in_type(const rule_context *c, int32_t index) {
  return lp_op_in(c->op, index)->type;
}
static lp_type out_type(const rule_context *c, int32_t index) {
  return c->op->out[index]->type;
}

static lp_status fail(const rule_context *c, const char *what) {
  return lp_error(c->diag, c->op->loc, "'%s': %s", lp_op_info_get(c->op->kind)->name, what);
}

static void print_size(const rule_context *c, const lp_poly *size /* NULL: it overflows */, lp_buf *out) {
  if (size)
    lp_poly_print(size, &c->m->symbols, out);
  else
    lp_buf_puts(out, "too large");
}

static lp_status fail_dims(const rule_context *c, const char *what, const lp_poly *found, const lp_poly *wanted) {
  LP_OWNED(lp_buf_free) lp_buf a = {0}, b = {0};
  print_size(c, found, &a);
  print_size(c, wanted, &b);
  return lp_error(c->diag, c->op->loc, "'%s': %s is %s, should be %s", lp_op_info_get(c->op->kind)->name, what,
                  lp_buf_text(&a), lp_buf_text(&b));
}

static const lp_poly *dim_of(lp_type type, int32_t axis) {
  return type.dim[axis < 0 ? axis + type.rank : axis];
}

static lp_status same_dim(const rule_context *c, const char *what, const lp_poly *found, const lp_poly *wanted) {
  return lp_poly_equal(found, wanted) ? LP_OK : fail_dims(c, what, found, wanted);
}

static lp_status same_shape(const rule_context *c, const char *what, lp_type found, lp_type wanted) {
  if (found.rank != wanted.rank) return fail(c, what);
  for (int32_t i = 0; i < found.rank; i++)
    LP_TRY(same_dim(c, what, found.dim[i], wanted.dim[i]));
  return LP_OK;
}

/* Numpy broadcasting of `from` to `to`. */
static lp_status broadcasts(const rule_context *c, lp_type from, lp_type to) {
  int64_t one;
  if (from.rank > to.rank) return fail(c, "operand has more axes than the result");
  for (int32_t i = 1; i <= from.rank; i++) {
    const lp_poly *dim = dim_of(from, -i);
    if (lp_poly_is_const(dim, &one) && one == 1) continue;
    LP_TRY(same_dim(c, "operand axis", dim, dim_of(to, -i)));
  }
  return LP_OK;
}

/* Compares the last axes. `wanted` has one. */
static lp_status check_last(const rule_context *c, const char *what, lp_type found, lp_type wanted) {
  if (found.rank < 1) return fail(c, "a parameter has no axis");
  return same_dim(c, what, dim_of(found, -1), dim_of(wanted, -1));
}

/* A scale or zero point of a weight [k][n] or [n][k]. */
static lp_status check_scale(const rule_context *c, const lp_value *scale, int64_t k, const lp_poly *n) {
  int64_t group = lp_op_i64(c->op, "group", 0), one;
  bool transposed = lp_op_bool(c->op, "transpose_b", false);
  if (!lp_value_is_constant(scale)) return fail(c, "scale or zero point is not a constant");
  if (lp_type_static_numel(scale->type, &one) && one == 1) return LP_OK;
  if (group == 0) return same_dim(c, "number of scales", lp_type_numel(c->m, scale->type), n);
  if (group < 0 || scale->type.rank != 2) return fail(c, "scales are not a matrix of groups");
  LP_TRY(
      same_dim(c, "groups", dim_of(scale->type, transposed ? 1 : 0), lp_dim_const(c->m, k / group + (k % group != 0))));
  return same_dim(c, "scale's outer size", dim_of(scale->type, transposed ? 0 : 1), n);
}

static lp_status check_weight(const rule_context *c, int32_t operand, int32_t scales) {
  const lp_value *w = lp_op_in(c->op, operand), *scale = lp_op_in(c->op, scales), *zero = lp_op_in(c->op, scales + 1);
  if (!lp_value_is_constant(w)) return fail(c, "weight is not a constant");
  if (w->type.rank != 2) return fail(c, "weight is not a matrix");
  bool transposed = lp_op_bool(c->op, "transpose_b", false);
  const lp_poly *k = dim_of(in_type(c, 0), -1), *own = dim_of(w->type, transposed ? 1 : 0);
  const lp_poly *n = lp_poly_scale(c->m->arena, dim_of(out_type(c, 0), -1), lp_op_i64(c->op, "experts", 1));
  LP_TRY(same_dim(c, "weight's outer size", dim_of(w->type, transposed ? 0 : 1), n));
  if (!scale) return zero ? fail(c, "zero point without scale") : same_dim(c, "weight's inner size", own, k);
  int64_t inner, stored;
  bool padded = transposed && lp_poly_is_const(k, &inner) && lp_poly_is_const(own, &stored) && stored > inner;
  if (!padded) LP_TRY(same_dim(c, "weight's inner size", own, k));
  if (lp_dtype_is_float(w->type.dtype) && !lp_dtype_is_code(w->type.dtype))
    return fail(c, "a scale for a weight of floats");
  if (!lp_poly_is_const(k, &inner)) return fail(c, "inner size of a quantised weight is not a constant");
  LP_TRY(check_scale(c, scale, inner, n));
  return zero ? check_scale(c, zero, inner, n) : LP_OK;
}

/* What op.linear and op.experts share. */
static lp_status check_product(const rule_context *c) {
  static const char *const epilogues[] = {"none", "relu", "gelu", "gelu_tanh", "silu", "quick_gelu"};
  size_t known = 0;
  while (known < LP_COUNT(epilogues) && !lp_streq(epilogues[known], lp_op_str(c->op, "epilogue", "none")))
    known++;
  if (known == LP_COUNT(epilogues)) return fail(c, "unknown epilogue");
  lp_type x = in_type(c, 0), y = out_type(c, 0);
  if (x.rank < 1 || y.rank != x.rank) return fail(c, "result has another number of axes than x");
  LP_TRY(check_weight(c, 1, 5));
  return lp_op_in(c->op, 4) ? check_weight(c, 4, 7) : LP_OK;
}

static lp_status rule_linear(const rule_context *c) {
  LP_TRY(check_product(c));
  lp_type x = in_type(c, 0), y = out_type(c, 0);
  for (int32_t i = 0; i + 1 < x.rank; i++)
    LP_TRY(same_dim(c, "result axis", y.dim[i], x.dim[i]));
  if (lp_op_in(c->op, 2)) LP_TRY(check_last(c, "bias", in_type(c, 2), y));
  return lp_op_in(c->op, 3) ? same_shape(c, "residual", in_type(c, 3), y) : LP_OK;
}

static lp_status rule_experts(const rule_context *c) {
  int64_t one, experts = lp_op_i64(c->op, "experts", 0), choices = in_type(c, 0).rank - 2;
  bool stacked = experts > 0 && lp_op_bool(c->op, "transpose_b", false);
  if (!stacked || !lp_op_in(c->op, 3)) return fail(c, "experts, transpose_b or index are missing");
  const lp_type x = in_type(c, 0), y = out_type(c, 0), index = in_type(c, 3);
  if (index.dtype != LP_I64 || index.rank < 1 || x.rank != index.rank + 1)
    return fail(c, "index is not of type i64 with one axis less than x");
  LP_TRY(check_product(c));
  for (int32_t i = 0; i < index.rank; i++) {
    LP_TRY(same_dim(c, "result axis", y.dim[i], index.dim[i]));
    if (i < choices || !lp_poly_is_const(x.dim[i], &one) || one != 1)
      LP_TRY(same_dim(c, i < choices ? "x's axis" : "x's number of choices", x.dim[i], index.dim[i]));
  }
  const lp_poly *all = lp_poly_scale(c->m->arena, dim_of(y, -1), experts);
  return lp_op_in(c->op, 2) ? same_dim(c, "bias", lp_type_numel(c->m, in_type(c, 2)), all) : LP_OK;
}

static lp_status rule_matmul(const rule_context *c) {
  lp_type a = in_type(c, 0), b = in_type(c, 1), y = out_type(c, 0);
  if (a.rank < 2 || b.rank < 2 || y.rank < 2) return fail(c, "operands need two axes at least");
  bool ta = lp_op_bool(c->op, "transpose_a", false), tb = lp_op_bool(c->op, "transpose_b", false);
  LP_TRY(same_dim(c, "inner size", dim_of(b, tb ? -1 : -2), dim_of(a, ta ? -2 : -1)));
  LP_TRY(same_dim(c, "rows", dim_of(y, -2), dim_of(a, ta ? -1 : -2)));
  return same_dim(c, "columns", dim_of(y, -1), dim_of(b, tb ? -2 : -1));
}

static lp_status rule_quantize(const rule_context *c) {
  lp_type x = in_type(c, 0);
  int64_t axis = lp_op_i64(c->op, "axis", -1), one;
  bool single = lp_type_static_numel(in_type(c, 1), &one) && one == 1;
  if (!single && (axis < 0 || axis >= x.rank)) return fail(c, "axis is out of range");
  if (!single && in_type(c, 1).rank != (lp_op_i64(c->op, "block_size", 0) > 0 ? x.rank : 1))
    return fail(c, "scale has a wrong number of axes");
  return same_shape(c, "result", out_type(c, 0), x);
}

static lp_status check_layout(const rule_context *c, bool *bshd) {
  const char *layout = lp_op_str(c->op, "layout", "");
  *bshd = strcmp(layout, "bshd") == 0;
  return *bshd || strcmp(layout, "bhsd") == 0 ? LP_OK : fail(c, "layout is neither bshd nor bhsd");
}

static lp_status rule_attention(const rule_context *c) {
  bool bshd;
  LP_TRY(check_layout(c, &bshd));
  lp_type q = in_type(c, 0), k = in_type(c, 1), v = in_type(c, 2), y = out_type(c, 0);
  if (q.rank != 4 || k.rank != 4 || v.rank != 4 || y.rank != 4) return fail(c, "operands need four axes");
  int64_t heads = lp_op_i64(c->op, "heads", 0), kv_heads = lp_op_i64(c->op, "kv_heads", 0);
  if (heads < 1 || kv_heads < 1 || heads % kv_heads) return fail(c, "kv_heads does not divide heads");
  LP_TRY(same_dim(c, "query heads", q.dim[bshd ? 2 : 1], lp_dim_const(c->m, heads)));
  LP_TRY(same_dim(c, "key heads", k.dim[1], lp_dim_const(c->m, kv_heads)));
  LP_TRY(same_dim(c, "value heads", v.dim[1], lp_dim_const(c->m, kv_heads)));
  LP_TRY(same_dim(c, "query's head size", q.dim[3], lp_cache_width_of(c->m, k)));
  LP_TRY(same_dim(c, "key and value length", v.dim[2], k.dim[2]));
  for (int32_t i = 0; i < 3; i++)
    LP_TRY(same_dim(c, "result axis", y.dim[i], q.dim[i]));
  if (lp_op_in(c->op, 4)) {
    if (in_type(c, 4).rank != 1) return fail(c, "sinks need one axis");
    LP_TRY(same_dim(c, "number of sinks", in_type(c, 4).dim[0], lp_dim_const(c->m, heads)));
  }
  return same_dim(c, "result's head size", y.dim[3], lp_cache_width_of(c->m, v));
}

static lp_status rule_linear_attention(const rule_context *c) {
  int64_t heads = lp_op_i64(c->op, "heads", 0), kv_heads = lp_op_i64(c->op, "kv_heads", 0);
  lp_type q = in_type(c, 0), k = in_type(c, 1), v = in_type(c, 2), y = out_type(c, 0), state = out_type(c, 1);
  if (heads < 1 || kv_heads < 1 || heads % kv_heads) return fail(c, "kv_heads does not divide heads");
  if (q.rank != 3 || k.rank != 3 || v.rank != 3 || y.rank != 3 || state.rank != 4) return fail(c, "wrong ranks");
  if (lp_op_bool(c->op, "delta", false) != (lp_op_in(c->op, 5) != NULL)) return fail(c, "delta and beta go together");
  LP_TRY(same_dim(c, "query's width", q.dim[2], lp_poly_scale(c->m->arena, state.dim[2], heads)));
  LP_TRY(same_dim(c, "key's width", k.dim[2], lp_poly_scale(c->m->arena, state.dim[2], kv_heads)));
  LP_TRY(same_dim(c, "value's width", v.dim[2], lp_poly_scale(c->m->arena, state.dim[3], kv_heads)));
  LP_TRY(same_dim(c, "result's width", y.dim[2], lp_poly_scale(c->m->arena, state.dim[3], heads)));
  if (lp_op_in(c->op, 3) && lp_op_state(c->op) >= 0) return fail(c, "its state is both an operand and a cache");
  return lp_op_in(c->op, 3) ? same_shape(c, "state's shape differs", in_type(c, 3), state) : LP_OK;
}

static lp_status rule_carry_columns(const rule_context *c) {
  lp_type x = in_type(c, 0), y = out_type(c, 0), last = out_type(c, 1);
  if (x.rank != 3 || y.rank != 3 || last.rank != 3) return fail(c, "x and both results need three axes");
  for (int32_t i = 0; i < 2; i++)
    LP_TRY(same_dim(c, "result axis", lp_poly_equal(y.dim[i], x.dim[i]) ? last.dim[i] : y.dim[i], x.dim[i]));
  return same_dim(c, "number of columns", y.dim[2], lp_poly_add(c->m->arena, last.dim[2], x.dim[2]));
}

static lp_status rule_kv_append(const rule_context *c) {
  bool bshd, once = lp_op_bool(c->op, "once", false);
  LP_TRY(check_layout(c, &bshd));
  lp_type y = out_type(c, 0), x = lp_op_in(c->op, 0) ? in_type(c, 0) : y;
  if (x.rank != 4 || y.rank != 4) return fail(c, "operands need four axes");
  if (!lp_op_in(c->op, 0)) return once ? LP_OK : fail(c, "the rows to append are missing");
  if (once) LP_TRY(same_dim(c, "rows", y.dim[2], x.dim[bshd ? 1 : 2]));
  LP_TRY(same_dim(c, "heads", y.dim[1], x.dim[bshd ? 2 : 1]));
  return same_dim(c, "head size", lp_cache_width_of(c->m, y), x.dim[3]);
}

static lp_status rule_rotary(const rule_context *c) {
  bool bshd;
  LP_TRY(check_layout(c, &bshd));
  lp_type x = in_type(c, 0), cosine = in_type(c, 1);
  if (x.rank != 4 || cosine.rank != 3) return fail(c, "x needs four axes, cos and sin three");
  LP_TRY(same_shape(c, "sin", in_type(c, 2), cosine));
  LP_TRY(same_dim(c, "positions", cosine.dim[1], x.dim[bshd ? 1 : 2]));
  LP_TRY(same_dim(c, "half of rotary_dim", cosine.dim[2], lp_dim_const(c->m, lp_op_i64(c->op, "rotary_dim", 0) / 2)));
  return same_shape(c, "result", out_type(c, 0), x);
}

static lp_status check_norm(const rule_context *c, int32_t first_parameter) {
  const char *type = lp_op_str(c->op, "type", "");
  if (strcmp(type, "rms") != 0 && strcmp(type, "layer") != 0) return fail(c, "type is neither rms nor layer");
  if (in_type(c, 0).rank < 1) return fail(c, "x has no axis");
  for (int32_t i = first_parameter; i < first_parameter + 2; i++)
    if (lp_op_in(c->op, i)) LP_TRY(check_last(c, "parameter", in_type(c, i), in_type(c, 0)));
  return same_shape(c, "result", out_type(c, 0), in_type(c, 0));
}

static lp_status rule_norm(const rule_context *c) {
  return check_norm(c, 1);
}

static lp_status rule_add_norm(const rule_context *c) {
  LP_TRY(same_shape(c, "residual", in_type(c, 1), in_type(c, 0)));
  return check_norm(c, 2);
}

static lp_status rule_map(const rule_context *c) {
  for (int32_t i = 0; i < c->op->in_count; i++)
    if (lp_op_in(c->op, i)) LP_TRY(broadcasts(c, in_type(c, i), out_type(c, 0)));
  return LP_OK;
}

static lp_status rule_fused(const rule_context *c) {
  if (!c->op->region || c->op->region->arg_count != c->op->in_count)
    return fail(c, "region's arguments differ from the operands");
  const lp_op *yield = lp_block_terminator(c->op->region);
  if (!yield || yield->in_count != c->op->out_count) return fail(c, "region yields another number of results");
  LP_FOR_OPS(op, c->op->region)
    if (op->kind != LP_OP_MAP && op->kind != LP_OP_YIELD && op->kind != LP_OP_CONSTANT)
      return fail(c, "region holds more than op.map");
  for (int32_t i = 1; i < c->op->out_count; i++)
    LP_TRY(same_shape(c, "result", out_type(c, i), out_type(c, 0)));
  return rule_map(c);
}

static lp_status rule_same(const rule_context *c) {
  return same_shape(c, "result", out_type(c, 0), in_type(c, 0));
}

static lp_status check_axis(const rule_context *c, int64_t axis, int32_t rank) {
  return axis >= 0 && axis < rank ? LP_OK : fail(c, "axis is out of range");
}

static lp_status rule_reduce(const rule_context *c) {
  const lp_attr *axes = lp_op_attr(c->op, "axes");
  lp_type x = in_type(c, 0);
  for (int32_t i = 0; i < axes->count; i++) {
    LP_TRY(check_axis(c, axes->is[i], x.rank));
    if (i > 0 && axes->is[i] <= axes->is[i - 1]) return fail(c, "axes do not ascend");
  }
  int32_t rank = lp_op_bool(c->op, "keepdims", false) ? x.rank : x.rank - axes->count;
  return out_type(c, 0).rank == rank ? LP_OK : fail(c, "result has a wrong number of axes");
}

static lp_status rule_argmax(const rule_context *c) {
  int32_t rank = in_type(c, 0).rank;
  LP_TRY(check_axis(c, lp_op_i64(c->op, "axis", -1), rank));
  if (!lp_op_bool(c->op, "keepdims", false)) rank--;
  return out_type(c, 0).rank == rank ? LP_OK : fail(c, "result has a wrong number of axes");
}

static lp_status rule_topk(const rule_context *c) {
  lp_type x = in_type(c, 0), y = out_type(c, 0);
  int64_t axis = lp_op_i64(c->op, "axis", -1);
  LP_TRY(check_axis(c, axis, x.rank));
  if (y.rank != x.rank) return fail(c, "result has a wrong number of axes");
  if (y.dtype != x.dtype || out_type(c, 1).dtype != LP_I64) return fail(c, "results are not of x's type and i64");
  for (int32_t i = 0; i < x.rank; i++)
    if (i != axis) LP_TRY(same_dim(c, "result axis", y.dim[i], x.dim[i]));
  return same_shape(c, "places", out_type(c, 1), y);
}

static lp_status rule_gather(const rule_context *c) {
  lp_type x = in_type(c, 0), index = in_type(c, 1);
  LP_TRY(check_axis(c, lp_op_i64(c->op, "axis", -1), x.rank));
  if (index.dtype != LP_I64 && index.dtype != LP_I32) return fail(c, "index is neither i32 nor i64");
  return out_type(c, 0).rank == x.rank + index.rank - 1 ? LP_OK : fail(c, "result has a wrong number of axes");
}

/* Checks an index (i32 or i64) with the axes of x. On all axes but `axis` it is not larger than x. */
static lp_status check_index(const rule_context *c) {
  lp_type x = in_type(c, 0), index = in_type(c, 1);
  int64_t axis = lp_op_i64(c->op, "axis", -1);
  LP_TRY(check_axis(c, axis, x.rank));
  if (index.dtype != LP_I64 && index.dtype != LP_I32) return fail(c, "index is neither i32 nor i64");
  if (index.rank != x.rank) return fail(c, "index has another number of axes than x");
  for (int32_t i = 0; i < x.rank; i++)
    if (i != axis && !lp_poly_ge(c->m->arena, x.dim[i], index.dim[i]))
      return fail_dims(c, "index axis, which may exceed that of x,", index.dim[i], x.dim[i]);
  return LP_OK;
}

static lp_status rule_gather_elements(const rule_context *c) {
  LP_TRY(check_index(c));
  return same_shape(c, "result", out_type(c, 0), in_type(c, 1));
}

static lp_status check_scatter(const rule_context *c) {
  const char *reduction = lp_op_str(c->op, "reduction", "");
  static const char *const names[] = {"none", "add", "mul", "min", "max"};
  bool known = false;
  for (size_t i = 0; i < LP_COUNT(names); i++)
    known |= strcmp(names[i], reduction) == 0;
  if (!known) return fail(c, "unknown reduction");
  if (in_type(c, 2).dtype != in_type(c, 0).dtype || out_type(c, 0).dtype != in_type(c, 0).dtype)
    return fail(c, "x, updates and result are not of one type");
  return same_shape(c, "result", out_type(c, 0), in_type(c, 0));
}

static lp_status rule_scatter_elements(const rule_context *c) {
  LP_TRY(check_index(c));
  LP_TRY(same_shape(c, "updates", in_type(c, 2), in_type(c, 1)));
  return check_scatter(c);
}

static lp_status rule_scatter_nd(const rule_context *c) {
  lp_type x = in_type(c, 0), index = in_type(c, 1), updates = in_type(c, 2);
  int64_t depth = 0;
  if (index.dtype != LP_I64 && index.dtype != LP_I32) return fail(c, "index is neither i32 nor i64");
  if (index.rank < 1 || !lp_poly_is_const(index.dim[index.rank - 1], &depth) || depth < 1 || depth > x.rank)
    return fail(c, "index does not fit x");
  int32_t lead = index.rank - 1;
  if (updates.rank != lead + x.rank - (int32_t)depth) return fail(c, "updates have a wrong number of axes");
  for (int32_t i = 0; i < updates.rank; i++)
    LP_TRY(same_dim(c, "updates axis", updates.dim[i], i < lead ? index.dim[i] : x.dim[i - lead + (int32_t)depth]));
  return check_scatter(c);
}

static lp_status rule_concat(const rule_context *c) {
  lp_type y = out_type(c, 0);
  int64_t axis = lp_op_i64(c->op, "axis", -1);
  LP_TRY(check_axis(c, axis, y.rank));
  const lp_poly *sum = lp_dim_const(c->m, 0);
  for (int32_t i = 0; i < c->op->in_count; i++) {
    lp_type x = in_type(c, i);
    if (x.rank != y.rank) return fail(c, "operand has another number of axes than the result");
    for (int32_t k = 0; k < y.rank; k++)
      if (k != axis) LP_TRY(same_dim(c, "operand axis", x.dim[k], y.dim[k]));
    sum = lp_poly_add(c->m->arena, sum, x.dim[axis]);
  }
  return same_dim(c, "joined axis", y.dim[axis], sum);
}

static lp_status rule_slice(const rule_context *c) {
  int32_t rank = in_type(c, 0).rank;
  bool good = lp_op_attr(c->op, "starts")->count == rank && lp_op_attr(c->op, "steps")->count == rank;
  if (!good || out_type(c, 0).rank != rank) return fail(c, "starts and steps need one entry per axis");
  const lp_poly *zero = lp_dim_const(c->m, 0);
  const lp_attr *starts = lp_op_attr(c->op, "starts");
  for (int32_t i = 0; i < rank; i++) /* begins before the operand whatever the sizes are */
    if (!lp_poly_equal(starts->polys[i], zero) && lp_poly_ge(c->m->arena, zero, starts->polys[i]))
      return fail(c, "a start is negative");
  return LP_OK;
}

static lp_status rule_transpose(const rule_context *c) {
  const lp_attr *perm = lp_op_attr(c->op, "perm");
  lp_type x = in_type(c, 0), y = out_type(c, 0);
  unsigned seen = 0;
  if (perm->count != x.rank || y.rank != x.rank) return fail(c, "perm needs one entry per axis");
  for (int32_t i = 0; i < perm->count; i++) {
    LP_TRY(check_axis(c, perm->is[i], x.rank));
    seen |= 1u << perm->is[i];
    LP_TRY(same_dim(c, "result axis", y.dim[i], x.dim[perm->is[i]]));
  }
  return seen == (1u << x.rank) - 1 ? LP_OK : fail(c, "perm is no permutation");
}

static lp_status rule_reshape(const rule_context *c) {
  return same_dim(c, "number of elements", lp_type_numel(c->m, out_type(c, 0)), lp_type_numel(c->m, in_type(c, 0)));
}

static lp_status rule_expand(const rule_context *c) {
  return broadcasts(c, in_type(c, 0), out_type(c, 0));
}

static lp_status rule_pad(const rule_context *c) {
  const int32_t rank = in_type(c, 0).rank;
  if (lp_op_attr(c->op, "before")->count != rank) return fail(c, "before needs one entry per axis");
  return out_type(c, 0).rank == rank ? LP_OK : fail(c, "result has a wrong number of axes");
}

static lp_status rule_windows(const rule_context *c) {
  const lp_attr *window = lp_op_attr(c->op, "window"), *steps = lp_op_attr(c->op, "steps"),
                *dilations = lp_op_attr(c->op, "dilations");
  lp_type x = in_type(c, 0), y = out_type(c, 0);
  int32_t n = window->count, lead = x.rank - n;
  if (n < 1 || lead < 0 || steps->count != n || dilations->count != n)
    return fail(c, "window, steps and dilations need one entry per axis that windows slide over");
  if (y.rank != x.rank + n) return fail(c, "result has a wrong number of axes");
  for (int32_t i = 0; i < lead; i++)
    LP_TRY(same_dim(c, "result axis", y.dim[i], x.dim[i]));
  for (int32_t i = 0; i < n; i++) {
    if (window->is[i] < 1 || steps->is[i] < 1 || dilations->is[i] < 1)
      return fail(c, "window, steps and dilations are at least 1");
    LP_TRY(same_dim(c, "window", y.dim[lead + i], lp_dim_const(c->m, window->is[i])));
  }
  return LP_OK;
}

static lp_status rule_iota(const rule_context *c) {
  return out_type(c, 0).rank == 1 ? LP_OK : fail(c, "result is not a vector");
}

static lp_status rule_dims(const rule_context *c) {
  int64_t count;
  bool good = lp_type_static_numel(out_type(c, 0), &count) && count == lp_op_attr(c->op, "values")->count;
  return good ? LP_OK : fail(c, "result's shape differs from the number of values");
}

static lp_status rule_fill(const rule_context *c) {
  return out_type(c, 0).rank >= 0 ? LP_OK : fail(c, "result's shape is not known");
}

static lp_status rule_comm(const rule_context *c) {
  const lp_place from = lp_op_place(c->op, "from"), to = lp_op_place(c->op, "to");
  return from >= 0 && to >= 0 && from != to ? LP_OK : fail(c, "from and to are not two places of the function");
}

/* A side that answers must have computed something since it received: where no code runs, none makes the answer. A view
 * (LP_ALIAS) has no code. */
static lp_status rule_comm_send(const rule_context *c) {
  LP_TRY(rule_comm(c));
  const char *from = lp_op_str(c->op, "from", "");
  for (const lp_op *op = c->op->prev; op; op = op->prev) {
    if (op->kind == LP_OP_COMM_ALL_GATHER) continue; /* the ranks of one side */
    if (lp_op_has(op, LP_COMM) && lp_streq(lp_op_str(op, "to", ""), from))
      return fail(c, "an empty exchange: the side that sends has computed nothing since it received");
    bool computes = lp_op_info_get(op->kind)->level == LP_LEVEL_OP && !lp_op_has(op, LP_ALIAS);
    if (computes && lp_streq(lp_op_str(op, "side", ""), from)) break;
  }
  return LP_OK;
}
static lp_status rule_all_gather(const rule_context *c) {
  lp_type x = in_type(c, 0), y = out_type(c, 0);
  int64_t axis = lp_op_i64(c->op, "axis", 0), parts = lp_op_i64(c->op, "parts", 0),
          ranks = lp_op_i64(c->op, "ranks", 0);
  LP_TRY(check_axis(c, axis, y.rank));
  if (parts < 1 || ranks < 1 || ranks % parts != 0) return fail(c, "`parts` does not divide `ranks`");
  if (x.rank != y.rank || x.dtype != y.dtype) return fail(c, "operand and result differ in type");
  for (int32_t i = 0; i < y.rank; i++)
    LP_TRY(same_dim(c, i == axis ? "joined axis" : "operand axis", y.dim[i],
                    i == axis ? lp_poly_scale(c->m->arena, x.dim[i], parts) : x.dim[i]));
  return LP_OK;
}

static lp_status (*const rules[LP_OP_COUNT])(const rule_context *c) = {
#define LP_OPERATOR(id, name, imin, imax, omin, omax, traits, attrs, rule, cost) [LP_OP_##id] = rule_##rule,
#include "ir/ops.def"
};

lp_status lp_op_check_types(lp_module *module, const lp_op *op, lp_diag *diag) {
  rule_context context = {module, op, diag};
  if (op->kind == LP_OP_SHARD) return lp_shard_check(op, diag);
  if (!rules[op->kind]) return LP_OK;
  for (int32_t i = 0; i < op->in_count; i++)
    if (lp_op_in(op, i) && lp_op_in(op, i)->type.rank < 0) return fail(&context, "operand's shape is not known");
  for (int32_t i = 0; i < op->out_count; i++)
    if (op->out[i]->type.rank < 0) return fail(&context, "result's shape is not known");
  return rules[op->kind](&context);
}
