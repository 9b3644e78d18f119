/* Reads the operators of all experts side by side: see lanes.h. */
#include "frontend/onnx/lanes.h"
#include "base/poly.h"
#include "frontend/onnx/build.h"

enum { MOST_STEPS = 64, MOST_SHARED = 64 };

/* ---- values of all experts --------------------------------------------------------------------------------------- */

static lp_value **operands(const lp_lanes *m, lp_value *const *each, int32_t index) {
  lp_value **in = LP_NEW_ARRAY(m->im->scratch, lp_value *, m->experts);
  for (int64_t e = 0; e < m->experts; e++)
    in[e] = lp_op_in(each[e]->def, index);
  return in;
}

/* Tells whether two values, which depend on no rows, are computed in the same way. Looks at `*left` values. */
static bool is_same(const lp_value *a, const lp_value *b, int *left) {
  if (a == b) return true;
  if (!a || !b || !a->def || !b->def || --*left < 0) return false;
  const lp_op *x = a->def, *y = b->def;
  if (x->kind != y->kind || a->index != b->index || x->in_count != y->in_count || !lp_op_has(x, LP_PURE) ||
      !lp_type_equal(a->type, b->type) || !lp_op_same_attrs(x, y))
    return false;
  for (int32_t i = 0; i < x->in_count; i++)
    if (!is_same(lp_op_in(x, i), lp_op_in(y, i), left)) return false;
  return true;
}

/* Returns the value that all experts share, or NULL. */
static lp_value *shared(const lp_lanes *m, lp_value *const *each) {
  if (!each[0] || lp_rows_in(each[0], m->lane[0].rows)) return NULL;
  for (int64_t e = 1; e < m->experts; e++) {
    int left = MOST_SHARED;
    if (!each[e] || lp_rows_in(each[e], m->lane[e].rows) || !is_same(each[0], each[e], &left)) return NULL;
  }
  return each[0];
}

/* Tells whether the operators that made the values are of one form, each between its own NonZero and sum. */
static bool are_alike(const lp_lanes *m, lp_value *const *each) {
  const lp_value *first = each[0];
  for (int64_t e = 0; e < m->experts; e++) {
    const lp_value *v = each[e];
    if (!v || !v->def || v->def->scratch != &m->lane[e] || lp_rows_axis(v, m->lane[e].rows) < 0) return false;
    if (v->def->kind != first->def->kind || v->index != first->index || v->def->in_count != first->def->in_count ||
        v->def->out_count != first->def->out_count || !lp_type_equal(v->type, first->type) ||
        !lp_op_same_attrs(v->def, first->def))
      return false;
  }
  return true;
}

/* The number of elements of a row, if they lie along one axis, `*axis`; 0: they do not. */
static int64_t features(const lp_value *value, int32_t row_axis, int32_t *axis) {
  int64_t size, count = 1;
  *axis = -1;
  for (int32_t i = 0; i < value->type.rank; i++) {
    if (i == row_axis) continue;
    if (!lp_type_static_dim(value->type, i, &size) || (size != 1 && *axis >= 0)) return 0;
    if (size == 1) continue;
    *axis = i;
    count = size;
  }
  return count;
}

static int64_t row_features(const lp_lanes *m, const lp_value *value, int32_t *axis) {
  return features(value, lp_rows_axis(value, m->lane[0].rows), axis);
}

/* Tells whether the row's elements lie along the last axis, so that operators align them alike in both forms. */
static bool is_row_major(const lp_lanes *m, const lp_value *value) {
  int32_t axis;
  return row_features(m, value, &axis) > 0 && (axis < 0 || axis == value->type.rank - 1);
}

static lp_value *finish(lp_lanes *m, lp_value *const *each, lp_value *all) {
  lp_value **copy = LP_NEW_ARRAY(m->im->scratch, lp_value *, m->experts);
  memcpy(copy, each, (size_t)m->experts * sizeof *copy);
  lp_vec_push(&m->done, ((lp_lanes_value){copy, all}));
  return all;
}

/* ---- building: NULL where an operand is NULL or has no such type ------------------------------------------------- */

