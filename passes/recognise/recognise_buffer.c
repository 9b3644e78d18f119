/* Removes the zeros with which bind-inputs fills buffers of constant length after their past rows (bind_buffer.c).
 * Attention then reads the past and the new rows only, as with a cache that grows. That is right where the graph writes
 * the new rows at positions p .. p + s - 1, and a mask hides all later positions; both are proved by evaluation at
 * several sizes. A model with a buffer for which they are not is refused. */
#include "base/poly.h"
#include "passes/recognise/recognise.h"

typedef struct {
  lp_module *module;
  lp_block *block;
  lp_diag *diag;
  const lp_poly *past, *total;
  const char *reason; /* why a proof failed; NULL: none did */
} cutter;

/* ---- evaluation at several sizes --------------------------------------------------------------------------------- */

typedef bool proof(const lp_array *array, int32_t axis, int64_t p, int64_t s);

/* Tells whether the proof holds at every size b, s, p whose positions fit in `length` rows. */
static bool holds(const cutter *c, lp_value *value, int32_t axis, int64_t length, proof *is_proved) {
  const int64_t sizes[][3] = {{1, 1, 0}, {2, 3, 0}, {1, 1, 1},          {1, 2, 5},         {2, 3, 4},
                              {2, 7, 2}, {1, 1, 9}, {1, 1, length - 1}, {1, length, 0},    {3, 2, length - 2},
                              {1, 4, 8}, {1, 5, 1}, {2, length / 2, 1}, {1, 1, length / 2}};
  size_t count = c->module->symbols.names.count, evaluated = 0;
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  int64_t *sym = LP_NEW_ARRAY(arena, int64_t, count);
  bool good = lp_match_input_free(value);
  for (size_t i = 0; i < LP_COUNT(sizes) && good; i++) {
    int64_t s = sizes[i][1], p = sizes[i][2];
    if (s < 1 || p < 0 || p + s > length) continue;
    for (size_t n = 0; n < count; n++)
      sym[n] = 1 + (int64_t)((7 * i + 5 * n) % 9); /* other symbols vary too */
    memcpy(sym, sizes[i], sizeof sizes[i]);
    lp_array array;
    good = lp_value_eval(c->module, value, NULL, 0, sym, arena, &array, NULL) == LP_OK && is_proved(&array, axis, p, s);
    evaluated++;
  }
  return good && evaluated > 0;
}

/* Index j along the axis is p + j. */
static bool follows_past(const lp_array *index, int32_t axis, int64_t p, int64_t s) {
  lp_tensor tensor = {.type = {index->dtype, 0, NULL}, .data = index->data};
  int64_t inner = 1;
  for (int32_t i = axis + 1; i < index->rank; i++)
    inner *= index->dim[i];
  for (int64_t i = 0; i < lp_array_numel(index); i++)
    if (lp_tensor_i64(&tensor, i) != p + i / inner % s) return false;
  return index->dim[axis] == s;
}

/* Every row hides the columns from p + s on, and shows one before them. */
static bool hides_rest(const lp_array *mask, int32_t axis, int64_t p, int64_t s) {
  int64_t columns = mask->dim[axis], shown = 0;
  for (int64_t i = 0; i < lp_array_numel(mask); i++) {
    bool shows = lp_match_mask_element(mask, i) > -1e4;
    if (i % columns == 0) shown = 0;
    if (shows && i % columns >= p + s) return false;
    shown += shows;
    if (i % columns == columns - 1 && shown == 0) return false;
  }
  return columns >= p + s;
}

/* ---- written buffers --------------------------------------------------------------------------------------------- */

static const lp_attr *permutation(const lp_value *value) {
  return lp_op_is(value->def, LP_ONNX_Transpose) ? lp_op_attr(value->def, "perm") : NULL;
}

/* Tells whether the value is a past that zeros fill to a constant length. */
static bool is_padded(const cutter *c, const lp_value *value) {
  const lp_op *op = value->def;
  const lp_value *past = lp_op_is(op, LP_ONNX_Concat) && op->in_count == 2 ? lp_op_in(op, 0) : NULL;
  int64_t axis = op && past ? lp_op_i64(op, "axis", 0) : 0;
  return past && !past->def && past->block == c->block && axis > 0 && lp_poly_equal(past->type.dim[axis], c->past) &&
         lp_poly_is_const(value->type.dim[axis], NULL);
}

static lp_value *transposed(lp_build *b, lp_value *x, const lp_attr *perm, bool back) {
  lp_type unknown = {.rank = -1};
  int64_t order[LP_MAX_RANK];
  for (int32_t i = 0; x && i < perm->count; i++)
    order[back ? perm->is[i] : i] = back ? i : perm->is[i];
  if (!x) return NULL;
  lp_op *op = lp_op_create(b->module, LP_ONNX_Transpose, b->loc, 1, &x, 1, &unknown);
  lp_op_set_i64s(b->module, op, "perm", order, perm->count);
  return lp_build_place(b, op) == LP_OK ? op->out[0] : NULL;
}

