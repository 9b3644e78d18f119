/* Operators that move elements or make them from sizes, in ONNX. */

#include "backend/onnx/constants.h"
#include "base/poly.h"

/* ---- by index ---------------------------------------------------------------------------------------------------- */

static lp_status gather(onnx_graph *g, const lp_op *op, const char *type, onnx_name *out) {
  lp_dtype from = lp_op_in(op, 0)->type.dtype, to = op->out[0]->type.dtype;
  onnx_name x, index;
  if (lp_op_str(op, "weight_dtype", NULL)) {
    LP_TRY(onnx_table(g, op, &x));
    from = LP_F32;
  } else {
    LP_TRY(onnx_operand_as(g, 0, onnx_dtype(from), &x));
  }
  LP_TRY(onnx_operand(g, 1, &index));
  out[0] = ONNX_NODE(g, type, x, index);
  onnx_attr_i(g, "axis", lp_op_i64(op, "axis", 0));
  if (from != to) out[0] = onnx_cast(g, out[0], to);
  return LP_OK;
}

lp_status onnx_lower_gather(onnx_graph *g, const lp_op *op, onnx_name *out) {
  return gather(g, op, "Gather", out);
}

lp_status onnx_lower_gather_elements(onnx_graph *g, const lp_op *op, onnx_name *out) {
  return gather(g, op, "GatherElements", out);
}

/* ---- other places ------------------------------------------------------------------------------------------------ */

lp_status onnx_lower_concat(onnx_graph *g, const lp_op *op, onnx_name *out) {
  onnx_name *in = LP_NEW_ARRAY(g->arena, onnx_name, op->in_count);
  for (int32_t i = 0; i < op->in_count; i++)
    LP_TRY(onnx_operand_as(g, i, op->out[0]->type.dtype, &in[i]));
  out[0] = onnx_node(g, "Concat", op->in_count, in);
  onnx_attr_i(g, "axis", lp_op_i64(op, "axis", 0));
  return LP_OK;
}

/* The end of a slice, after its last element. A slice that runs backwards past the first element ends at the least
 * number. */
static lp_status slice_end(const onnx_graph *g, const lp_poly *start, const lp_poly *size, int64_t step,
                           const lp_poly **out) {
  lp_arena *arena = g->module->arena;
  int64_t end;
  *out = lp_poly_add(arena, start, lp_poly_scale(arena, size, step));
  if (step > 0) return LP_OK;
  if (!lp_poly_is_const(*out, &end)) return onnx_refuse(g, "the end of a backward slice is not known");
  if (end < 0) *out = lp_dim_const(g->module, INT64_MIN + 1);
  return LP_OK;
}

lp_status onnx_lower_slice(onnx_graph *g, const lp_op *op, onnx_name *out) {
  const lp_attr *starts = lp_op_attr(op, "starts"), *steps = lp_op_attr(op, "steps");
  const lp_type from = lp_op_in(op, 0)->type, to = op->out[0]->type;
  const lp_poly *start[LP_MAX_RANK], *end[LP_MAX_RANK];
  int64_t axes[LP_MAX_RANK], step[LP_MAX_RANK], zero;
  int32_t count = 0;
  onnx_name x;
  LP_TRY(onnx_operand(g, 0, &x));
  for (int32_t i = 0; i < from.rank; i++) {
    bool whole = steps->is[i] == 1 && lp_poly_is_const(starts->polys[i], &zero) && zero == 0;
    if (whole && lp_poly_equal(from.dim[i], to.dim[i])) continue;
    start[count] = starts->polys[i];
    step[count] = steps->is[i];
    axes[count] = i;
    LP_TRY(slice_end(g, start[count], to.dim[i], step[count], &end[count]));
    count++;
  }
  out[0] = count ? ONNX_NODE(g, "Slice", x, onnx_sizes(g, start, count), onnx_sizes(g, end, count),
                             onnx_i64s(g, axes, count), onnx_i64s(g, step, count))
                 : ONNX_NODE(g, "Identity", x);
  return LP_OK;
}

lp_status onnx_lower_transpose(onnx_graph *g, const lp_op *op, onnx_name *out) {
  const lp_attr *perm = lp_op_attr(op, "perm");
  onnx_name x;
  LP_TRY(onnx_operand(g, 0, &x));
  out[0] = onnx_transpose(g, x, perm->is, perm->count);
  return LP_OK;
}

lp_status onnx_lower_reshape(onnx_graph *g, const lp_op *op, onnx_name *out) {
  onnx_name x;
  LP_TRY(onnx_operand(g, 0, &x));
  out[0] = onnx_reshape(g, x, lp_op_in(op, 0)->type, op->out[0]->type);
  return LP_OK;
}

lp_status onnx_lower_expand(onnx_graph *g, const lp_op *op, onnx_name *out) {
  const lp_type type = op->out[0]->type;
  onnx_name x;
  LP_TRY(onnx_operand_as(g, 0, type.dtype, &x));
  out[0] = ONNX_NODE(g, "Expand", x, onnx_sizes(g, type.dim, type.rank));
  return LP_OK;
}