static lp_value *place(lp_lanes *m, lp_op *op) {
  lp_op_insert_before(m->where, op);
  lp_vec_push(&m->built, op);
  m->im->node_count++;
  return lp_op_infer(m->im->module, op, NULL) == LP_OK ? op->out[0] : NULL;
}

lp_value *lp_lanes_make(lp_lanes *m, lp_kind kind, lp_value *x, lp_value *y, const char *attr, int64_t number) {
  lp_value *in[] = {x, y};
  if (!x || !y) return NULL;
  lp_op *op = lp_op_create(m->im->module, kind, m->loc, 2, in, 1, &(lp_type){.rank = -1});
  if (attr) lp_op_set_i64(m->im->module, op, attr, number);
  return place(m, op);
}

lp_value *lp_lanes_ints(lp_lanes *m, int32_t count, const int64_t *values) {
  const size_t bytes = (size_t)count * sizeof *values;
  int64_t size = count, *copy = lp_arena_alloc(m->im->module->arena, bytes);
  memcpy(copy, values, bytes);
  lp_type type = lp_type_static(m->im->module, LP_I64, 1, &size);
  return place(m, lp_constant_create(m->im->module, m->loc, (lp_tensor){type, copy, bytes}));
}
/* The operator that made `like`, with other operands. */
static lp_op *copy_of(lp_lanes *m, const lp_value *like, lp_value *const *in) {
  const lp_op *op = like->def;
  lp_type *types = LP_NEW_ARRAY(m->im->scratch, lp_type, op->out_count);
  for (int32_t i = 0; i < op->out_count; i++)
    types[i] = (lp_type){.rank = -1};
  lp_op *copy = lp_op_create(m->im->module, op->kind, op->loc, op->in_count, in, op->out_count, types);
  for (int32_t i = 0; i < op->attr_count; i++)
    if (!lp_streq(op->attr[i].name, "operand_mask")) lp_op_set_attr(m->im->module, copy, &op->attr[i]);
  return copy;
}

/* ---- where rows come from: the tokens, and what the router gave them --------------------------------------------- */

static bool are_tokens(const lp_lanes *m, lp_value *const *index) {
  for (int64_t e = 0; e < m->experts; e++)
    if (!lp_bound_is_token(&m->lane[e], index[e])) return false;
  return true;
}

static bool are_choices(const lp_lanes *m, lp_value *const *index) {
  for (int64_t e = 0; e < m->experts; e++)
    if (lp_bound_place(index[e]).coordinate != 1 - m->lane[e].token_axis) return false;
  return true;
}

/* Rows of a value that counts the tokens along `axis`, as [tokens][1][features]. */
static lp_value *tokens_of(lp_lanes *m, lp_value *data, int32_t axis) {
  int32_t last;
  int64_t count =
      axis < data->type.rank && lp_poly_equal(data->type.dim[axis], m->tokens) ? features(data, axis, &last) : 0;
  return count > 0 && last < axis && last >= 0 ? NULL
         : count > 0 ? lp_lanes_make(m, LP_ONNX_Reshape, data, LP_LANES_INTS(m, -1, 1, count), NULL, 0)
                     : NULL;
}

/* One number for each token and choice, token by token, as [tokens][choices][1]. */
static lp_value *choices_of(lp_lanes *m, lp_value *data) {
  int64_t choices, size;
  const lp_poly *all = lp_poly_mul(m->im->module->arena, m->tokens, m->choices);
  bool flat = data->type.rank > 0 && lp_poly_equal(data->type.dim[0], all);
  bool apart = data->type.rank > 1 && lp_poly_equal(data->type.dim[0], m->tokens) &&
               lp_poly_equal(data->type.dim[1], m->choices);
  if ((!flat && !apart) || !lp_poly_is_const(m->choices, &choices)) return NULL;
  for (int32_t i = flat ? 1 : 2; i < data->type.rank; i++)
    if (!lp_type_static_dim(data->type, i, &size) || size != 1) return NULL;
  return lp_lanes_make(m, LP_ONNX_Reshape, data, LP_LANES_INTS(m, -1, choices, 1), NULL, 0);
}

