/* What one rank computes of each operator. A product is cut along its columns, an attention along its heads; a sum is
 * never cut, so that each element is computed by one rank as a single rank would compute it. */
#include "base/poly.h"
#include "passes/build.h"
#include "passes/shard/shard.h"

static int64_t mark_of(const lp_op *op) {
  return (int64_t)(intptr_t)op->scratch;
}

void lp_shard_set_mark(lp_op *op, int64_t mark) {
  op->scratch = (void *)(intptr_t)mark;
}

/* ---- parts of values --------------------------------------------------------------------------------------------- */

static lp_share *share_of(const lp_value *value) {
  return value ? value->scratch : NULL;
}

static bool has_share(const lp_value *value, int32_t axis, int64_t parts) {
  const lp_share *share = share_of(value);
  return share && share->axis == axis && share->parts == parts;
}

/* The size of an axis of the whole value; 0: it is not constant. */
static int64_t whole_size(const lp_value *value, int32_t axis) {
  const lp_share *share = share_of(value);
  int64_t size;
  if (axis < 0 || axis >= value->type.rank || !lp_type_static_dim(value->type, axis, &size)) return 0;
  return share && share->axis == axis ? size * share->parts : size;
}

/* The type with `axis` replaced by `size`. */
static lp_type resized(lp_shard *shard, lp_type type, int32_t axis, int64_t size) {
  const lp_poly *dim[LP_MAX_RANK];
  for (int32_t i = 0; i < type.rank; i++)
    dim[i] = i == axis ? lp_dim_const(shard->module, size) : type.dim[i];
  return lp_type_make(shard->module, type.dtype, type.rank, dim);
}

/* Writes the costs of an operator whose types have changed. */
static void set_costs(lp_shard *shard, lp_op *op) {
  lp_cost cost = lp_op_cost(shard->module, op);
  if (!lp_op_attr(op, "flops") || !cost.flops || !cost.bytes_read || !cost.bytes_written) return;
  lp_op_set_poly(shard->module, op, "flops", cost.flops);
  lp_op_set_poly(shard->module, op, "bytes_read", cost.bytes_read);
  lp_op_set_poly(shard->module, op, "bytes_written", cost.bytes_written);
}

/* Says that a rank computes its part of the operator's result. */
static bool set_share(lp_shard *shard, lp_op *op, int32_t axis, int64_t parts) {
  lp_value *value = op->out[0];
  value->type = resized(shard, value->type, axis, whole_size(value, axis) / parts);
  lp_share *share = LP_NEW(shard->scratch, lp_share);
  *share = (lp_share){axis, parts, NULL};
  value->scratch = share;
  set_costs(shard, op);
  return true;
}

static lp_op *build(lp_shard *shard, lp_op *at, lp_kind kind, lp_value *in, lp_type type) {
  lp_build b = lp_build_at(shard->module, at, shard->diag);
  lp_op *op = lp_build_typed(&b, kind, 1, &in, type);
  lp_op_set_str(shard->module, op, "side", lp_side_name(LP_SIDE_CLOUD));
  return op;
}

/* The whole value, for the operator `at`: gathered, if ranks hold parts. */
static lp_value *whole_of(lp_shard *shard, lp_op *at, lp_value *value) {
  lp_share *share = share_of(value);
  if (!share) return value;
  if (share->whole) return share->whole;
  lp_type type = resized(shard, value->type, share->axis, whole_size(value, share->axis));
  lp_op *op = build(shard, at, LP_OP_COMM_ALL_GATHER, value, type);
  lp_op_set_i64(shard->module, op, "axis", share->axis);
  lp_op_set_i64(shard->module, op, "parts", share->parts);
  lp_op_set_i64(shard->module, op, "ranks", shard->ranks);
  op->out[0]->name = value->name;
  return share->whole = op->out[0];
}

/* Tells whether part_of gives something. */
static bool has_part(const lp_shard *shard, const lp_value *value, int32_t axis, int64_t parts) {
  if (!value || has_share(value, axis, parts)) return true;
  if (lp_value_is_constant(value)) return lp_type_divides(value->type, axis, parts);
  int64_t size = whole_size(value, axis);
  return parts == shard->ranks && size > 0 && size % parts == 0; /* the part's start is a multiple of the rank */
}

