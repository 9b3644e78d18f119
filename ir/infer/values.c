/* Computes known elements of results with known types, because exporters leave arithmetic on shapes in a graph.
 * Operators that move elements run in the reference interpreter on the elements' indices; arithmetic is done on the
 * polynomials. */
#include "base/poly.h"
#include "ir/infer/infer.h"
#include "ir/ir_internal.h"

typedef const lp_poly *poly;

/* ---- elementwise, sizes, ranges, sums ---- */

static poly *known_elementwise(const lp_infer *c, int64_t count) {
  poly *known = LP_NEW_ARRAY(c->m->arena, poly, count + 1);
  for (int64_t i = 0; i < count; i++)
    if (!(known[i] = lp_infer_element(c, i))) return NULL;
  return known;
}

static poly *known_shape(const lp_infer *c, int64_t count) {
  lp_type in = lp_infer_in(c, 0);
  int64_t start = lp_op_i64(c->op, "start", 0);
  start = start < 0 ? start + in.rank : start;
  poly *known = LP_NEW_ARRAY(c->m->arena, poly, count + 1);
  for (int64_t i = 0; i < count; i++)
    known[i] = in.dim[(start < 0 ? 0 : start) + i];
  return known;
}

static poly *known_size(const lp_infer *c) {
  poly *known = LP_NEW_ARRAY(c->m->arena, poly, 1);
  known[0] = lp_type_numel(c->m, lp_infer_in(c, 0));
  return known[0] ? known : NULL;
}

static poly *known_range(const lp_infer *c, int64_t count) {
  const poly *start, *step;
  int32_t n;
  if (!lp_infer_known(c, 0, &start, &n) || n != 1 || !lp_infer_known(c, 2, &step, &n) || n != 1) return NULL;
  poly *known = LP_NEW_ARRAY(c->m->arena, poly, count + 1);
  for (int64_t i = 0; i < count; i++) {
    known[i] = lp_poly_add(c->m->arena, start[0], lp_poly_scale(c->m->arena, step[0], i));
    if (!known[i]) return NULL;
  }
  return known;
}

static poly *known_fill(const lp_infer *c, int64_t count) {
  const lp_attr *value = lp_op_attr(c->op, "value");
  int64_t fill = 0;
  if (value && !lp_infer_whole(&value->tensor, 0, &fill)) return NULL;
  poly *known = LP_NEW_ARRAY(c->m->arena, poly, count + 1);
  for (int64_t i = 0; i < count; i++)
    known[i] = lp_dim_const(c->m, fill);
  return known;
}

/* The sum or product of all elements. */
static poly *known_total(const lp_infer *c, int64_t count) {
  const poly *in;
  int32_t n;
  if (count != 1 || !lp_infer_known(c, 0, &in, &n)) return NULL;
  bool sum = c->op->kind == LP_ONNX_ReduceSum;
  poly *known = LP_NEW_ARRAY(c->m->arena, poly, 1);
  known[0] = lp_dim_const(c->m, sum ? 0 : 1);
  for (int32_t i = 0; i < n; i++)
    known[0] = sum ? lp_poly_add(c->m->arena, known[0], in[i]) : lp_poly_mul(c->m->arena, known[0], in[i]);
  return known[0] ? known : NULL;
}

static bool is_greater(poly a, poly b) {
  int64_t x, y;
  return lp_poly_is_const(a, &x) && lp_poly_is_const(b, &y) && x > y;
}

/* Tells whether the operand is ConstantOfShape of a constant size greater than 0. Every reduction over it then gives
 * `fill`. */
static bool is_fill(const lp_value *value, int64_t *fill) {
  int64_t numel;
  if (!lp_op_is(value->def, LP_ONNX_ConstantOfShape)) return false;
  const lp_attr *element = lp_op_attr(value->def, "value");
  *fill = 0;
  return lp_type_static_numel(value->type, &numel) && numel > 0 &&
         (!element || lp_infer_whole(&element->tensor, 0, fill));
}