lp_status onnx_lower_pad(onnx_graph *g, const lp_op *op, onnx_name *out) {
  const lp_attr *before = lp_op_attr(op, "before");
  const lp_type from = lp_op_in(op, 0)->type, to = op->out[0]->type;
  const lp_poly *pads[2 * LP_MAX_RANK];
  lp_arena *arena = g->module->arena;
  onnx_name x;
  LP_TRY(onnx_operand(g, 0, &x));
  for (int32_t i = 0; i < from.rank; i++) {
    pads[i] = before->polys[i];
    pads[from.rank + i] = lp_poly_sub(arena, lp_poly_sub(arena, to.dim[i], from.dim[i]), pads[i]);
  }
  onnx_name value = onnx_scalar(g, to.dtype, lp_op_f64(op, "value", 0));
  out[0] = ONNX_NODE(g, "Pad", x, onnx_sizes(g, pads, 2 * from.rank), value);
  return LP_OK;
}

/* Each windowed axis becomes two, [k][o] picked by index; then all k come before all o. */
lp_status onnx_lower_windows(onnx_graph *g, const lp_op *op, onnx_name *out) {
  const lp_attr *window = lp_op_attr(op, "window"), *steps = lp_op_attr(op, "steps"),
                *dilations = lp_op_attr(op, "dilations");
  const lp_type from = lp_op_in(op, 0)->type, to = op->out[0]->type;
  int32_t n = window->count, lead = from.rank - n;
  int64_t perm[LP_MAX_RANK];
  onnx_name x, zero = onnx_scalar(g, LP_I64, 0), one = onnx_scalar(g, LP_I64, 1);
  LP_TRY(onnx_operand(g, 0, &x));
  for (int32_t i = 0; i < n; i++) {
    const int64_t axis = 1;
    onnx_name places = ONNX_NODE(g, "Range", zero, ONNX_NODE(g, "Squeeze", onnx_size(g, to.dim[lead + n + i])), one);
    onnx_name taps = ONNX_NODE(g, "Range", zero, onnx_scalar(g, LP_I64, (double)window->is[i]), one);
    places = ONNX_NODE(g, "Mul", places, onnx_scalar(g, LP_I64, (double)steps->is[i]));
    taps = ONNX_NODE(g, "Mul", taps, onnx_scalar(g, LP_I64, (double)dilations->is[i]));
    onnx_name index = ONNX_NODE(g, "Add", ONNX_NODE(g, "Unsqueeze", taps, onnx_i64s(g, &axis, 1)), places);
    x = ONNX_NODE(g, "Gather", x, index);
    onnx_attr_i(g, "axis", lead + 2 * i);
  }
  for (int32_t i = 0; i < lead; i++)
    perm[i] = i;
  for (int32_t i = 0; i < n; i++) {
    perm[lead + i] = lead + 2 * i;
    perm[lead + n + i] = lead + 2 * i + 1;
  }
  out[0] = onnx_transpose(g, x, perm, lead + 2 * n);
  return LP_OK;
}

/* ---- results without operands ------------------------------------------------------------------------------------ */

lp_status onnx_lower_iota(onnx_graph *g, const lp_op *op, onnx_name *out) {
  lp_arena *arena = g->module->arena;
  const lp_type type = op->out[0]->type;
  const lp_poly *start = lp_op_poly(op, "start"), *step = lp_op_poly(op, "step");
  const lp_poly *end = lp_poly_add(arena, start, lp_poly_mul(arena, step, type.dim[0]));
  int64_t constant;
  if (!lp_poly_is_const(step, &constant) || constant == 0) return onnx_refuse(g, "its step is not known");
  out[0] = ONNX_NODE(g, "Range", ONNX_NODE(g, "Squeeze", onnx_size(g, start)),
                     ONNX_NODE(g, "Squeeze", onnx_size(g, end)), onnx_scalar(g, LP_I64, (double)constant));
  if (type.dtype != LP_I64) out[0] = onnx_cast(g, out[0], type.dtype);
  return LP_OK;
}

lp_status onnx_lower_dims(onnx_graph *g, const lp_op *op, onnx_name *out) {
  const lp_attr *values = lp_op_attr(op, "values");
  const lp_type type = op->out[0]->type;
  onnx_name *parts = LP_NEW_ARRAY(g->arena, onnx_name, values->count);
  int64_t dim[LP_MAX_RANK];
  for (int32_t i = 0; i < values->count; i++)
    parts[i] = onnx_size(g, values->polys[i]);
  out[0] = onnx_node(g, "Concat", values->count, parts);
  onnx_attr_i(g, "axis", 0);
  if (type.rank == 1) return LP_OK;
  for (int32_t i = 0; i < type.rank; i++)
    if (!lp_type_static_dim(type, i, &dim[i])) return onnx_refuse(g, "the shape of its sizes is not known");
  out[0] = ONNX_NODE(g, "Reshape", out[0], onnx_i64s(g, dim, type.rank));
  return LP_OK;
}

lp_status onnx_lower_fill(onnx_graph *g, const lp_op *op, onnx_name *out) {
  const lp_type type = op->out[0]->type;
  const int64_t one = 1;
  uint64_t data = 0;
  lp_array element = {.dtype = type.dtype, .data = &data};
  lp_array_set_f64(&element, 0, lp_op_f64(op, "value", 0));
  Onnx__TensorProto *value = onnx_tensor(g, type.dtype, 1, &one);
  onnx_tensor_set_data(g, value, &data, (size_t)lp_dtype_bits(type.dtype) / 8);
  out[0] = ONNX_NODE(g, "ConstantOfShape", onnx_sizes(g, type.dim, type.rank));
  onnx_attr_tensor(g, "value", value);
  return LP_OK;
}
