/* Builds operators in front of another one. */
#include "passes/build.h"
#include "base/poly.h"

static const char *const layer_attrs[] = {"layer", "layer_kind", "name"};

lp_build lp_build_at(lp_module *module, lp_op *before, lp_diag *diag) {
  return (lp_build){module, before, before->loc, diag};
}

static void insert(lp_build *b, lp_op *op) {
  for (size_t i = 0; i < LP_COUNT(layer_attrs); i++) {
    const lp_attr *attr = lp_op_attr(b->before, layer_attrs[i]);
    if (attr && !lp_op_has(op, LP_CONSTANT)) lp_op_set_attr(b->module, op, attr);
  }
  lp_op_insert_before(b->before, op);
}

lp_op *lp_build_typed(lp_build *b, lp_kind kind, int32_t in_count, lp_value *const *in, lp_type type) {
  lp_op *op = lp_op_create(b->module, kind, b->loc, in_count, in, 1, &type);
  insert(b, op);
  return op;
}

lp_status lp_build_place(lp_build *b, lp_op *op) {
  insert(b, op);
  return lp_op_infer(b->module, op, b->diag);
}

lp_op *lp_build_onnx(lp_build *b, lp_kind kind, int32_t in_count, lp_value *const *in, int32_t out_count) {
  lp_type unknown = {LP_F32, -1, NULL}, types[4] = {unknown, unknown, unknown, unknown};
  lp_op *op = lp_op_create(b->module, kind, b->loc, in_count, in, out_count, types);
  return lp_build_place(b, op) == LP_OK ? op : NULL;
}

lp_value *lp_build_cast(lp_build *b, lp_value *x, lp_dtype dtype) {
  lp_type unknown = {.rank = -1};
  if (!x || x->type.dtype == dtype) return x;
  lp_op *op = lp_op_create(b->module, LP_ONNX_Cast, b->loc, 1, &x, 1, &unknown);
  lp_op_set_i64(b->module, op, "to", lp_dtype_onnx(dtype));
  return lp_build_place(b, op) == LP_OK ? op->out[0] : NULL;
}

