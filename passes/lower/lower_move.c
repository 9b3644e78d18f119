/* Lowering of operators that move, view or create data. */
#include "base/poly.h"
#include "passes/lower/lower.h"

/* ---- slices ------------------------------------------------------------------------------------------------------ */

typedef struct {
  const lp_poly *start[LP_MAX_RANK];
  int64_t step[LP_MAX_RANK];
} slice_spec;

static void slice_all(const lp_lowering *l, int32_t rank, slice_spec *spec) {
  for (int32_t i = 0; i < rank; i++) {
    spec->start[i] = lp_dim_const(l->b.module, 0);
    spec->step[i] = 1;
  }
}

/* A slice with the sizes of x is x, unless it turns an axis round. */
static lp_value *build_slice(lp_lowering *l, lp_value *x, const slice_spec *spec, lp_type type) {
  bool ahead = true;
  for (int32_t i = 0; i < x->type.rank; i++)
    ahead &= spec->step[i] > 0;
  if (ahead && lp_type_equal(x->type, type)) return x;
  lp_op *op = lp_build_typed(&l->b, LP_OP_SLICE, 1, &x, type);
  lp_op_set_polys(l->b.module, op, "starts", spec->start, x->type.rank);
  lp_op_set_i64s(l->b.module, op, "steps", spec->step, x->type.rank);
  return op->out[0];
}

lp_value *lp_lower_slice_axis(lp_lowering *l, lp_value *x, int32_t axis, const lp_poly *start, const lp_poly *size) {
  slice_spec spec;
  const lp_poly *dims[LP_MAX_RANK];
  slice_all(l, x->type.rank, &spec);
  for (int32_t i = 0; i < x->type.rank; i++)
    dims[i] = i == axis ? size : x->type.dim[i];
  spec.start[axis] = start;
  return build_slice(l, x, &spec, lp_type_make(l->b.module, x->type.dtype, x->type.rank, dims));
}

/* Operand `index` of Slice, element `i` as a polynomial; NULL when it is absent or data. */
static const lp_poly *slice_number(const lp_lowering *l, int32_t index, int32_t i) {
  const lp_value *operand = lp_op_in(l->op, index);
  return operand && operand->known && i < operand->known_count ? operand->known[i] : NULL;
}

/* The start of a slice. A negative start counts from the end; the start is clamped where the sizes decide it. */
static const lp_poly *slice_start(const lp_lowering *l, const lp_poly *start, const lp_poly *dim, int64_t step) {
  lp_arena *arena = l->b.module->arena;
  int64_t number, size;
  bool constant = lp_poly_is_const(start, &number), sized = lp_poly_is_const(dim, &size);
  if (constant && sized) {
    if (number < 0) number += size;
    int64_t most = step < 0 ? size - 1 : size;
    return lp_dim_const(l->b.module, number < 0 ? 0 : number > most ? most : number);
  }
  bool counts_back =
      constant ? number < 0 && number > INT32_MIN : lp_poly_ge(arena, lp_dim_const(l->b.module, 0), start);
  if (counts_back) return lp_poly_add(arena, dim, start);
  if (constant && number <= INT32_MIN) return lp_dim_const(l->b.module, 0);
  if (constant && number >= INT32_MAX) return lp_poly_sub(arena, dim, lp_dim_const(l->b.module, step < 0 ? 1 : 0));
  return start;
}

lp_status lp_lower_slice(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  const lp_value *starts = lp_op_in(l->op, 1);
  slice_spec spec;
  slice_all(l, x->type.rank, &spec);
  if (!starts->known) return lp_lower_refuse_data(l, 1, "begins at an index that depends on data");
  for (int32_t i = 0; i < starts->known_count; i++) {
    const lp_poly *axis_poly = slice_number(l, 3, i), *step_poly = slice_number(l, 4, i), *start = starts->known[i];
    int64_t axis = i, step = 1;
    if (axis_poly) (void)lp_poly_is_const(axis_poly, &axis);
    if (step_poly && !lp_poly_is_const(step_poly, &step))
      return lp_lower_refuse_data(l, 4, "has a step that is not constant");
    if (axis < 0) axis += x->type.rank;
    if (axis < 0 || axis >= x->type.rank) return lp_lower_refuse(l, "has an axis out of range");
    spec.step[axis] = step;
    spec.start[axis] = slice_start(l, start, x->type.dim[axis], step);
  }
  l->result[0] = build_slice(l, x, &spec, l->op->out[0]->type);
  return LP_OK;
}