static lp_value *part_of_constant(lp_shard *shard, lp_value *value, int32_t axis, int64_t parts) {
  lp_module *module = shard->module;
  lp_type type = resized(shard, value->type, axis, whole_size(value, axis) / parts);
  lp_op *op = lp_op_create(module, LP_OP_SHARD, value->def->loc, 1, &value, 1, &type);
  lp_op_set_i64(module, op, "axis", axis);
  lp_op_set_i64(module, op, "parts", parts);
  lp_op_set_i64(module, op, "ranks", shard->ranks);
  op->out[0]->name = value->name;
  lp_op_insert_after(value->def, op);
  return op->out[0];
}

/* The rank's part of a value, for the operator `at`; has_part must hold. A value that every rank holds is sliced at a
 * multiple of the symbol `rank`. */
static lp_value *part_of(lp_shard *shard, lp_op *at, lp_value *value, int32_t axis, int64_t parts) {
  if (!value || has_share(value, axis, parts)) return value;
  if (lp_value_is_constant(value)) return part_of_constant(shard, value, axis, parts);
  lp_module *module = shard->module;
  value = whole_of(shard, at, value);
  int64_t size = whole_size(value, axis) / parts, steps[LP_MAX_RANK];
  const lp_poly *start[LP_MAX_RANK];
  for (int32_t i = 0; i < value->type.rank; i++) {
    steps[i] = 1;
    start[i] = i == axis ? lp_poly_scale(module->arena, lp_dim_symbol(module, "rank"), size) : lp_dim_const(module, 0);
  }
  lp_op *op = build(shard, at, LP_OP_SLICE, value, resized(shard, value->type, axis, size));
  lp_op_set_polys(module, op, "starts", start, value->type.rank);
  lp_op_set_i64s(module, op, "steps", steps, value->type.rank);
  return op->out[0];
}

static void take_part(lp_shard *shard, lp_op *op, int32_t operand, int32_t axis, int64_t parts) {
  lp_value *value = lp_op_in(op, operand);
  if (value) lp_op_set_in(op, operand, part_of(shard, op, value, axis, parts));
}

static void take_whole(lp_shard *shard, lp_op *op, int32_t operand) {
  lp_value *value = lp_op_in(op, operand);
  if (share_of(value)) lp_op_set_in(op, operand, whole_of(shard, op, value));
}

/* ---- op.linear --------------------------------------------------------------------------------------------------- */

/* Operands of op.linear: see ir/ops.def. */
enum { X, W, BIAS, RESIDUAL, GATE, SCALES };

/* The axis of the columns in a constant operand; -1: all columns share its one element; -2: unknown. */
static int32_t column_axis(const lp_op *op, int32_t operand) {
  const lp_value *value = lp_op_in(op, operand);
  bool matrix = operand == W || operand == GATE || (operand >= SCALES && value->type.rank == 2);
  int64_t count = 0;
  if (!lp_value_is_constant(value) || value->type.rank != (matrix ? 2 : 1)) return -2;
  if (operand >= SCALES && lp_type_static_numel(value->type, &count) && count == 1) return -1;
  return matrix && !lp_op_bool(op, "transpose_b", false) ? 1 : 0;
}

bool lp_shard_linear_divides(const lp_shard *shard, const lp_op *op, int64_t parts) {
  int32_t last = op->out[0]->type.rank - 1;
  int64_t columns = whole_size(op->out[0], last);
  if (parts < 2 || last < 1 || columns == 0 || columns % parts != 0) return false;
  for (int32_t i = W; i < op->in_count; i++) {
    const lp_value *value = lp_op_in(op, i);
    if (!value) continue;
    if (i == RESIDUAL) {
      if (value->type.rank != last + 1 || whole_size(value, last) != columns) return false;
      if (!has_part(shard, value, last, parts)) return false;
      continue;
    }
    int32_t axis = column_axis(op, i);
    if (axis == -2 || (axis >= 0 && (whole_size(value, axis) != columns || !lp_type_divides(value->type, axis, parts))))
      return false;
  }
  return true;
}