/* The greatest or least element: of a filled tensor of any size, or of few elements that are equal or constants. */
static poly *known_extreme(const lp_infer *c, int64_t count) {
  const poly *in;
  int32_t n;
  int64_t fill, value;
  poly *known = LP_NEW_ARRAY(c->m->arena, poly, count + 1);
  if (lp_infer_has(c, 0) && is_fill(lp_op_in(c->op, 0), &fill)) {
    for (int64_t i = 0; i < count; i++)
      known[i] = lp_dim_const(c->m, fill);
    return known;
  }
  if (count != 1 || !lp_infer_known(c, 0, &in, &n) || n < 1) return NULL;
  bool greatest = c->op->kind == LP_ONNX_ReduceMax;
  known[0] = in[0];
  for (int32_t i = 1; i < n; i++) {
    if (lp_poly_equal(known[0], in[i])) continue;
    if (!lp_poly_is_const(known[0], &value) || !lp_poly_is_const(in[i], &value)) return NULL;
    if (greatest ? is_greater(in[i], known[0]) : is_greater(known[0], in[i])) known[0] = in[i];
  }
  return known;
}

/* ---- operators that move elements ---- */

/* An operand for the interpreter: indices that stand for its elements, from `first` on, or its constant elements. */
static bool stand_in(const lp_infer *c, int32_t index, bool numbers, int64_t first, lp_arena *arena, lp_array *out) {
  const poly *known;
  int32_t count;
  if (!lp_infer_known(c, index, &known, &count)) return false;
  lp_type type = lp_infer_in(c, index);
  *out = (lp_array){.dtype = LP_I64, .rank = type.rank, .data = LP_NEW_ARRAY(arena, int64_t, count + 1)};
  for (int32_t i = 0; i < type.rank; i++)
    if (!lp_type_static_dim(type, i, &out->dim[i])) return false;
  int64_t *data = out->data;
  for (int32_t i = 0; i < count; i++)
    if (numbers)
      data[i] = first + i;
    else if (!lp_poly_is_const(known[i], &data[i]))
      return false;
  return true;
}

/* Tells whether the operands from 1 on control the move (true) or are moved themselves (false, Concat). */
static bool moves(lp_kind kind) {
  switch (kind) {
  case LP_ONNX_Gather:
  case LP_ONNX_GatherElements:
  case LP_ONNX_Slice:
  case LP_ONNX_Split:
  case LP_ONNX_Transpose:
  case LP_ONNX_Reshape:
  case LP_ONNX_Flatten:
  case LP_ONNX_Squeeze:
  case LP_ONNX_Unsqueeze:
  case LP_ONNX_Expand:
  case LP_ONNX_Tile:
  case LP_ONNX_Identity:
  case LP_ONNX_Concat:
    return true;
  default:
    return false;
  }
}

static poly element_numbered(const lp_infer *c, int64_t number) {
  const poly *known;
  int32_t count;
  for (int32_t i = 0; i < c->op->in_count; i++) {
    if (!lp_infer_known(c, i, &known, &count)) return NULL;
    if (number < count) return known[number];
    number -= count;
  }
  return NULL;
}