/* The past and `rows` after it, in the order of axes that `data` has; NULL: data is no padded past. */
static lp_value *joined(cutter *c, lp_build *b, lp_value *data, lp_value *rows, int32_t axis) {
  const lp_attr *perm = permutation(data);
  lp_type unknown = {.rank = -1};
  if (perm) {
    lp_value *x = joined(c, b, lp_op_in(data->def, 0), transposed(b, rows, perm, true), (int32_t)perm->is[axis]);
    return x ? transposed(b, x, perm, false) : NULL;
  }
  if (!rows || !is_padded(c, data) || lp_op_i64(data->def, "axis", 0) != axis) return NULL;
  lp_value *parts[] = {lp_op_in(data->def, 0), rows};
  lp_op *op = lp_op_create(b->module, LP_ONNX_Concat, b->loc, 2, parts, 1, &unknown);
  lp_op_set_i64(b->module, op, "axis", axis);
  return lp_build_place(b, op) == LP_OK ? op->out[0] : NULL;
}

static bool leads_to_padded(const cutter *c, const lp_value *value) {
  while (permutation(value))
    value = lp_op_in(value->def, 0);
  return is_padded(c, value);
}

/* The written rows of the scatter's result; NULL when it writes elsewhere. */
static lp_value *written(cutter *c, lp_build *b, const lp_op *scatter, int32_t axis) {
  lp_value *data = lp_op_in(scatter, 0), *index = lp_op_in(scatter, 1);
  int64_t length, along = scatter->kind == LP_ONNX_ScatterND ? 0 : lp_op_i64(scatter, "axis", 0);
  if (along < 0) along += data->type.rank;
  if (!leads_to_padded(c, data) || along != axis || !lp_type_static_dim(data->type, axis, &length)) return NULL;
  if (holds(c, index, axis, length, follows_past)) return joined(c, b, data, lp_op_in(scatter, 2), axis);
  c->reason = "it is not proved to write the new rows after the past ones";
  return NULL;
}

/* ---- the first p + s rows of a value ----------------------------------------------------------------------------- */

/* The axis of the operand that is axis `axis` of the result, where the sizes before both are equally many; -1: none. */
static int32_t axis_before(const lp_op *op, int32_t axis) {
  lp_type from = lp_op_in(op, 0)->type, to = op->out[0]->type;
  lp_arena *arena = op->block->module->arena;
  const lp_poly *wanted = lp_poly_const(arena, 1), *ahead = wanted;
  if (op->kind == LP_ONNX_Expand) {
    int32_t at = axis - to.rank + from.rank;
    return at >= 0 && lp_poly_equal(from.dim[at], to.dim[axis]) ? at : -1;
  }
  for (int32_t i = 0; i < axis; i++)
    wanted = lp_poly_mul(arena, wanted, to.dim[i]);
  for (int32_t i = 0; i < from.rank; i++) {
    if (lp_poly_equal(ahead, wanted) && lp_poly_equal(from.dim[i], to.dim[axis])) return i;
    ahead = lp_poly_mul(arena, ahead, from.dim[i]);
  }
  return -1;
}

static lp_value *cut(cutter *c, lp_build *b, lp_value *value, int32_t axis);

static lp_value *cut_reshaped(cutter *c, lp_build *b, const lp_op *op, int32_t axis) {
  int32_t before = axis_before(op, axis);
  lp_value *x = before >= 0 ? cut(c, b, lp_op_in(op, 0), before) : NULL;
  const lp_poly *dims[LP_MAX_RANK];
  lp_type type = op->out[0]->type;
  for (int32_t i = 0; i < type.rank; i++)
    dims[i] = i == axis ? c->total : type.dim[i];
  if (!x) return NULL;
  lp_value *in[] = {x, lp_build_sizes(b, lp_type_make(b->module, type.dtype, type.rank, dims))};
  return lp_build_value(b, op->kind == LP_ONNX_Expand ? LP_ONNX_Expand : LP_ONNX_Reshape, 2, in);
}

