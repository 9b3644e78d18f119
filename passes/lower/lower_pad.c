/* Lowering of Pad: constant padding is op.pad. The other modes gather along each padded axis by an index that is
 * computed from positions. */
#include "base/poly.h"
#include "passes/lower/lower.h"

typedef struct {
  const lp_poly *before[LP_MAX_RANK], *after[LP_MAX_RANK];
} pad_spec;

static bool is_zero(const lp_poly *poly) {
  int64_t number;
  return lp_poly_is_const(poly, &number) && number == 0;
}

static lp_status read_spec(const lp_lowering *l, pad_spec *spec) {
  const lp_value *x = lp_op_in(l->op, 0), *pads = lp_op_in(l->op, 1), *axes = lp_op_in(l->op, 3);
  if (!pads->known) return lp_lower_refuse_data(l, 1, "has a padding that depends on data");
  for (int32_t i = 0; i < x->type.rank; i++)
    spec->before[i] = spec->after[i] = lp_dim_const(l->b.module, 0);
  int32_t count = pads->known_count / 2;
  for (int32_t i = 0; i < count; i++) {
    int64_t axis = i;
    if (axes && !lp_known_i64(axes, i, &axis)) return lp_lower_refuse_data(l, 3, "has axes that depend on data");
    if (axis < 0) axis += x->type.rank;
    if (axis < 0 || axis >= x->type.rank) return lp_lower_refuse(l, "has an axis out of range");
    spec->before[axis] = pads->known[i];
    spec->after[axis] = pads->known[i + count];
  }
  return LP_OK;
}

/* ---- constant padding -------------------------------------------------------------------------------------------- */

/* Negative pads crop; they are cut off first. */
static lp_value *crop(lp_lowering *l, lp_value *x, pad_spec *spec) {
  lp_module *m = l->b.module;
  for (int32_t i = 0; i < x->type.rank; i++) {
    int64_t before = 0, after = 0;
    (void)lp_poly_is_const(spec->before[i], &before);
    (void)lp_poly_is_const(spec->after[i], &after);
    int64_t first = before < 0 ? -before : 0, last = after < 0 ? -after : 0;
    if (first == 0 && last == 0) continue;
    const lp_poly *size = lp_poly_sub(m->arena, x->type.dim[i], lp_dim_const(m, first + last));
    x = lp_lower_slice_axis(l, x, i, lp_dim_const(m, first), size);
    if (first > 0) spec->before[i] = lp_dim_const(m, 0);
    if (last > 0) spec->after[i] = lp_dim_const(m, 0);
  }
  return x;
}

static lp_value *build_pad(lp_lowering *l, lp_value *x, const pad_spec *spec, double value) {
  lp_op *op = lp_build_typed(&l->b, LP_OP_PAD, 1, &x, lp_type_with_dtype(l->op->out[0]->type, x->type.dtype));
  lp_op_set_polys(l->b.module, op, "before", spec->before, x->type.rank);
  lp_op_set_f64(l->b.module, op, "value", value);
  return op->out[0];
}

/* Pads with a value that is data: pads a tensor of true with false, then selects x where it is true and the value
 * elsewhere. */
static lp_value *pad_with(lp_lowering *l, lp_value *x, const pad_spec *spec, lp_value *value) {
  lp_op *fill = lp_build_typed(&l->b, LP_OP_FILL, 0, NULL, lp_type_with_dtype(x->type, LP_BOOL));
  lp_op_set_f64(l->b.module, fill, "value", 1);
  lp_value *inside = build_pad(l, fill->out[0], spec, 0);
  value = lp_build_reshape(&l->b, value, lp_type_make(l->b.module, value->type.dtype, 0, NULL));
  lp_value *in[] = {inside, build_pad(l, x, spec, 0), value};
  return lp_build_map(&l->b, "where", 3, in, lp_type_with_dtype(l->op->out[0]->type, x->type.dtype));
}

/* ---- other modes ------------------------------------------------------------------------------------------------- */

static lp_value *map2(lp_lowering *l, const char *fn, lp_value *x, lp_value *y) {
  return lp_build_map2(&l->b, fn, x, y, LP_I64);
}

/* The sources of the elements of a padded axis. With q = position - before and n = size:
 *   edge     min(max(q, 0), n - 1)
 *   wrap     q mod n
 *   reflect  (n - 1) - |q mod 2 (n - 1) - (n - 1)| */
static lp_value *source_index(lp_lowering *l, const char *mode, const lp_poly *size, const lp_poly *before,
                              const lp_poly *padded) {
  lp_module *m = l->b.module;
  const lp_poly *one = lp_dim_const(m, 1);
  lp_op *q = lp_build_typed(&l->b, LP_OP_IOTA, 0, NULL, lp_type_make(m, LP_I64, 1, &padded));
  lp_op_set_poly(m, q, "start", lp_poly_scale(m->arena, before, -1));
  lp_op_set_poly(m, q, "step", one);
  if (lp_streq(mode, "wrap")) return map2(l, "mod", q->out[0], lp_lower_size(l, size));
  lp_value *last = lp_lower_size(l, lp_poly_sub(m->arena, size, one)), *zero = lp_lower_size(l, lp_dim_const(m, 0));
  if (lp_streq(mode, "edge")) return map2(l, "min", map2(l, "max", q->out[0], zero), last);
  lp_value *period =
      map2(l, "max", map2(l, "add", last, last), lp_lower_size(l, one)); /* 1 where there is one element */
  lp_value *turn = map2(l, "sub", map2(l, "mod", q->out[0], period), last);
  return map2(l, "sub", last, lp_build_map1(&l->b, "abs", turn, LP_I64));
}

static lp_value *pad_by_index(lp_lowering *l, lp_value *x, const pad_spec *spec, const char *mode) {
  lp_type target = l->op->out[0]->type;
  for (int32_t i = 0; i < target.rank; i++) {
    if (is_zero(spec->before[i]) && is_zero(spec->after[i])) continue;
    const lp_poly *dim[LP_MAX_RANK];
    for (int32_t k = 0; k < target.rank; k++)
      dim[k] = k == i ? target.dim[k] : x->type.dim[k];
    lp_value *in[] = {x, source_index(l, mode, x->type.dim[i], spec->before[i], target.dim[i])};
    lp_type type = lp_type_make(l->b.module, x->type.dtype, target.rank, dim);
    lp_op *gather = lp_build_typed(&l->b, LP_OP_GATHER, 2, in, type);
    lp_op_set_i64(l->b.module, gather, "axis", i);
    x = gather->out[0];
  }
  return x;
}

lp_status lp_lower_pad(lp_lowering *l) {
  lp_value *x = lp_op_in(l->op, 0), *value = lp_op_in(l->op, 2);
  const char *mode = lp_op_str(l->op, "mode", "constant");
  double number = 0;
  pad_spec spec = {0};
  LP_TRY(read_spec(l, &spec));
  bool known_mode = lp_streq(mode, "edge") || lp_streq(mode, "wrap") || lp_streq(mode, "reflect");
  if (!known_mode && !lp_streq(mode, "constant")) return lp_lower_refuse(l, "has a mode that is not known");
  if (known_mode) {
    l->result[0] = pad_by_index(l, x, &spec, mode);
    return LP_OK;
  }
  x = crop(l, x, &spec);
  bool known = !value || lp_scalar_constant(value, &number);
  l->result[0] = known ? build_pad(l, x, &spec, number) : pad_with(l, x, &spec, value);
  return LP_OK;
}