static void known_moved(lp_infer *c) {
  lp_op *op = c->op;
  const lp_array *in[LP_MAX_KNOWN];
  lp_array arrays[LP_MAX_KNOWN], *out;
  if (op->in_count > LP_MAX_KNOWN || op->out_count > LP_MAX_KNOWN) return;
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  int64_t *sym = LP_NEW_ARRAY(arena, int64_t, c->m->symbols.names.count + 1), first = 0;
  bool good = true;
  for (int32_t i = 0; i < op->in_count && good; i++) {
    in[i] = lp_infer_has(c, i) ? &arrays[i] : NULL;
    if (!in[i]) continue;
    good = stand_in(c, i, i == 0 || op->kind == LP_ONNX_Concat, first, arena, &arrays[i]);
    first += good ? lp_op_in(op, i)->known_count : 0;
  }
  out = LP_NEW_ARRAY(arena, lp_array, op->out_count);
  if (good && lp_op_eval(c->m, op, in, out, sym, arena, NULL) == LP_OK) {
    for (int32_t k = 0; k < op->out_count; k++) {
      lp_value *value = op->out[k];
      int64_t count;
      if (!lp_type_static_numel(value->type, &count) || count > LP_MAX_KNOWN) continue;
      poly *known = LP_NEW_ARRAY(c->m->arena, poly, count + 1);
      for (int64_t i = 0; i < count && known; i++)
        if (!(known[i] = element_numbered(c, ((const int64_t *)out[k].data)[i]))) known = NULL;
      value->known = known;
      value->known_count = known ? (int32_t)count : 0;
    }
  }
}

/* A vector with one index on, as torch.onnx writes the repeats of repeat_interleave. */
static poly *known_one_hot(lp_infer *c, int64_t count) {
  const poly *index, *values;
  int32_t indices, two;
  int64_t on;
  if (!lp_infer_known(c, 0, &index, &indices) || indices != 1 || !lp_poly_is_const(index[0], &on)) return NULL;
  if (!lp_infer_known(c, 2, &values, &two) || two != 2) return NULL;
  poly *known = LP_NEW_ARRAY(c->m->arena, poly, count + 1);
  for (int64_t i = 0; i < count; i++)
    known[i] = values[i == (on < 0 ? on + count : on)];
  return known;
}

/* ---- all of them ---- */

static poly *known_of(lp_infer *c, int64_t count) {
  switch (c->op->kind) {
  case LP_ONNX_Shape:
    return known_shape(c, count);
  case LP_ONNX_Size:
    return known_size(c);
  case LP_ONNX_Range:
    return known_range(c, count);
  case LP_ONNX_ConstantOfShape:
    return known_fill(c, count);
  case LP_ONNX_OneHot:
    return known_one_hot(c, count);
  case LP_ONNX_ReduceSum:
  case LP_ONNX_ReduceProd:
    return known_total(c, count);
  case LP_ONNX_ReduceMax:
  case LP_ONNX_ReduceMin:
    return known_extreme(c, count);
  default:
    return lp_op_has(c->op, LP_ELEMENTWISE) ? known_elementwise(c, count) : NULL;
  }
}

void lp_infer_values(lp_infer *c) {
  int64_t count;
  for (int32_t i = 0; i < c->op->out_count; i++) {
    c->op->out[i]->known = NULL;
    c->op->out[i]->known_count = 0;
  }
  lp_value *out = c->op->out[0];
  if (c->op->kind == LP_ONNX_Constant) {
    const lp_attr *value = lp_op_attr(c->op, "value");
    int32_t n = 0;
    out->known = lp_infer_tensor(c->m, &value->tensor, &n);
    out->known_count = n;
    return;
  }
  if (!lp_type_static_numel(out->type, &count) || count > LP_MAX_KNOWN) return;
  if (!lp_module_spend(c->m, 16 * (count + 1))) return; /* polynomials take memory that is not freed */
  if (moves(c->op->kind)) {
    if (!lp_infer_has(c, 0) || !lp_op_in(c->op, 0)->known) lp_infer_constant_known(c->m, lp_op_in(c->op, 0));
    if (lp_op_in(c->op, 0)->known) known_moved(c);
    if (!out->known && !lp_dtype_is_float(out->type.dtype)) lp_infer_learn(c->m, out);
    return;
  }
  out->known = known_of(c, count);
  out->known_count = out->known ? (int32_t)count : 0;
  if (!out->known && !lp_dtype_is_float(out->type.dtype)) lp_infer_learn(c->m, out);
}