static bool shard_linear(lp_shard *shard, lp_op *op) {
  int64_t parts = mark_of(op) > 0 ? mark_of(op) : shard->ranks;
  int32_t last = op->out[0]->type.rank - 1;
  if (!lp_shard_linear_divides(shard, op, parts)) return false;
  take_whole(shard, op, X);
  for (int32_t i = W; i < op->in_count; i++) {
    int32_t axis = i == RESIDUAL || !lp_op_in(op, i) ? last : column_axis(op, i);
    if (axis >= 0) take_part(shard, op, i, axis, parts);
  }
  return set_share(shard, op, last, parts);
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* The axis of the heads in a value of an operator's `layout`. */
static int32_t head_axis(const lp_op *op) {
  return lp_streq(lp_op_str(op, "layout", "bshd"), "bshd") ? 2 : 1;
}

int64_t lp_shard_kv_parts(const lp_op *attention, int64_t ranks) {
  int64_t heads = lp_op_i64(attention, "heads", 0), kv_heads = lp_op_i64(attention, "kv_heads", 0);
  if (heads < 1 || kv_heads < 1 || heads % ranks != 0) return 0;
  return kv_heads % ranks == 0 ? ranks : ranks % kv_heads == 0 ? kv_heads : 0;
}

/* Operands of op.attention: see ir/ops.def. */
enum { Q, MASK = 3, SINKS };

static bool shard_attention(lp_shard *shard, lp_op *op) {
  lp_value *mask = lp_op_in(op, MASK);
  int64_t ranks = shard->ranks, kv_parts = lp_shard_kv_parts(op, ranks);
  if (mark_of(op) == 0) return false;
  take_part(shard, op, Q, head_axis(op), ranks);
  if (mask && mask->type.rank >= 3 && whole_size(mask, mask->type.rank - 3) > 1)
    take_part(shard, op, MASK, mask->type.rank - 3, ranks);
  take_part(shard, op, SINKS, 0, ranks);
  lp_op_set_i64(shard->module, op, "heads", lp_op_i64(op, "heads", 0) / ranks);
  lp_op_set_i64(shard->module, op, "kv_heads", lp_op_i64(op, "kv_heads", 0) / kv_parts);
  return set_share(shard, op, head_axis(op), ranks);
}

/* The result stands for the cache, which only attentions that are cut read: it is no value to gather. */
static lp_status shard_append(lp_shard *shard, lp_op *op) {
  int64_t parts = shard->state_parts[lp_op_i64(op, "state", 0)], heads = whole_size(op->out[0], 1);
  if (parts < 2) {
    take_whole(shard, op, 0);
    return LP_OK;
  }
  if (!has_part(shard, lp_op_in(op, 0), head_axis(op), parts))
    return lp_error(shard->diag, op->loc, "the %" PRId64 " heads of '%s' cannot be divided among %" PRId64 " ranks",
                    heads, lp_op_str(op, "name", "a KV cache"), shard->ranks);
  take_part(shard, op, 0, head_axis(op), parts);
  op->out[0]->type = resized(shard, op->out[0]->type, 1, heads / parts);
  set_costs(shard, op);
  return LP_OK;
}

/* ---- operators that keep the parts of their operand -------------------------------------------------------------- */

static const lp_poly *product(lp_shard *shard, lp_type type, int32_t axes) {
  const lp_poly *all = lp_dim_const(shard->module, 1);
  for (int32_t i = 0; i < axes; i++)
    all = lp_poly_mul(shard->module->arena, all, type.dim[i]);
  return all;
}

/* The parts stay together where an axis of the result begins at the cut axis. */
static bool shard_reshape(lp_shard *shard, lp_op *op) {
  const lp_share *share = share_of(lp_op_in(op, 0));
  if (!share) return false;
  const lp_poly *before = product(shard, lp_op_in(op, 0)->type, share->axis);
  for (int32_t i = 0; i < op->out[0]->type.rank; i++) {
    int64_t size = whole_size(op->out[0], i);
    if (size > 1 && size % share->parts == 0 && lp_poly_equal(product(shard, op->out[0]->type, i), before))
      return set_share(shard, op, i, share->parts);
  }
  return false;
}

static bool shard_transpose(lp_shard *shard, lp_op *op) {
  const lp_share *share = share_of(lp_op_in(op, 0));
  const lp_attr *perm = lp_op_attr(op, "perm");
  for (int32_t i = 0; share && i < perm->count; i++)
    if (perm->is[i] == share->axis) return set_share(shard, op, i, share->parts);
  return false;
}

static bool shard_rotary(lp_shard *shard, lp_op *op) {
  const lp_share *share = share_of(lp_op_in(op, 0));
  if (!share || share->axis != head_axis(op)) return false;
  take_whole(shard, op, 1);
  take_whole(shard, op, 2);
  return set_share(shard, op, share->axis, share->parts);
}

static bool shard_norm(lp_shard *shard, lp_op *op) {
  const lp_share *share = share_of(lp_op_in(op, 0));
  if (!share || share->axis == op->out[0]->type.rank - 1) return false;
  for (int32_t i = 1; i < op->in_count; i++)
    take_whole(shard, op, i);
  return set_share(shard, op, share->axis, share->parts);
}

/* The axis of an operand that is `axis` of the result; -1: the operand is broadcast along it. */
static int32_t operand_axis(const lp_op *op, const lp_value *value, int32_t axis) {
  int32_t own = axis - (op->out[0]->type.rank - value->type.rank);
  return own < 0 || whole_size(value, own) == 1 ? -1 : own;
}

/* Tells whether the rank has its part of an operand without a slice of the whole one. */
static bool has_own_part(const lp_value *value, int32_t axis, int64_t parts) {
  const lp_share *share = share_of(value);
  if (lp_value_is_constant(value)) return lp_type_divides(value->type, axis, parts);
  return has_share(value, axis, parts) && !share->whole;
}

static bool shard_map(lp_shard *shard, lp_op *op) {
  const lp_share *share = NULL;
  int32_t axis = -1;
  for (int32_t i = 0; i < op->in_count && !share; i++) {
    share = share_of(lp_op_in(op, i));
    if (share) axis = share->axis + op->out[0]->type.rank - lp_op_in(op, i)->type.rank;
  }
  if (!share || whole_size(op->out[0], axis) % share->parts != 0) return false;
  for (int32_t i = 0; i < op->in_count; i++) {
    const lp_value *value = lp_op_in(op, i);
    int32_t own = value ? operand_axis(op, value, axis) : -1;
    if (own >= 0 && !has_own_part(value, own, share->parts)) return false;
  }
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *value = lp_op_in(op, i);
    int32_t own = value ? operand_axis(op, value, axis) : -1;
    if (own >= 0)
      take_part(shard, op, i, own, share->parts);
    else
      take_whole(shard, op, i);
  }
  return set_share(shard, op, axis, share->parts);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* Tells whether the rank computes only its part. */
static bool shard_part(lp_shard *shard, lp_op *op) {
  switch (op->kind) {
  case LP_OP_LINEAR:
    return shard_linear(shard, op);
  case LP_OP_ATTENTION:
    return shard_attention(shard, op);
  case LP_OP_RESHAPE:
    return shard_reshape(shard, op);
  case LP_OP_TRANSPOSE:
    return shard_transpose(shard, op);
  case LP_OP_ROTARY:
    return shard_rotary(shard, op);
  case LP_OP_NORM:
    return shard_norm(shard, op);
  case LP_OP_MAP:
    return shard_map(shard, op);
  default:
    return false;
  }
}

lp_status lp_shard_op(lp_shard *shard, lp_op *op) {
  if (op->kind == LP_OP_KV_APPEND) return shard_append(shard, op);
  if (shard_part(shard, op)) return LP_OK;
  for (int32_t i = 0; i < op->in_count; i++)
    take_whole(shard, op, i);
  return LP_OK;
}
