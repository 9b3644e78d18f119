/* Sequences of tensors. Their lengths and the indices into them are known at import, so that a sequence is a list of
 * values: each element becomes operators of its own, and no sequence is left in the module. */
#include "base/map.h"
#include "base/poly.h"
#include "frontend/onnx/attr.h"
#include "frontend/onnx/build.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/node.h"
#include "frontend/onnx/scope.h"
#include "frontend/onnx/tensor.h"

struct lp_list {
  lp_value **item;
  int64_t count;
};

typedef struct {
  lp_importer *im;
  lp_scope *scope;
  const Onnx__NodeProto *node;
  const lp_call *call;
  lp_loc loc;
} sequence;

/* ---- operands and results ---------------------------------------------------------------------------------------- */

static const char *input_name(const sequence *q, size_t index) {
  return index < q->node->n_input ? lp_text(q->node->input[index]) : "";
}

/* An input that is a tensor; NULL when it is absent and may be. */
static lp_status tensor_input(const sequence *q, size_t index, bool optional, lp_value **out) {
  const char *name = input_name(q, index);
  LP_TRY(lp_scope_find(q->im, q->scope, name, out));
  if (*out || (optional && !name[0])) return LP_OK;
  return lp_error(q->im->diag, q->loc, "input '%s' is no tensor that a node, an initializer or an input makes", name);
}

static lp_status list_input(const sequence *q, const lp_list **out) {
  *out = lp_scope_find_list(q->scope, input_name(q, 0));
  if (*out) return LP_OK;
  return lp_error(q->im->diag, q->loc, "input '%s' is no sequence of constant length that an operator makes",
                  input_name(q, 0));
}

static lp_status int_attribute(const sequence *q, const char *name, int64_t usual, int64_t *out) {
  const Onnx__AttributeProto *a = lp_attribute_find(q->node, q->call, name);
  *out = usual;
  if (!a) return LP_OK;
  LP_TRY(lp_attribute_check(q->im, a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, q->loc));
  *out = a->i;
  return LP_OK;
}

static lp_status check_output(const sequence *q) {
  if (q->node->n_output == 1 && lp_text(q->node->output[0])[0]) return LP_OK;
  return lp_error(q->im->diag, q->loc, "%zu outputs, 1 wanted", q->node->n_output);
}

static lp_list *new_list(const sequence *q, int64_t count) {
  lp_list *list = LP_NEW(q->im->scratch, lp_list);
  list->item = LP_NEW_ARRAY(q->im->scratch, lp_value *, count + 1);
  list->count = count;
  return list;
}

static lp_status define_list(const sequence *q, lp_list *list) {
  const char *name = lp_text(q->node->output[0]);
  if (lp_map_has(q->scope->values, name) || lp_map_has(q->scope->lists, name))
    return lp_error(q->im->diag, q->loc, "value '%s' is defined twice", name);
  lp_map_put(q->scope->lists, name, list);
  return LP_OK;
}

static lp_status define_value(const sequence *q, lp_value *value) {
  return lp_scope_define(q->im, q->scope, lp_text(q->node->output[0]), value, q->loc);
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static lp_value *numbers(const sequence *q, const int64_t *values, int64_t count) {
  return lp_import_constant(q->im, q->loc, LP_I64, 1, &count, values, (size_t)count * sizeof *values);
}

static lp_status build(const sequence *q, lp_kind kind, int32_t count, lp_value *const *in, lp_value **out) {
  lp_type unknown = {.rank = -1};
  return lp_import_built(q->im, lp_op_create(q->im->module, kind, q->loc, count, in, 1, &unknown), out);
}

/* x[from : to] along an axis. */
static lp_status slice(const sequence *q, lp_value *x, int64_t axis, int64_t from, int64_t to, lp_value **out) {
  lp_value *in[] = {x, numbers(q, &from, 1), numbers(q, &to, 1), numbers(q, &axis, 1)};
  return build(q, LP_ONNX_Slice, 4, in, out);
}

static lp_status joined(const sequence *q, int64_t axis, const lp_list *list, lp_value **out) {
  lp_type unknown = {.rank = -1};
  lp_op *op = lp_op_create(q->im->module, LP_ONNX_Concat, q->loc, (int32_t)list->count, list->item, 1, &unknown);
  lp_op_set_i64(q->im->module, op, "axis", axis);
  return lp_import_built(q->im, op, out);
}

/* ---- splitting --------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_value *x;
  int64_t axis;
  bool squeezes;        /* pieces lose the axis */
  const int64_t *sizes; /* of the pieces; NULL: all have the size `each`, the last one what is left */
  int64_t count, each;
} splitting;