lp_status lp_lower_split(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  int32_t axis = (int32_t)lp_lower_axis(l, "axis", 0, x->type.rank);
  const lp_poly *start = lp_dim_const(l->b.module, 0);
  LP_FOR_REFS(lp_value, out, l->op->out, l->op->out_count) {
    if (out->uses) lp_value_replace(out, lp_lower_slice_axis(l, x, axis, start, out->type.dim[axis]));
    start = lp_poly_add(l->b.module->arena, start, out->type.dim[axis]);
  }
  lp_op_erase(l->op);
  return LP_OK;
}

/* ---- concat, transpose ------------------------------------------------------------------------------------------- */

static bool is_empty(const lp_value *value) {
  int64_t size;
  LP_FOR_REFS(const lp_poly, dim, value->type.dim, value->type.rank)
    if (lp_poly_is_const(dim, &size) && size == 0) return true;
  return false;
}

lp_status lp_lower_concat(lp_lowering *l) {
  int32_t count = 0;
  lp_value **in = LP_NEW_ARRAY(l->b.module->arena, lp_value *, l->op->in_count);
  for (int32_t i = 0; i < l->op->in_count; i++)
    if (is_empty(l->op->out[0]) || !is_empty(lp_op_in(l->op, i))) in[count++] = lp_op_in(l->op, i);
  if (count == 1) {
    l->result[0] = in[0];
    return LP_OK;
  }
  lp_type type = l->op->out[0]->type;
  lp_op *op = lp_build_typed(&l->b, LP_OP_CONCAT, count, in, type);
  lp_op_set_i64(l->b.module, op, "axis", lp_lower_axis(l, "axis", 0, type.rank));
  l->result[0] = op->out[0];
  return LP_OK;
}

lp_status lp_lower_transpose(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  const lp_attr *attr = lp_op_attr(l->op, "perm");
  int64_t perm[LP_MAX_RANK];
  bool moves = false;
  for (int32_t i = 0; i < x->type.rank; i++) {
    perm[i] = attr ? attr->is[i] : x->type.rank - 1 - i;
    moves |= perm[i] != i;
  }
  l->result[0] = moves ? lp_build_transpose(&l->b, x, perm) : x;
  return LP_OK;
}

/* ---- views, broadcasts, padding ---------------------------------------------------------------------------------- */

lp_status lp_lower_reshape(lp_lowering *l) {
  l->result[0] = lp_build_reshape(&l->b, lp_op_in(l->op, 0), l->op->out[0]->type);
  return LP_OK;
}

lp_status lp_lower_expand(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  lp_type type = lp_type_with_dtype(l->op->out[0]->type, x->type.dtype);
  l->result[0] = lp_type_equal(x->type, type) ? x : lp_build_typed(&l->b, LP_OP_EXPAND, 1, &x, type)->out[0];
  return LP_OK;
}

/* [a, b] tiled [m, n] is [1, a, 1, b] expanded to [m, a, n, b]: axes that repeat once need no pair. */
lp_status lp_lower_tile(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0);
  const lp_value *repeats = lp_op_in(l->op, 1);
  const lp_poly *one = lp_dim_const(l->b.module, 1), *from[LP_MAX_RANK], *to[LP_MAX_RANK];
  int32_t rank = 0;
  if (!repeats->known) return lp_lower_refuse_data(l, 1, "has a number of repeats that depends on data");
  for (int32_t i = 0; i < x->type.rank; i++) {
    bool once = lp_poly_equal(repeats->known[i], one);
    if (rank + (once ? 1 : 2) > LP_MAX_RANK) return lp_lower_refuse(l, "repeats too many axes");
    if (!once) {
      from[rank] = one;
      to[rank++] = repeats->known[i];
    }
    from[rank] = to[rank] = x->type.dim[i];
    rank++;
  }
  lp_value *wide = lp_build_reshape(&l->b, x, lp_type_make(l->b.module, x->type.dtype, rank, from));
  lp_type type = lp_type_make(l->b.module, x->type.dtype, rank, to);
  if (!lp_type_equal(wide->type, type)) wide = lp_build_typed(&l->b, LP_OP_EXPAND, 1, &wide, type)->out[0];
  l->result[0] = lp_build_reshape(&l->b, wide, l->op->out[0]->type);
  return LP_OK;
}

