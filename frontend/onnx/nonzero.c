/* Bounds the number of rows of a NonZero. Exporters write a mixture of experts as follows: NonZero of an expert's mask
 * gives the tokens that chose it; a Gather takes their rows, the expert computes them, and a ScatterElements or
 * ScatterND adds the results at the tokens' places. This file rewrites the expert to compute every token. The sum then
 * takes 0 for a token that did not choose the expert. The number of rows becomes the number of tokens. The results are
 * the same if every operator from NonZero to the sum computes each row independently (rows.c), and each token occurs
 * once (experts.c). */
#include "frontend/onnx/bound.h"

void lp_nonzero_count(lp_importer *im, const lp_op *op) {
  lp_symbol rows = lp_symbols_find(&im->module->symbols, LP_ROWS_NAME);
  if (rows && op->kind == LP_ONNX_NonZero && lp_rows_axis(op->out[0], rows) == 1) im->unbounded++;
}

lp_type lp_nonzero_type(lp_importer *im, const lp_value *x) {
  lp_type type = {.dtype = LP_I64, .rank = -1};
  const lp_poly *dim[] = {lp_dim_const(im->module, x ? x->type.rank : 0), lp_dim_symbol(im->module, LP_ROWS_NAME)};
  return x && x->type.rank > 0 ? lp_type_make(im->module, LP_I64, 2, dim) : type;
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static lp_status refuse(const lp_bound *b) {
  const lp_value *x = lp_op_in(b->source, 0);
  lp_status status =
      lp_error(b->im->diag, b->source->loc,
               "its result's shape depends on the data of input 0 ('%s'), which is not known before it runs",
               x->name ? x->name : "");
  lp_note_binding(b->im->diag, b->source->loc, x);
  return status;
}

static lp_status refuse_use(const lp_bound *b, const lp_op *user) {
  lp_status status = refuse(b);
  lp_note(b->im->diag, user->loc,
          "its rows are used by '%s', and only rows that are computed one by one and added at "
          "their places can be bounded",
          lp_op_info_get(user->kind)->name);
  return status;
}

static lp_status check_users(const lp_bound *b) {
  const lp_op *other = lp_bound_find_other(b);
  return other ? refuse_use(b, other) : LP_OK;
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

/* NULL after a diagnostic; NULL operands flow through. */
static lp_value *make(const lp_bound *b, lp_kind kind, int32_t count, lp_value *const *in, const char *attr,
                      int64_t number) {
  lp_type unknown = {.rank = -1};
  for (int32_t i = 0; i < count; i++)
    if (!in[i]) return NULL;
  lp_op *op = lp_op_create(b->im->module, kind, b->source->loc, count, in, 1, &unknown);
  if (attr) lp_op_set_i64(b->im->module, op, attr, number);
  lp_op_insert_before(b->where, op);
  b->im->node_count++;
  return lp_op_infer(b->im->module, op, b->im->diag) == LP_OK ? op->out[0] : NULL;
}

static lp_value *make2(const lp_bound *b, lp_kind kind, lp_value *x, lp_value *y) {
  return make(b, kind, 2, (lp_value *[]){x, y}, NULL, 0);
}

static lp_value *numbers(const lp_bound *b, lp_dtype dtype, int32_t rank, int64_t count, const int64_t *values) {
  int64_t *copy = LP_NEW_ARRAY(b->im->module->arena, int64_t, count + 1);
  for (int64_t i = 0; i < count; i++)
    copy[i] = values[i];
  lp_tensor tensor = {.type = lp_type_static(b->im->module, dtype, rank, &count), .data = copy};
  tensor.bytes = (size_t)count * (size_t)lp_dtype_bits(dtype) / 8;
  lp_op *op = lp_constant_create(b->im->module, b->source->loc, tensor);
  lp_op_insert_before(b->where, op);
  return lp_op_infer(b->im->module, op, b->im->diag) == LP_OK ? op->out[0] : NULL;
}

static lp_value *number(const lp_bound *b, lp_dtype dtype, int64_t value) {
  return numbers(b, dtype, 0, 1, &value);
}

static lp_value *axes(const lp_bound *b, int64_t axis) {
  return numbers(b, LP_I64, 1, 1, &axis);
}

static lp_value *cast(const lp_bound *b, lp_value *x, lp_dtype dtype) {
  return make(b, LP_ONNX_Cast, 1, &x, "to", lp_dtype_onnx(dtype));
}

/* 0, 1, ... up to the bound. */
static lp_value *count_up(const lp_bound *b, lp_value *mask) {
  lp_value *shape = make(b, LP_ONNX_Shape, 1, &mask, NULL, 0);
  lp_value *size = make(b, LP_ONNX_Gather, 2, (lp_value *[]){shape, number(b, LP_I64, b->token_axis)}, "axis", 0);
  lp_value *in[] = {number(b, LP_I64, 0), size, number(b, LP_I64, 1)};
  return make(b, LP_ONNX_Range, 3, in, NULL, 0);
}

/* Computes for each token whether it chose the expert, and with which of its choices; for a token that did not choose
 * it, the first. */
static lp_status make_coordinates(lp_bound *b) {
  lp_value *mask = lp_op_in(b->source, 0), *parts[2];
  b->where = b->source;
  lp_value *flags = b->chosen = cast(b, mask, LP_BOOL);
  b->token = count_up(b, mask);
  parts[b->token_axis] = make2(b, LP_ONNX_Unsqueeze, b->token, axes(b, 0));
  b->coordinates = parts[b->token_axis];
  if (mask->type.rank == 2) {
    int32_t axis = 1 - b->token_axis;
    lp_value *ones = cast(b, flags, LP_F32), *in[] = {ones, axes(b, axis)};
    b->chosen = cast(b, make(b, LP_ONNX_ReduceMax, 2, in, "keepdims", 0), LP_BOOL);
    lp_value *choice = make(b, LP_ONNX_ArgMax, 1, &ones, "axis", axis); /* keeps the axis */
    parts[axis] = make2(b, LP_ONNX_Reshape, choice, numbers(b, LP_I64, 1, 2, (int64_t[]){1, -1}));
    b->coordinates = make(b, LP_ONNX_Concat, 2, parts, "axis", 0);
  }
  return b->chosen && b->coordinates ? LP_OK : LP_FAILED;
}

/* Returns x in rows of tokens that chose the expert, and `otherwise` in all other rows. Axis `axis` of x counts
 * rows. */
static lp_value *where_chosen(const lp_bound *b, lp_value *x, int32_t axis, lp_value *otherwise) {
  int64_t others[LP_MAX_RANK], count = 0;
  for (int32_t i = 0; i < x->type.rank; i++)
    if (i != axis) others[count++] = i;
  lp_value *flags = count ? make2(b, LP_ONNX_Unsqueeze, b->chosen, numbers(b, LP_I64, 1, count, others)) : b->chosen;
  return make(b, LP_ONNX_Where, 3, (lp_value *[]){flags, x, otherwise}, NULL, 0);
}

/* ---- rewriting --------------------------------------------------------------------------------------------------- */

static bool same_shape(const lp_value *x, const lp_value *y) {
  bool same = x->type.rank == y->type.rank;
  for (int32_t i = 0; same && i < x->type.rank; i++)
    same = lp_poly_equal(x->type.dim[i], y->type.dim[i]);
  return same;
}

/* Once every token has a row, in order, a row's index is its token: the sum becomes an addition without an index, and
 * the Gather of the rows is its operand itself. */
static lp_status rewrite_sum(lp_bound *b, lp_op *op) {
  lp_value *data = lp_op_in(op, 0), *updates = lp_op_in(op, 2), *made;
  const char *reduction = lp_op_str(op, "reduction", "none");
  int32_t axis = op->kind == LP_ONNX_ScatterND ? 0 : (int32_t)lp_op_i64(op, "axis", 0);
  bool adds = lp_streq(reduction, "add"), in_place = lp_bound_is_token(b, lp_op_in(op, 1)) && same_shape(data, updates);
  if (axis < 0) axis += data->type.rank;
  if (!adds && !(in_place && lp_streq(reduction, "none"))) return refuse_use(b, op);
  b->where = op;
  made = where_chosen(b, updates, axis, adds ? number(b, updates->type.dtype, 0) : data);
  if (adds && in_place) made = make2(b, LP_ONNX_Add, data, made);
  if (!made) return LP_FAILED;
  if (in_place)
    lp_value_replace(op->out[0], made);
  else
    lp_op_set_in(op, 2, made);
  return LP_OK;
}

/* Exporters flatten the weights of all choices [tokens, choices] and index them by choice + token * choices. Taken
 * along the axis of choices instead, a row reads the weights of its own token only. */
static lp_status take_choice(lp_bound *b, lp_op *op) {
  lp_value *data = lp_op_in(op, 0), *index = lp_op_in(op, 1);
  const lp_value *x = lp_op_is(data->def, LP_ONNX_Flatten) ? lp_op_in(data->def, 0) : NULL;
  int64_t choices, width;
  if (!x || x->type.rank < 2 || index->type.rank != 1 || lp_op_i64(op, "axis", 0) != 0) return LP_OK;
  if (!lp_type_static_dim(x->type, 1, &choices) || !lp_type_static_dim(data->type, 1, &width) || width != 1)
    return LP_OK;
  lp_value *choice = lp_bound_choice_in(b, index, x->type.dim[1]);
  const lp_poly *all = lp_poly_scale(b->im->module->arena, b->count, choices);
  if (!choice || !lp_poly_equal(x->type.dim[0], b->count) || !lp_poly_equal(data->type.dim[0], all)) return LP_OK;
  b->where = op;
  lp_value *table = make2(b, LP_ONNX_Reshape, data, numbers(b, LP_I64, 1, 2, (int64_t[]){-1, choices}));
  lp_value *in[] = {table, make2(b, LP_ONNX_Unsqueeze, choice, axes(b, 1))};
  lp_value *made = make(b, LP_ONNX_GatherElements, 2, in, "axis", 1);
  if (made) lp_value_replace(op->out[0], made);
  return made ? LP_OK : LP_FAILED;
}

static lp_status rewrite_gather(lp_bound *b, lp_op *op) {
  lp_value *data = lp_op_in(op, 0), *index = lp_op_in(op, 1);
  if (index->type.rank != 1 || !lp_bound_is_token(b, index) || !same_shape(data, op->out[0])) return take_choice(b, op);
  lp_value_replace(op->out[0], data);
  return LP_OK;
}

static lp_status rewrite_users(lp_bound *b) {
  LP_TRY(make_coordinates(b));
  for (size_t i = 0; i < b->users.count; i++)
    if (!lp_op_substitute(b->im->module, b->users.data[i], b->rows, b->count)) return refuse(b);
  LP_FOR_VEC_REFS(lp_op, op, &b->users) {
    if (lp_bound_is_sum(op->kind)) LP_TRY(rewrite_sum(b, op));
    if (op->kind == LP_ONNX_Gather) LP_TRY(rewrite_gather(b, op));
    for (int32_t k = 0; k < op->out_count && op != b->source; k++)
      if (op->out[k]->type.rank == 1 && lp_bound_is_token(b, op->out[k])) lp_value_replace(op->out[k], b->token);
  }
  lp_value_replace(b->source->out[0], b->coordinates);
  return LP_OK;
}

/* ---- driver ------------------------------------------------------------------------------------------------------ */

static lp_status find_bound(lp_bound *b) {
  const lp_value *mask = lp_op_in(b->source, 0);
  lp_choice choice = {.axis = 1};
  if (mask->type.rank != 1 && !lp_choice_find(mask, &choice)) {
    lp_status status = refuse(b);
    lp_note(b->im->diag, b->source->loc, "its operand is not a vector, and no mask of the tokens that chose an expert");
    return status;
  }
  b->token_axis = 1 - choice.axis;
  b->count = mask->type.dim[b->token_axis];
  return LP_OK;
}

static lp_status bound_one(lp_importer *im, lp_op *source, lp_symbol rows) {
  lp_bound b = {.im = im, .source = source, .rows = rows};
  bool used = source->out[0]->uses != NULL;
  lp_bound_collect(&b);
  lp_status status = used ? check_users(&b) : LP_OK;
  if (used && status == LP_OK) status = find_bound(&b);
  if (used && status == LP_OK) {
    lp_bound_find_places(&b);
    status = rewrite_users(&b);
  }
  lp_bound_forget(&b);
  if (status == LP_OK) lp_op_erase(source);
  return status;
}

lp_status lp_nonzero_bound(lp_importer *im) {
  lp_symbol rows = lp_symbols_find(&im->module->symbols, LP_ROWS_NAME);
  int64_t left = im->unbounded;
  lp_block_renumber(im->block);
  lp_loc first = LP_LOC_NONE;
  const int64_t dense = lp_mixtures_gather(im, &first);
  for (lp_op *op = im->block->first, *next; op && im->unbounded > 0; op = next) {
    next = op->next;
    if (op->kind != LP_ONNX_NonZero || lp_rows_axis(op->out[0], rows) != 1) continue;
    LP_TRY(bound_one(im, op, rows));
    left--;
  }
  lp_block_renumber(im->block);
  if (left == 0 && dense > 0)
    lp_note(im->diag, first,
            "each expert is computed for each token, because the operators of this mixture have no form that llmpart "
            "knows; there are %" PRId64 " such mixtures",
            dense);
  if (left == 0) return LP_OK;
  return lp_error(im->diag, LP_LOC_FILE(im->path),
                  "the number of rows of a NonZero, which depends on data, would have to equal another size");
}