static lp_status refuse_length(const sequence *q) {
  return lp_error(q->im->diag, q->loc, "the length of the sequence is not constant");
}

static lp_status refuse_count(const sequence *q, int64_t count) {
  return lp_error(q->im->diag, q->loc, "a sequence of %" PRId64 " tensors, at most %d are supported", count,
                  LP_NODE_OPERANDS);
}

/* Element `i` of a vector that is known at import. */
static bool element(const lp_value *vector, int64_t i, int64_t *out) {
  lp_tensor tensor;
  if (vector->known) return lp_poly_is_const(vector->known[i], out);
  if (!lp_value_constant(vector, &tensor) || lp_dtype_is_float(tensor.type.dtype)) return false;
  *out = lp_tensor_i64(&tensor, i);
  return true;
}

/* Sizes that are numbers: one for all pieces, or one each. */
static lp_status read_sizes(const sequence *q, const lp_value *split, splitting *s) {
  int64_t total, sum = 0;
  bool known = lp_type_static_dim(s->x->type, (int32_t)s->axis, &total);
  if (!split || split->type.rank == 0) {
    if (!known || (split && !lp_import_number(split, &s->each))) return refuse_length(q);
    if (s->each < 1) return lp_error(q->im->diag, q->loc, "pieces of size %" PRId64 ", at least 1 wanted", s->each);
    s->count = total / s->each + (total % s->each != 0);
    return LP_OK;
  }
  if (split->type.rank != 1 || !lp_type_static_numel(split->type, &s->count)) return refuse_length(q);
  if (s->count > LP_NODE_OPERANDS) return refuse_count(q, s->count);
  int64_t *sizes = LP_NEW_ARRAY(q->im->scratch, int64_t, s->count + 1);
  for (int64_t i = 0; i < s->count; i++) {
    if (!element(split, i, &sizes[i])) return refuse_length(q);
    if (sizes[i] < 0 || sizes[i] > INT32_MAX)
      return lp_error(q->im->diag, q->loc, "a piece of size %" PRId64, sizes[i]);
    sum += sizes[i];
  }
  if (known && sum != total)
    return lp_error(q->im->diag, q->loc, "pieces of %" PRId64 " elements in all, the axis has %" PRId64, sum, total);
  s->sizes = sizes;
  return LP_OK;
}

static lp_status read_splitting(const sequence *q, splitting *s) {
  int64_t keeps, rank;
  lp_value *split;
  *s = (splitting){.each = 1};
  LP_TRY(tensor_input(q, 0, false, &s->x));
  LP_TRY(tensor_input(q, 1, true, &split));
  LP_TRY(int_attribute(q, "axis", 0, &s->axis));
  LP_TRY(int_attribute(q, "keepdims", 1, &keeps));
  rank = s->x->type.rank;
  if (rank < 1 || s->axis < -rank || s->axis >= rank)
    return lp_error(q->im->diag, q->loc, "axis %" PRId64 " of a tensor of rank %" PRId64, s->axis, rank);
  if (s->axis < 0) s->axis += rank;
  s->squeezes = !split && keeps == 0;
  LP_TRY(read_sizes(q, split, s));
  if (s->count > LP_NODE_OPERANDS) return refuse_count(q, s->count);
  q->im->node_count += s->count;
  return LP_OK;
}