lp_value *lp_lower_size(lp_lowering *l, const lp_poly *size) {
  lp_op *op = lp_build_typed(&l->b, LP_OP_DIMS, 0, NULL, lp_type_make(l->b.module, LP_I64, 0, NULL));
  lp_op_set_polys(l->b.module, op, "values", &size, 1);
  return op->out[0];
}

/* ---- created data ------------------------------------------------------------------------------------------------ */

/* This is reached only when sizes are unknown, which shape inference reports first. */
lp_status lp_lower_dims(lp_lowering *l) {
  return lp_lower_refuse(l, "has sizes that are not known");
}

lp_status lp_lower_constant(lp_lowering *l) {
  return lp_lower_refuse(l, "was not read as a constant");
}

lp_status lp_lower_fill(lp_lowering *l) {
  const lp_attr *attr = lp_op_attr(l->op, "value");
  lp_op *op = lp_build_typed(&l->b, LP_OP_FILL, 0, NULL, l->op->out[0]->type);
  lp_op_set_f64(l->b.module, op, "value", attr ? lp_tensor_f64(&attr->tensor, 0) : 0);
  l->result[0] = op->out[0];
  return LP_OK;
}

/* A start or step as an integer known at compile time, or as a float that is a whole number. */
static const lp_poly *range_number(const lp_lowering *l, int32_t operand) {
  const lp_value *value = lp_op_in(l->op, operand);
  double number;
  if (value->known) return value->known[0];
  if (!lp_scalar_constant(value, &number) || number != (double)(int64_t)number) return NULL;
  return lp_dim_const(l->b.module, (int64_t)number);
}

lp_status lp_lower_range(lp_lowering *l) {
  const lp_poly *start = range_number(l, 0), *step = range_number(l, 2);
  lp_type type = l->op->out[0]->type;
  if (!start || !step) return lp_lower_refuse_data(l, start ? 2 : 0, "has a start or step that depends on data");
  lp_op *op = lp_build_typed(&l->b, LP_OP_IOTA, 0, NULL, lp_type_with_dtype(type, LP_I64));
  lp_op_set_poly(l->b.module, op, "start", start);
  lp_op_set_poly(l->b.module, op, "step", step);
  l->result[0] = type.dtype == LP_I64 ? op->out[0] : lp_build_map1(&l->b, "cast", op->out[0], type.dtype);
  return LP_OK;
}

static lp_value *build_axis_iota(lp_lowering *l, const lp_poly *size, int64_t start, bool column) {
  const lp_poly *shape[] = {size, lp_dim_const(l->b.module, 1)};
  lp_op *op = lp_build_typed(&l->b, LP_OP_IOTA, 0, NULL, lp_type_make(l->b.module, LP_I64, 1, shape));
  lp_op_set_poly(l->b.module, op, "start", lp_dim_const(l->b.module, start));
  lp_op_set_poly(l->b.module, op, "step", lp_dim_const(l->b.module, 1));
  return column ? lp_build_reshape(&l->b, op->out[0], lp_type_make(l->b.module, LP_I64, 2, shape)) : op->out[0];
}

/* Keeps x where column - row >= k (upper) or <= k (lower); k may be data. */
lp_status lp_lower_trilu(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0), *diagonal = lp_op_in(l->op, 1);
  int64_t k = 0;
  bool known = !diagonal || lp_known_i64(diagonal, 0, &k);
  bool upper = lp_op_i64(l->op, "upper", 1) != 0;
  lp_value *row = build_axis_iota(l, x->type.dim[x->type.rank - 2], k, true);
  lp_value *column = build_axis_iota(l, x->type.dim[x->type.rank - 1], 0, false);
  if (!known) {
    lp_value *scalar = lp_build_reshape(&l->b, diagonal, lp_type_make(l->b.module, diagonal->type.dtype, 0, NULL));
    row = lp_build_map2(&l->b, "add", row, scalar, LP_I64);
  }
  lp_value *keep = lp_build_map2(&l->b, upper ? "ge" : "le", column, row, LP_BOOL);
  lp_op *zero = lp_build_typed(&l->b, LP_OP_FILL, 0, NULL, lp_type_make(l->b.module, x->type.dtype, 0, NULL));
  lp_op_set_f64(l->b.module, zero, "value", 0);
  lp_value *in[] = {keep, x, zero->out[0]};
  l->result[0] = lp_build_map(&l->b, "where", 3, in, x->type);
  return LP_OK;
}