/* The value without the rows of a buffer after p + s on its axis; NULL when no buffer is found. */
static lp_value *cut(cutter *c, lp_build *b, lp_value *value, int32_t axis) {
  const lp_op *op = value->def;
  const lp_attr *perm = op ? permutation(value) : NULL;
  lp_value *x;
  if (!op) return NULL;
  switch (op->kind) {
  case LP_ONNX_ScatterElements:
  case LP_ONNX_ScatterND:
    return written(c, b, op, axis);
  case LP_ONNX_Transpose:
    x = perm ? cut(c, b, lp_op_in(op, 0), (int32_t)perm->is[axis]) : NULL;
    return x ? transposed(b, x, perm, false) : NULL;
  case LP_ONNX_Cast:
    return lp_build_cast(b, cut(c, b, lp_op_in(op, 0), axis), value->type.dtype);
  case LP_ONNX_Identity:
    return cut(c, b, lp_op_in(op, 0), axis);
  case LP_ONNX_Reshape:
  case LP_ONNX_Unsqueeze:
  case LP_ONNX_Squeeze:
  case LP_ONNX_Expand:
    return cut_reshaped(c, b, op, axis);
  default:
    return NULL;
  }
}

/* ---- readers ----------------------------------------------------------------------------------------------------- */

static lp_value *first_columns(cutter *c, lp_build *b, lp_value *mask) {
  static const int64_t start = 0, last = -1;
  lp_value *in[] = {mask, lp_build_i64s(b, &start, 1), lp_build_sizes(b, lp_type_make(b->module, LP_I64, 1, &c->total)),
                    lp_build_i64s(b, &last, 1)};
  return lp_build_value(b, LP_ONNX_Slice, 4, in);
}

static lp_status cut_attention(cutter *c, lp_op *op) {
  lp_build b = lp_build_at(c->module, op, c->diag);
  lp_value *k = lp_op_in(op, 1), *v = lp_op_in(op, 2), *mask = lp_op_in(op, 3);
  int64_t length, columns;
  if (lp_op_in(op, 4) || !lp_type_static_dim(k->type, k->type.rank - 2, &length)) return LP_OK;
  k = cut(c, &b, k, k->type.rank - 2);
  v = k ? cut(c, &b, v, v->type.rank - 2) : NULL;
  if (!v) return LP_OK;
  bool wide = mask && lp_type_static_dim(mask->type, -1, &columns) && columns == length;
  if (!wide || !holds(c, mask, mask->type.rank - 1, length, hides_rest)) {
    c->reason = "attention is not proved to hide its rows that are not written yet";
    return LP_OK;
  }
  mask = first_columns(c, &b, mask);
  if (!mask) return LP_FAILED;
  lp_op_set_in(op, 1, k);
  lp_op_set_in(op, 2, v);
  lp_op_set_in(op, 3, mask);
  return LP_OK;
}

/* A slice of the first p + s rows, as bind-inputs makes of a present. */
static void cut_slice(cutter *c, lp_op *op) {
  lp_build b = lp_build_at(c->module, op, c->diag);
  int64_t start, axis;
  const lp_value *ends = lp_op_in(op, 2), *axes = lp_op_in(op, 3);
  if (!axes || axes->known_count != 1 || !lp_known_i64(axes, 0, &axis) || !lp_known_i64(lp_op_in(op, 1), 0, &start))
    return;
  if (start != 0 || axis < 0 || ends->known_count != 1 || !lp_poly_equal(ends->known[0], c->total)) return;
  lp_value *rows = cut(c, &b, lp_op_in(op, 0), (int32_t)axis);
  if (rows) lp_value_replace(op->out[0], rows);
}

/* Tells whether only sizes of the value are asked for. */
static bool gives_sizes(const lp_value *value) {
  for (const lp_use *use = value->uses; use; use = use->next)
    if (use->owner->kind != LP_ONNX_Shape) return false;
  return true;
}

static lp_status check_none_left(const cutter *c, const lp_op *func) {
  const lp_attr *names = lp_op_attr(func, "inputs");
  LP_FOR_OPS(op, c->block) {
    if (op->out_count != 1 || !is_padded(c, op->out[0]) || gives_sizes(op->out[0])) continue;
    int32_t index = lp_op_in(op, 0)->index;
    lp_loc loc = {.file = op->loc.file, .node = names && index < names->count ? names->ss[index] : "", .op = "input"};
    return lp_error(c->diag, loc, "this cache is a buffer of constant length, and %s: a cache that grows is needed",
                    c->reason ? c->reason : "the graph reads its rows that are not written yet");
  }
  return LP_OK;
}

lp_status lp_recognise_buffers(lp_module *module, lp_block *block, lp_diag *diag) {
  const lp_poly *past = lp_dim_symbol(module, "p"), *fresh = lp_dim_symbol(module, "s");
  cutter c = {module, block, diag, past, lp_poly_add(module->arena, past, fresh), NULL};
  LP_FOR_OPS(op, block) {
    if (op->kind == LP_ONNX_Attention) LP_TRY(cut_attention(&c, op));
    if (op->kind == LP_ONNX_Slice) cut_slice(&c, op);
  }
  lp_build_remove_dead(block);
  return check_none_left(&c, lp_module_find_func(module, "main"));
}