static lp_status split_to_sequence(const sequence *q) {
  splitting s;
  LP_TRY(read_splitting(q, &s));
  lp_list *list = new_list(q, s.count);
  int64_t from = 0;
  for (int64_t i = 0; i < s.count; i++) {
    int64_t to = from + (s.sizes ? s.sizes[i] : s.each);
    LP_TRY(slice(q, s.x, s.axis, from, to, &list->item[i]));
    lp_value *in[] = {list->item[i], numbers(q, &s.axis, 1)};
    if (s.squeezes) LP_TRY(build(q, LP_ONNX_Squeeze, 2, in, &list->item[i]));
    from = to;
  }
  return define_list(q, list);
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

static lp_status sequence_construct(const sequence *q) {
  if (q->node->n_input > LP_NODE_OPERANDS)
    return lp_error(q->im->diag, q->loc, "%zu inputs, at most %d are supported", q->node->n_input, LP_NODE_OPERANDS);
  lp_list *list = new_list(q, (int64_t)q->node->n_input);
  for (int64_t i = 0; i < list->count; i++)
    LP_TRY(tensor_input(q, (size_t)i, false, &list->item[i]));
  return define_list(q, list);
}

static lp_status sequence_empty(const sequence *q) {
  return define_list(q, new_list(q, 0));
}

/* Reads an index that is an input; without it, `usual`. `most`: the greatest one. */
static lp_status read_index(const sequence *q, size_t input, int64_t usual, int64_t count, int64_t most, int64_t *out) {
  lp_value *index;
  LP_TRY(tensor_input(q, input, usual >= 0, &index));
  *out = usual;
  if (index && !lp_import_number(index, out))
    return lp_error(q->im->diag, q->loc, "the index into the sequence is not constant");
  if (*out < -count || *out > most)
    return lp_error(q->im->diag, q->loc, "index %" PRId64 " into a sequence of %" PRId64, *out, count);
  *out += *out < 0 ? count : 0;
  return LP_OK;
}

static lp_status sequence_insert(const sequence *q) {
  const lp_list *list;
  lp_value *value;
  int64_t at;
  LP_TRY(list_input(q, &list));
  LP_TRY(tensor_input(q, 1, false, &value));
  LP_TRY(read_index(q, 2, list->count, list->count, list->count, &at));
  if (list->count == LP_NODE_OPERANDS) return refuse_count(q, list->count + 1);
  lp_list *longer = new_list(q, list->count + 1);
  for (int64_t i = 0; i < longer->count; i++)
    longer->item[i] = i < at ? list->item[i] : i == at ? value : list->item[i - 1];
  return define_list(q, longer);
}

static lp_status sequence_at(const sequence *q) {
  const lp_list *list;
  int64_t at;
  LP_TRY(list_input(q, &list));
  LP_TRY(read_index(q, 1, -1, list->count, list->count - 1, &at));
  return define_value(q, list->item[at]);
}

static lp_status sequence_length(const sequence *q) {
  const lp_list *list;
  LP_TRY(list_input(q, &list));
  return define_value(q, lp_import_constant(q->im, q->loc, LP_I64, 0, NULL, &list->count, sizeof list->count));
}

static lp_status concat_from_sequence(const sequence *q) {
  const lp_list *list;
  int64_t axis, adds;
  lp_value *result;
  LP_TRY(list_input(q, &list));
  LP_TRY(int_attribute(q, "axis", 0, &axis));
  LP_TRY(int_attribute(q, "new_axis", 0, &adds));
  if (list->count == 0) return lp_error(q->im->diag, q->loc, "the sequence is empty");
  lp_list *parts = new_list(q, list->count);
  for (int64_t i = 0; i < list->count; i++) {
    lp_value *in[] = {list->item[i], numbers(q, &axis, 1)};
    parts->item[i] = in[0];
    if (adds) LP_TRY(build(q, LP_ONNX_Unsqueeze, 2, in, &parts->item[i]));
  }
  LP_TRY(joined(q, axis, parts, &result));
  return define_value(q, result);
}

/* ---- driver ------------------------------------------------------------------------------------------------------ */

static const struct {
  const char *name;
  lp_status (*run)(const sequence *q);
} operators[] = {{"SplitToSequence", split_to_sequence},
                 {"SequenceConstruct", sequence_construct},
                 {"SequenceEmpty", sequence_empty},
                 {"SequenceInsert", sequence_insert},
                 {"SequenceAt", sequence_at},
                 {"SequenceLength", sequence_length},
                 {"ConcatFromSequence", concat_from_sequence}};

bool lp_is_sequence_operator(const char *name) {
  return LP_FIND_IN(operators, name) != NULL;
}

lp_status lp_import_sequence(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, const lp_call *call,
                             lp_loc loc) {
  const sequence q = {im, scope, node, call, loc};
  LP_TRY(check_output(&q));
  for (size_t i = 0; i < LP_COUNT(operators); i++)
    if (lp_streq(lp_text(node->op_type), operators[i].name)) return operators[i].run(&q);
  return LP_OK;
}
