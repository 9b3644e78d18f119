/* Replaces inputs that follow from the sizes: without padding, a mask consists of ones, and positions continue after
 * the past. */
#include "passes/build.h"
#include "passes/recognise/bind.h"

static const struct {
  const char *name;
  lp_bind_follower kind;
  int32_t rank;
} followers[] = {{"attention_mask", LP_FOLLOWS_MASK, 2},
                 {"input_mask", LP_FOLLOWS_MASK, 2},
                 {"mask", LP_FOLLOWS_MASK, 2},
                 {"attention_mask", LP_FOLLOWS_CAUSAL, 4},
                 {"position_ids", LP_FOLLOWS_POSITIONS, 2},
                 {"positions", LP_FOLLOWS_POSITIONS, 2},
                 {"position_ids", LP_FOLLOWS_POSITIONS, 1},
                 {"cache_position", LP_FOLLOWS_POSITIONS, 1},
                 {"token_type_ids", LP_FOLLOWS_TYPES, 2},
                 {"seqlens_k", LP_FOLLOWS_LAST, 1},
                 {"total_sequence_length", LP_FOLLOWS_TOTAL, 0},
                 {"total_sequence_length", LP_FOLLOWS_TOTAL, 1}};

/* A square mask over a constant length that is not added to anything: exporters cut the rows and columns of a step
 * from it. A mask that is added holds large negative numbers of the caller's choice. */
static bool is_causal_mask(const lp_value *mask, int depth) {
  int64_t rows, columns;
  bool square = mask->type.rank == 4 && lp_type_static_dim(mask->type, 2, &rows) &&
                lp_type_static_dim(mask->type, 3, &columns) && rows == columns;
  for (const lp_use *use = mask->uses; use; use = use->next) {
    const lp_op *op = use->owner;
    bool passes = op->kind == LP_ONNX_Slice || lp_op_has(op, LP_IN_ORDER);
    if (op->kind == LP_ONNX_Add || depth > 8 || (passes && !is_causal_mask(op->out[0], depth + 1))) return false;
  }
  return square || depth > 0;
}

/* Tells whether a mask of two axes is [s, p + s] instead of [b, p + s]. */
static bool has_query_rows(const lp_bind *b, lp_type mask) {
  lp_type tokens = b->block->arg[b->tokens]->type;
  return mask.rank == 2 && lp_poly_equal(mask.dim[0], tokens.dim[1]) && !lp_poly_equal(mask.dim[0], tokens.dim[0]);
}