/* Tells whether each index is the choice + the token * the number of choices. */
static bool are_flat_choices(const lp_lanes *m, lp_value *const *index) {
  for (int64_t e = 0; e < m->experts; e++)
    if (!index[e] || !lp_bound_choice_in(&m->lane[e], index[e], m->choices)) return false;
  return true;
}

static lp_value *from_gather(lp_lanes *m, lp_value *const *each) {
  lp_value **index = operands(m, each, 1), *data = shared(m, operands(m, each, 0));
  int64_t axis = lp_op_i64(each[0]->def, "axis", 0);
  if (!data || index[0]->type.rank != 1) return NULL;
  if (axis < 0) axis += data->type.rank;
  if (are_tokens(m, index)) return tokens_of(m, data, (int32_t)axis);
  return axis == 0 && are_flat_choices(m, index) ? choices_of(m, data) : NULL;
}

/* Of rows [tokens][1][choices], the element of each choice. */
static lp_value *from_gather_elements(lp_lanes *m, lp_value *const *each) {
  const lp_value *data = lp_op_in(each[0]->def, 0);
  int64_t axis = lp_op_i64(each[0]->def, "axis", 0), choices;
  if (data->type.rank != 2 || axis == 0 || !are_choices(m, operands(m, each, 1))) return NULL;
  lp_value *all = lp_lanes_all(m, operands(m, each, 0));
  if (!all || !lp_poly_equal(all->type.dim[0], m->tokens) || !lp_poly_equal(all->type.dim[2], m->choices) ||
      !lp_poly_is_const(m->choices, &choices))
    return NULL;
  return lp_lanes_make(m, LP_ONNX_Reshape, all, LP_LANES_INTS(m, -1, choices, 1), NULL, 0);
}

/* Tells whether each index [rows][2] holds the token and the choice, in this order. */
static bool are_pairs(const lp_lanes *m, lp_value *const *index) {
  const lp_op *op = index[0]->def;
  if (!lp_op_is(op, LP_ONNX_Concat)) {
    for (int64_t e = 0; e < m->experts; e++)
      if (lp_bound_place(index[e]).matrix_axis != 1 || m->lane[e].token_axis != 0) return false;
    return true;
  }
  return are_alike(m, index) && op->in_count == 2 && are_tokens(m, operands(m, index, 0)) &&
         are_choices(m, operands(m, index, 1));
}