lp_value *lp_build_value(lp_build *b, lp_kind kind, int32_t in_count, lp_value *const *in) {
  for (int32_t i = 0; i < in_count; i++)
    if (!in[i]) return NULL;
  lp_op *op = lp_build_onnx(b, kind, in_count, in, 1);
  return op ? op->out[0] : NULL;
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

lp_value *lp_build_constant(lp_build *b, lp_dtype dtype, int32_t rank, const int64_t *dim, const void *data) {
  lp_tensor tensor = {.type = lp_type_static(b->module, dtype, rank, dim)};
  int64_t count = 1;
  for (int32_t i = 0; i < rank; i++)
    count *= dim[i];
  tensor.bytes = (size_t)count * (size_t)lp_dtype_bits(dtype) / 8;
  tensor.data = lp_arena_copy(b->module->arena, data, tensor.bytes);
  lp_op *op = lp_constant_create(b->module, b->loc, tensor);
  insert(b, op);
  return op->out[0];
}

lp_value *lp_build_float(lp_build *b, lp_dtype dtype, double value) {
  uint64_t room = 0; /* for a number of any type: a malformed model's mask may be of integers */
  lp_array number = {.dtype = dtype, .data = &room};
  lp_array_set_f64(&number, 0, value);
  return lp_build_constant(b, dtype, 0, NULL, &room);
}

lp_value *lp_build_f32(lp_build *b, double value) {
  return lp_build_float(b, LP_F32, value);
}

lp_value *lp_build_i64s(lp_build *b, const int64_t *values, int32_t count) {
  int64_t dim = count;
  lp_value *value = lp_build_constant(b, LP_I64, 1, &dim, values);
  const lp_poly **known = LP_NEW_ARRAY(b->module->arena, const lp_poly *, count);
  for (int32_t i = 0; i < count; i++)
    known[i] = lp_dim_const(b->module, values[i]);
  value->known = known;
  value->known_count = count;
  return value;
}

static lp_value *dims(lp_build *b, int32_t rank, int64_t count, const lp_poly *const *values) {
  lp_op *op = lp_build_typed(b, LP_OP_DIMS, 0, NULL, lp_type_static(b->module, LP_I64, rank, &count));
  lp_op_set_polys(b->module, op, "values", values, (int32_t)count);
  op->out[0]->known = lp_op_attr(op, "values")->polys;
  op->out[0]->known_count = (int32_t)count;
  return op->out[0];
}

lp_value *lp_build_size(lp_build *b, const lp_poly *size) {
  return dims(b, 0, 1, &size);
}

lp_value *lp_build_sizes(lp_build *b, lp_type type) {
  return dims(b, 1, type.rank, type.dim);
}

lp_value *lp_build_reshaped_constant(lp_build *b, lp_value *value, lp_type type) {
  if (lp_type_equal(value->type, type)) return value;
  if (!lp_value_is_constant(value)) return NULL;
  lp_op *copy = lp_op_clone(b->module, value->def, NULL, NULL);
  copy->out[0]->type = type;
  lp_tensor tensor;
  if (lp_value_constant(value, &tensor)) {
    tensor.type = type;
    lp_op_set_tensor(b->module, copy, "value", tensor);
  }
  insert(b, copy);
  return copy->out[0];
}

const lp_value *lp_weight_source(const lp_value *value) {
  for (int depth = 0; value && value->def && depth < 8; depth++) {
    const lp_op *op = value->def;
    if (lp_op_has(op, LP_CONSTANT)) return value->type.rank == 2 ? value : NULL;
    bool forms = op->kind == LP_ONNX_Transpose || op->kind == LP_ONNX_Cast || op->kind == LP_ONNX_Slice ||
                 op->kind == LP_ONNX_DequantizeLinear;
    if (!forms || op->out[0]->type.rank != 2) return NULL;
    value = lp_op_in(op, 0);
  }
  return NULL;
}

bool lp_scalar_constant(const lp_value *value, double *out) {
  lp_tensor tensor;
  int64_t count;
  if (!lp_value_constant(value, &tensor) || !lp_type_static_numel(tensor.type, &count) || count != 1) return false;
  *out = lp_tensor_f64(&tensor, 0);
  return true;
}

bool lp_known_i64(const lp_value *value, int32_t index, int64_t *out) {
  return value && value->known && index < value->known_count && lp_poly_is_const(value->known[index], out);
}

void lp_build_remove_dead(lp_block *block) {
  for (lp_op *op = block->last, *prev; op; op = prev) {
    prev = op->prev;
    bool used = !lp_op_has(op, LP_PURE) || lp_op_has(op, LP_TERMINATOR);
    for (int32_t i = 0; i < op->out_count; i++)
      used |= op->out[i]->uses != NULL;
    if (!used) lp_op_erase(op);
  }
}

/* ---- op.* forms -------------------------------------------------------------------------------------------------- */

lp_value *lp_build_map(lp_build *b, const char *fn, int32_t in_count, lp_value *const *in, lp_type type) {
  lp_op *op = lp_build_typed(b, LP_OP_MAP, in_count, in, type);
  lp_op_set_str(b->module, op, "fn", fn);
  return op->out[0];
}

lp_value *lp_build_map1(lp_build *b, const char *fn, lp_value *x, lp_dtype dtype) {
  return lp_build_map(b, fn, 1, &x, lp_type_with_dtype(x->type, dtype));
}

lp_value *lp_build_map2(lp_build *b, const char *fn, lp_value *x, lp_value *y, lp_dtype dtype) {
  lp_value *in[] = {x, y};
  return lp_build_map(b, fn, 2, in, lp_build_broadcast(b, x->type, y->type, dtype));
}

lp_value *lp_build_reshape(lp_build *b, lp_value *x, lp_type type) {
  type.dtype = x->type.dtype;
  if (lp_type_equal(x->type, type)) return x;
  lp_value *constant = lp_build_reshaped_constant(b, x, type);
  return constant ? constant : lp_build_typed(b, LP_OP_RESHAPE, 1, &x, type)->out[0];
}

/* Returns the type of x after a permutation of its axes. */
static lp_type permuted(lp_build *b, lp_type type, const int64_t *perm) {
  const lp_poly *dims[LP_MAX_RANK];
  for (int32_t i = 0; i < type.rank; i++)
    dims[i] = type.dim[perm[i]];
  return lp_type_make(b->module, type.dtype, type.rank, dims);
}

lp_value *lp_build_transpose(lp_build *b, lp_value *x, const int64_t *perm) {
  lp_op *op = lp_build_typed(b, LP_OP_TRANSPOSE, 1, &x, permuted(b, x->type, perm));
  lp_op_set_i64s(b->module, op, "perm", perm, x->type.rank);
  return op->out[0];
}

lp_type lp_build_broadcast(lp_build *b, lp_type x, lp_type y, lp_dtype dtype) {
  const lp_poly *dims[LP_MAX_RANK];
  int32_t rank = x.rank > y.rank ? x.rank : y.rank;
  for (int32_t i = 1; i <= rank; i++) {
    const lp_poly *dx = i <= x.rank ? x.dim[x.rank - i] : NULL, *dy = i <= y.rank ? y.dim[y.rank - i] : NULL;
    int64_t one;
    bool take_y = !dx || (dy && lp_poly_is_const(dx, &one) && one == 1);
    dims[rank - i] = take_y ? dy : dx;
  }
  return lp_type_make(b->module, dtype, rank, dims);
}