lp_bind_follower lp_bind_follower_of(const lp_bind *b, int32_t input) {
  const char *name = lp_bind_input(b, input);
  lp_type type = b->block->arg[input]->type;
  bool integer = !lp_dtype_is_float(type.dtype) && type.dtype != LP_BOOL;
  if (input == b->tokens || lp_bind_is_past(b, input)) return LP_FOLLOWS_NOTHING;
  if (lp_streq(name, "use_cache_branch")) return LP_FOLLOWS_SWITCH;
  bool may_be_mask = type.rank == 4 || has_query_rows(b, type);
  if (type.rank == 2 && may_be_mask && lp_bind_is_mask(name)) return LP_FOLLOWS_VISIBLE;
  for (size_t i = 0; i < LP_COUNT(followers); i++) {
    bool fits = type.rank == followers[i].rank &&
                (integer || followers[i].kind == LP_FOLLOWS_MASK || followers[i].kind == LP_FOLLOWS_CAUSAL);
    if (followers[i].kind == LP_FOLLOWS_CAUSAL) fits = fits && is_causal_mask(b->block->arg[input], 0);
    if (fits && lp_streq(name, followers[i].name)) return followers[i].kind;
  }
  return may_be_mask && lp_bind_is_mask(name) ? LP_FOLLOWS_VISIBLE : LP_FOLLOWS_NOTHING;
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

static lp_op *prepared(lp_build *build, lp_kind kind, int32_t count, lp_value *const *in) {
  lp_type unknown = {.rank = -1};
  return lp_op_create(build->module, kind, build->loc, count, in, 1, &unknown);
}

static lp_value *placed(lp_build *build, lp_op *op) {
  return lp_build_place(build, op) == LP_OK ? op->out[0] : NULL;
}

/* The size of an axis, as a vector of one. */
static lp_value *size_of(lp_build *build, lp_value *x, int32_t axis) {
  lp_op *op = prepared(build, LP_ONNX_Shape, 1, &x);
  lp_op_set_i64(build->module, op, "start", axis);
  lp_op_set_i64(build->module, op, "end", axis + 1);
  return placed(build, op);
}

static lp_value *first_past(const lp_bind *b) {
  for (int32_t i = 0; i < b->block->arg_count; i++)
    if (lp_bind_is_past(b, i)) return b->block->arg[i];
  return NULL;
}

/* p and p + s, as vectors of one. */
static lp_value *past_size(lp_build *build, const lp_bind *b) {
  static const int64_t none = 0;
  lp_value *past = first_past(b);
  return past ? size_of(build, past, past->type.rank - 2) : lp_build_i64s(build, &none, 1);
}

static lp_value *total_size(lp_build *build, const lp_bind *b) {
  lp_value *in[] = {past_size(build, b), size_of(build, b->block->arg[b->tokens], 1)};
  return lp_build_value(build, LP_ONNX_Add, 2, in);
}

/* [batch, size]; the batch is the input's own where that is a number. */
static lp_value *shape_of(lp_build *build, const lp_bind *b, lp_type type, lp_value *size) {
  int64_t batch;
  bool fixed = lp_type_static_dim(type, 0, &batch);
  lp_value *in[] = {fixed ? lp_build_i64s(build, &batch, 1) : size_of(build, b->block->arg[b->tokens], 0), size};
  if (!in[0] || !in[1]) return NULL;
  lp_op *op = prepared(build, LP_ONNX_Concat, 2, in);
  lp_op_set_i64(build->module, op, "axis", 0);
  return placed(build, op);
}

static lp_value *filled(lp_build *build, lp_value *shape, int64_t number, lp_dtype dtype) {
  static const int64_t one_element[] = {1};
  if (!shape) return NULL;
  lp_op *op = prepared(build, LP_ONNX_ConstantOfShape, 1, &shape);
  const int64_t *data = lp_arena_copy(build->module->arena, &number, sizeof number);
  lp_tensor fill = {.type = lp_type_static(build->module, LP_I64, 1, one_element), .data = data, .bytes = sizeof *data};
  lp_op_set_tensor(build->module, op, "value", fill);
  return lp_build_cast(build, placed(build, op), dtype);
}

static lp_value *ones(lp_build *build, const lp_bind *b, const lp_value *arg) {
  lp_type type = arg->type;
  return filled(build, shape_of(build, b, type, total_size(build, b)), 1, type.dtype);
}

/* Ones up to the diagonal of the last two axes; the batch is the input's own where that is a number. */
static lp_value *causal(lp_build *build, const lp_bind *b, const lp_value *arg) {
  lp_type type = arg->type;
  int64_t sizes[4] = {1, 1, 1, 1};
  for (int32_t i = 0; i < 4; i++)
    if (!lp_type_static_dim(type, i, &sizes[i])) sizes[i] = -1;
  lp_value *batch = sizes[0] < 0 ? size_of(build, b->block->arg[b->tokens], 0) : lp_build_i64s(build, &sizes[0], 1);
  lp_value *in[] = {batch, lp_build_i64s(build, &sizes[1], 3)};
  if (!batch) return NULL;
  lp_op *shape = prepared(build, LP_ONNX_Concat, 2, in);
  lp_op_set_i64(build->module, shape, "axis", 0);
  lp_value *all = filled(build, placed(build, shape), 1, LP_F32);
  if (!all) return NULL;
  lp_op *lower = prepared(build, LP_ONNX_Trilu, 1, &all);
  lp_op_set_i64(build->module, lower, "upper", 0);
  return lp_build_cast(build, placed(build, lower), type.dtype);
}

/* One row stands for all queries: each query sees the keys that are not padding. */
static lp_value *visible(lp_build *build, const lp_bind *b, const lp_value *arg) {
  lp_type type = arg->type, tokens = b->block->arg[b->tokens]->type;
  const lp_poly *past = lp_bind_past_length(b);
  const lp_poly *total = past ? lp_poly_add(b->module->arena, past, tokens.dim[1]) : tokens.dim[1];
  int64_t rows;
  const lp_poly *const *last = type.dim + type.rank - 2;
  bool one_row = lp_poly_is_const(last[0], &rows) && rows == 1;
  if ((one_row || lp_poly_equal(last[0], tokens.dim[1])) && lp_poly_equal(last[1], total))
    return lp_bind_make_mask(build, b, arg);
  (void)lp_error(b->diag, build->loc, "its shape is not that of the generation protocol");
  return NULL;
}

static lp_value *zeros(lp_build *build, const lp_bind *b, const lp_value *arg) {
  lp_type type = arg->type;
  return filled(build, shape_of(build, b, type, size_of(build, b->block->arg[b->tokens], 1)), 0, type.dtype);
}

static lp_value *scalar(lp_build *build, lp_value *vector) {
  static const int64_t first = 0;
  lp_value *in[] = {vector, lp_build_i64s(build, &first, 1)};
  return lp_build_value(build, LP_ONNX_Squeeze, 2, in);
}

static lp_value *positions(lp_build *build, const lp_bind *b, const lp_value *arg) {
  lp_type type = arg->type;
  static const int64_t step = 1;
  lp_value *range[] = {scalar(build, past_size(build, b)), scalar(build, total_size(build, b)),
                       scalar(build, lp_build_i64s(build, &step, 1))};
  lp_value *row = lp_build_value(build, LP_ONNX_Range, 3, range);
  if (type.rank == 1) return lp_build_cast(build, row, type.dtype);
  lp_value *in[] = {row, shape_of(build, b, type, size_of(build, b->block->arg[b->tokens], 1))};
  return lp_build_cast(build, lp_build_value(build, LP_ONNX_Expand, 2, in), type.dtype);
}

static lp_value *last_position(lp_build *build, const lp_bind *b, const lp_value *arg) {
  static const int64_t number = 1;
  lp_type type = arg->type;
  int64_t batch;
  bool fixed = lp_type_static_dim(type, 0, &batch);
  lp_value *minus[] = {total_size(build, b), lp_build_i64s(build, &number, 1)};
  lp_value *in[] = {lp_build_value(build, LP_ONNX_Sub, 2, minus),
                    fixed ? lp_build_i64s(build, &batch, 1) : size_of(build, b->block->arg[b->tokens], 0)};
  return lp_build_cast(build, lp_build_value(build, LP_ONNX_Expand, 2, in), type.dtype);
}

static lp_value *total(lp_build *build, const lp_bind *b, const lp_value *arg) {
  lp_value *size = total_size(build, b);
  return lp_build_cast(build, arg->type.rank == 0 ? scalar(build, size) : size, arg->type.dtype);
}

static lp_value *yes(lp_build *build, const lp_bind *b, const lp_value *arg) {
  lp_type type = arg->type;
  (void)b;
  static const uint8_t data[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  int64_t dim[LP_MAX_RANK], count;
  if (!lp_type_static_numel(type, &count) || count > 8) return NULL;
  for (int32_t i = 0; i < type.rank; i++)
    if (!lp_type_static_dim(type, i, &dim[i])) return NULL;
  return lp_build_constant(build, LP_BOOL, type.rank, dim, data);
}

/* ---- replacing --------------------------------------------------------------------------------------------------- */

/* Removes argument `index` of the function; its value has no uses left. */
static void remove_argument(lp_bind *b, int32_t index) {
  const lp_attr *names = lp_op_attr(b->func, "inputs");
  if (names && index < names->count) {
    const char **kept = LP_NEW_ARRAY(b->module->arena, const char *, names->count);
    int32_t count = 0;
    for (int32_t i = 0; i < names->count; i++)
      if (i != index) kept[count++] = names->ss[i];
    lp_op_set_strs(b->module, b->func, "inputs", kept, count);
  }
  for (int32_t i = index; i + 1 < b->block->arg_count; i++) {
    b->block->arg[i] = b->block->arg[i + 1];
    b->block->arg[i]->index = i;
    b->input_role[i] = b->input_role[i + 1];
    b->pair[i] = b->pair[i + 1];
  }
  b->block->arg_count--;
  if (b->tokens > index) b->tokens--;
}

lp_status lp_bind_followers(lp_bind *b) {
  static lp_value *(*const makers[])(lp_build *, const lp_bind *, const lp_value *) = {
      [LP_FOLLOWS_NOTHING] = NULL,    [LP_FOLLOWS_MASK] = ones,           [LP_FOLLOWS_CAUSAL] = causal,
      [LP_FOLLOWS_TYPES] = zeros,     [LP_FOLLOWS_POSITIONS] = positions, [LP_FOLLOWS_SWITCH] = yes,
      [LP_FOLLOWS_VISIBLE] = visible, [LP_FOLLOWS_LAST] = last_position,  [LP_FOLLOWS_TOTAL] = total};
  if (!b->block->first) return LP_OK;
  for (int32_t i = 0; i < b->block->arg_count;) {
    lp_value *arg = b->block->arg[i], *by = NULL;
    lp_bind_follower kind = lp_bind_follower_of(b, i);
    lp_build build = lp_build_at(b->module, b->block->first, b->diag);
    build.loc = (lp_loc){.file = b->end->loc.file, .node = lp_bind_input(b, i), .op = "input"};
    if (makers[kind]) by = makers[kind](&build, b, arg);
    if (kind == LP_FOLLOWS_NOTHING || (!by && kind == LP_FOLLOWS_SWITCH)) {
      i++;
      continue;
    }
    if (!by || !lp_type_equal(by->type, arg->type)) {
      if (!by) return LP_FAILED;
      return lp_error(b->diag, build.loc, "its shape is not that of the generation protocol");
    }
    if (arg->uses) lp_value_replace(arg, by);
    remove_argument(b, i);
  }
  return LP_OK;
}