static lp_value *from_gather_nd(lp_lanes *m, lp_value *const *each) {
  lp_value **index = operands(m, each, 1), *data = shared(m, operands(m, each, 0));
  int64_t width;
  if (!data || lp_op_i64(each[0]->def, "batch_dims", 0) != 0 || index[0]->type.rank != 2 ||
      !lp_type_static_dim(index[0]->type, 1, &width))
    return NULL;
  if (width == 1 && are_tokens(m, index)) return tokens_of(m, data, 0);
  return width == 2 && data->type.rank > 1 && lp_poly_equal(data->type.dim[0], m->tokens) && are_pairs(m, index)
             ? choices_of(m, data)
             : NULL;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* The constants of all experts as one, through the Transposes and Casts that read them. `turned`: their transposes are
 * stacked. */
static lp_value *stacked(lp_lanes *m, lp_value **each, bool turned) {
  lp_dtype cast = LP_DTYPE_COUNT;
  for (const lp_op *op; each[0] && (op = each[0]->def) && !lp_op_has(op, LP_CONSTANT); each = operands(m, each, 0)) {
    const lp_attr *perm = lp_op_attr(op, "perm");
    bool transposes = op->kind == LP_ONNX_Transpose && op->out[0]->type.rank == 2 && (!perm || perm->is[0] == 1);
    if (!transposes && op->kind != LP_ONNX_Cast && op->kind != LP_ONNX_Identity) return NULL;
    if (op->kind == LP_ONNX_Cast && cast == LP_DTYPE_COUNT) cast = each[0]->type.dtype;
    turned ^= transposes;
    for (int64_t e = 1; e < m->experts; e++)
      if (!each[e] || !each[e]->def || each[e]->def->kind != op->kind || !lp_op_same_attrs(each[e]->def, op))
        return NULL;
  }
  for (int64_t e = 0; e < m->experts; e++)
    if (!each[e] || !lp_value_is_constant(each[e])) return NULL;
  lp_op *op = lp_constant_stack(m->im->module, m->loc, m->experts, each, m->experts, turned);
  if (!op) return NULL;
  lp_value *all = place(m, op);
  if (!all) return NULL;
  all->name = each[0]->name;
  if (cast == LP_DTYPE_COUNT) return all;
  lp_op *wide = lp_op_create(m->im->module, LP_ONNX_Cast, m->loc, 1, &all, 1, &(lp_type){.rank = -1});
  lp_op_set_i64(m->im->module, wide, "to", lp_dtype_onnx(cast));
  return place(m, wide);
}

/* The rows x times their experts' matrices, one after the other in `weight`. */
static lp_value *product_of(lp_lanes *m, lp_loc loc, lp_value *x, lp_value *weight) {
  lp_value *in[] = {x, m->index, weight};
  if (!weight) return NULL;
  lp_op *op = lp_op_create(m->im->module, LP_ONNX_Experts, loc, 3, in, 1, &(lp_type){.rank = -1});
  lp_op_set_i64(m->im->module, op, "experts", m->experts);
  return place(m, op);
}

static lp_value *product(lp_lanes *m, lp_value *const *each, bool turned) {
  lp_value **weight = operands(m, each, 1), *x = lp_lanes_all(m, operands(m, each, 0)), *w;
  if (!x || !weight[0] || weight[0]->type.rank != 2 || !is_row_major(m, each[0])) return NULL;
  if (lp_rows_in(weight[0], m->lane[0].rows) || !(w = stacked(m, weight, turned))) return NULL;
  return product_of(m, each[0]->def->loc, x, w);
}

/* A vector of each expert, as the rows [tokens][choices][features] of a table. */
static lp_value *vectors(lp_lanes *m, lp_value **each) {
  if (!each[0] || each[0]->type.rank != 1) return NULL;
  lp_value *table = stacked(m, each, false);
  return table ? lp_lanes_make(m, LP_ONNX_Gather, table, m->index, "axis", 0) : NULL;
}

/* One matrix of this type from the constants of all experts: `rows` rows of each, one expert after the other. */
static lp_value *matrix_of(lp_lanes *m, lp_value **each, lp_dtype dtype, int64_t rows, int64_t columns) {
  lp_module *module = m->im->module;
  int64_t count, own, dim[2] = {0, columns};
  for (int64_t e = 0; e < m->experts; e++)
    if (!each[e] || !lp_value_is_constant(each[e])) return NULL;
  lp_op *op = lp_constant_stack(module, m->loc, m->experts, each, m->experts, false);
  if (!op || !lp_i64_mul(m->experts, rows, &dim[0]) || !lp_type_static_numel(op->out[0]->type, &own)) return NULL;
  const lp_type type = lp_type_static(module, dtype, 2, dim);
  if (!lp_type_static_numel(type, &count) || !lp_i64_mul(count, lp_dtype_bits(dtype), &count) ||
      count != own * lp_dtype_bits(op->out[0]->type.dtype))
    return NULL;
  op->out[0]->type = type;
  if (op->kind == LP_OP_WEIGHT) return place(m, op);
  lp_tensor tensor = lp_op_attr(op, "value")->tensor;
  tensor.type = type;
  return place(m, lp_constant_create(module, m->loc, tensor));
}

/* A product with weights that are packed in blocks of codes, with a scale and perhaps a zero point each. Zero points of
 * a row that end within a byte are left alone. */
static lp_value *from_packed(lp_lanes *m, lp_value *const *each) {
  const lp_op *op = each[0]->def;
  lp_module *module = m->im->module;
  const int64_t rows = lp_op_i64(op, "N", 0), columns = lp_op_i64(op, "K", 0), block = lp_op_i64(op, "block_size", 0);
  const int64_t bits = lp_op_i64(op, "bits", 4);
  const lp_dtype codes = bits == 2 ? LP_U2 : bits == 4 ? LP_U4 : LP_U8;
  const lp_value *scale = lp_op_in(op, 2), *zero = lp_op_in(op, 3);
  const uint8_t middle = (uint8_t)(1 << (lp_dtype_bits(codes) - 1));
  if (rows < 1 || columns < 1 || block < 1 || columns > INT64_MAX - block || lp_dtype_bits(codes) != bits ||
      lp_op_in(op, 4) || lp_op_i64(op, "weight_prepacked", 0) != 0 || !is_row_major(m, each[0]) ||
      scale->type.dtype != lp_op_in(op, 0)->type.dtype)
    return NULL;
  const int64_t blocks = (columns + block - 1) / block;
  lp_value *x = lp_lanes_all(m, operands(m, each, 0)), *in[3] = {NULL};
  if (!x) return NULL;
  in[0] = matrix_of(m, operands(m, each, 1), codes, rows, blocks * block);
  in[1] = matrix_of(m, operands(m, each, 2), scale->type.dtype, rows, blocks);
  if (zero)
    in[2] = matrix_of(m, operands(m, each, 3), zero->type.dtype == LP_U8 ? codes : zero->type.dtype, rows, blocks);
  else
    in[2] = place(m, lp_constant_create(module, m->loc,
                                        (lp_tensor){lp_type_static(module, LP_U8, 0, NULL),
                                                    lp_arena_copy(module->arena, &middle, 1), 1}));
  if (!in[0] || !in[1] || !in[2]) return NULL;
  lp_op *real = lp_op_create(module, LP_ONNX_DequantizeLinear, op->loc, 3, in, 1, &(lp_type){.rank = -1});
  lp_op_set_i64(module, real, "axis", 1);
  lp_op_set_i64(module, real, "block_size", block);
  lp_value *weight = place(m, real);
  if (columns != blocks * block && weight) {
    lp_value *cut[] = {weight, LP_LANES_INTS(m, 0), LP_LANES_INTS(m, columns), LP_LANES_INTS(m, 1)};
    weight = place(m, lp_op_create(module, LP_ONNX_Slice, op->loc, 4, cut, 1, &(lp_type){.rank = -1}));
  }
  lp_value *y = product_of(m, op->loc, x, weight);
  return y && lp_op_in(op, 5) ? lp_lanes_make(m, LP_ONNX_Add, y, vectors(m, operands(m, each, 5)), NULL, 0) : y;
}

static lp_value *from_gemm(lp_lanes *m, lp_value *const *each) {
  const lp_op *op = each[0]->def;
  if (lp_op_f64(op, "alpha", 1) != 1 || lp_op_f64(op, "beta", 1) != 1 || lp_op_i64(op, "transA", 0)) return NULL;
  lp_value *y = product(m, each, !lp_op_i64(op, "transB", 0));
  return y && lp_op_in(op, 2) ? lp_lanes_make(m, LP_ONNX_Add, y, vectors(m, operands(m, each, 2)), NULL, 0) : y;
}

/* ---- other operators --------------------------------------------------------------------------------------------- */

/* An operand of an elementwise operator: rows, or constants that are aligned with the features of rows. */
static lp_value *aligned(lp_lanes *m, lp_value **each) {
  int32_t axis;
  if (lp_rows_in_shape(each[0], m->lane[0].rows)) return is_row_major(m, each[0]) ? lp_lanes_all(m, each) : NULL;
  lp_value *one = shared(m, each);
  if (!one) return vectors(m, each);
  if (features(one, -1, &axis) == 0 || (axis >= 0 && axis != one->type.rank - 1) || one->type.rank > 3) return NULL;
  return one;
}

static lp_value *from_elements(lp_lanes *m, lp_value *const *each) {
  lp_value *in[LP_MAX_RANK] = {0};
  const lp_op *op = each[0]->def;
  if (op->in_count > LP_MAX_RANK || op->out_count != 1) return NULL;
  for (int32_t i = 0; i < op->in_count; i++) {
    if (!lp_op_in(op, i)) continue;
    lp_value **own = operands(m, each, i);
    for (int64_t e = 0; e < m->experts; e++)
      if (!own[e]) return NULL;
    in[i] = aligned(m, own);
    if (!in[i]) return NULL;
  }
  return place(m, copy_of(m, each[0], in));
}

/* An operator that moves axes of size 1 only. */
static lp_value *from_shape(lp_lanes *m, lp_value *const *each) {
  int32_t axis;
  const lp_value *x = lp_op_in(each[0]->def, 0);
  if (!lp_rows_in_shape(x, m->lane[0].rows)) return NULL;
  int64_t before = row_features(m, x, &axis), after = row_features(m, each[0], &axis);
  return before > 0 && before == after ? lp_lanes_all(m, operands(m, each, 0)) : NULL;
}

/* A Split or Slice of the features. */
static lp_value *from_part(lp_lanes *m, lp_value *const *each) {
  const lp_op *op = each[0]->def;
  const lp_value *x = lp_op_in(op, 0);
  int64_t named = lp_op_i64(op, "axis", 0);
  lp_value *in[5] = {0};
  if (op->in_count > 5 || !is_row_major(m, x)) return NULL;
  if (op->kind == LP_ONNX_Slice && (!lp_op_in(op, 3) || !lp_import_number(lp_op_in(op, 3), &named))) return NULL;
  if ((named < 0 ? named + x->type.rank : named) != x->type.rank - 1) return NULL;
  for (int32_t i = 1; i < op->in_count; i++)
    if (lp_op_in(op, i) && !(in[i] = shared(m, operands(m, each, i)))) return NULL;
  in[0] = lp_lanes_all(m, operands(m, each, 0));
  if (op->kind == LP_ONNX_Slice) in[3] = LP_LANES_INTS(m, -1);
  if (!in[0]) return NULL;
  lp_op *copy = copy_of(m, each[0], in);
  if (op->kind == LP_ONNX_Split) lp_op_set_i64(m->im->module, copy, "axis", -1);
  if (!place(m, copy)) return NULL;
  for (int32_t k = 0; k < op->out_count; k++) {
    lp_value **out = LP_NEW_ARRAY(m->im->scratch, lp_value *, m->experts);
    for (int64_t e = 0; e < m->experts; e++)
      out[e] = each[e]->def->out[k];
    if (op->out[k] != each[0]) finish(m, out, copy->out[k]);
  }
  return copy->out[each[0]->index];
}

static lp_value *from_operator(lp_lanes *m, lp_value *const *each) {
  switch (each[0]->def->kind) {
  case LP_ONNX_Gather:
    return from_gather(m, each);
  case LP_ONNX_GatherElements:
    return from_gather_elements(m, each);
  case LP_ONNX_GatherND:
    return from_gather_nd(m, each);
  case LP_ONNX_MatMul:
    return product(m, each, true);
  case LP_ONNX_Gemm:
    return from_gemm(m, each);
  case LP_ONNX_MsMatMulNBits:
    return from_packed(m, each);
  case LP_ONNX_Identity:
  case LP_ONNX_Reshape:
  case LP_ONNX_Flatten:
  case LP_ONNX_Transpose:
  case LP_ONNX_Squeeze:
  case LP_ONNX_Unsqueeze:
  case LP_ONNX_Expand:
    return from_shape(m, each);
  case LP_ONNX_Split:
  case LP_ONNX_Slice:
    return from_part(m, each);
  default:
    return lp_op_has(each[0]->def, LP_ELEMENTWISE) ? from_elements(m, each) : NULL;
  }
}

/* The value [tokens][choices or 1][features] of the rows of all experts, or NULL. */
lp_value *lp_lanes_all(lp_lanes *m, lp_value *const *each) {
  for (size_t i = 0; i < m->done.count; i++)
    if (m->done.data[i].each[0] == each[0])
      return memcmp(m->done.data[i].each, each, (size_t)m->experts * sizeof *each) == 0 ? m->done.data[i].all : NULL;
  if (m->depth > MOST_STEPS || !each[0] || !each[0]->def || !are_alike(m, each)) return NULL;
  m->depth++;
  lp_value *all = from_operator(m, each);
  m->depth--;
  return all ? finish(m, each, all) : NULL;
}

void lp_lanes_undo(lp_lanes *m) {
  while (m->built.count > 0)
    lp_op_erase(m->built.data[--m->built.count]);
}

void lp_lanes_release(lp_lanes *m) {
  lp_vec_free(&m->done);
  lp_vec_free(&m->built);
}
