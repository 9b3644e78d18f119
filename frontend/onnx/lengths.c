/* Lengths that a file states as numbers although its graph may not need them. */
#include "frontend/onnx/lengths.h"
#include "base/poly.h"

enum { NO_LIMIT = INT32_MAX - 1 };

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static bool states_number(const Onnx__TypeProto__Tensor *tensor, int32_t axis, int64_t *number) {
  const Onnx__TensorShapeProto__Dimension *dim = tensor->shape->dim[axis];
  *number = dim->dim_value;
  return dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && dim->dim_value > 0;
}

/* Tells whether two types of four axes have the same sizes; the third must be stated. */
static bool same_sizes(const Onnx__TypeProto__Tensor *a, const Onnx__TypeProto__Tensor *b) {
  if (!b || !b->shape || a->shape->n_dim != b->shape->n_dim) return false;
  for (size_t i = 0; i < a->shape->n_dim; i++) {
    int64_t x, y;
    bool known = states_number(a, (int32_t)i, &x), other = states_number(b, (int32_t)i, &y);
    if ((known && other && x != y) || (i == 2 && !(known && other))) return false;
  }
  return true;
}

/* Tells whether a cache is as long after a step as before it, which makes it a buffer of that size. */
static bool is_buffer(const Onnx__GraphProto *graph, const Onnx__TypeProto__Tensor *tensor) {
  for (size_t i = 0; i < graph->n_output; i++) {
    const Onnx__TypeProto *type = graph->output[i]->type;
    if (type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE && same_sizes(tensor, type->tensor_type))
      return true;
  }
  return false;
}

/* The number of nodes' inputs with this name. */
static int32_t count_uses(const Onnx__GraphProto *graph, const char *name) {
  int32_t count = 0;
  for (size_t i = 0; i < graph->n_node; i++)
    for (size_t k = 0; k < graph->node[i]->n_input; k++)
      count += lp_streq(lp_text(graph->node[i]->input[k]), name);
  return count;
}

static bool is_output(const Onnx__GraphProto *graph, const char *name) {
  for (size_t i = 0; i < graph->n_output; i++)
    if (lp_streq(lp_text(graph->output[i]->name), name)) return true;
  return false;
}

/* Tells whether the graph has an input of the form of tokens. */
static bool takes_tokens(const Onnx__GraphProto *graph) {
  for (size_t i = 0; i < graph->n_input; i++) {
    const Onnx__TypeProto *type = graph->input[i]->type;
    const Onnx__TypeProto__Tensor *tensor =
        type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? type->tensor_type : NULL;
    if (tensor && tensor->shape && tensor->shape->n_dim == 2 &&
        (tensor->elem_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 ||
         tensor->elem_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT32))
      return true;
  }
  return false;
}

static int64_t number_of(const Onnx__NodeProto *node, const char *name) {
  for (size_t i = 0; i < node->n_attribute; i++)
    if (lp_streq(lp_text(node->attribute[i]->name), name)) return node->attribute[i]->i;
  return 0;
}

/* Tells whether the operator evicts rows from its cache that its window may still show; it needs a window to evict. */
static bool evicts_seen_rows(const Onnx__NodeProto *node) {
  return number_of(node, "sliding_window_cache") && number_of(node, "local_window_size") < 1;
}

bool lp_is_open_buffer(const Onnx__GraphProto *graph, const Onnx__NodeProto *node) {
  if (!lp_streq(lp_text(node->op_type), "GroupQueryAttention") || node->n_input < 5 || node->n_output < 3) return false;
  if (evicts_seen_rows(node) || !takes_tokens(graph)) return false;
  for (size_t i = 3; i < 5; i++) {
    const char *past = lp_text(node->input[i]), *present = lp_text(node->output[i - 2]);
    if (count_uses(graph, past) != 1 || count_uses(graph, present) != 0 || !is_output(graph, present)) return false;
  }
  return true;
}

/* Tells whether the input is a past of such a node. */
static bool is_open_past(const Onnx__GraphProto *graph, const char *name) {
  LP_FOR_REFS(Onnx__NodeProto, node, graph->node, graph->n_node)
    for (size_t k = 3; k < node->n_input && k < 5; k++)
      if (lp_streq(lp_text(node->input[k]), name)) return lp_is_open_buffer(graph, node);
  return false;
}

bool lp_is_constant_length(const Onnx__GraphProto *graph, const Onnx__TypeProto__Tensor *tensor, const char *name,
                           int32_t axis) {
  int64_t number;
  size_t rank = tensor->shape->n_dim;
  bool whole = tensor->elem_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 ||
               tensor->elem_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT32;
  if (!states_number(tensor, axis, &number)) return false;
  if (rank == 2) return whole && axis == 1;
  if (rank == 1) return whole && strstr(name, "position");
  if (rank == 4 && strstr(name, "mask")) return axis >= 2 && number > 1;
  if (rank != 4 || axis != 2 || whole || !strstr(name, "past")) return false;
  return !is_buffer(graph, tensor) || is_open_past(graph, name);
}

/* The label of an axis; "": none. */
static const char *label_at(const Onnx__TypeProto__Tensor *tensor, size_t axis) {
  const Onnx__TensorShapeProto__Dimension *dim = tensor->shape->dim[axis];
  return dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM ? lp_text(dim->dim_param) : "";
}

/* Tells whether an axis of an input has this label; `past`: the axis of positions of a past. */
static bool has_label(const Onnx__GraphProto *graph, const char *label, size_t size, bool past) {
  for (size_t i = 0; i < graph->n_input; i++) {
    const Onnx__TypeProto *type = graph->input[i]->type;
    const Onnx__TypeProto__Tensor *tensor =
        type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? type->tensor_type : NULL;
    const size_t rank = tensor && tensor->shape ? tensor->shape->n_dim : 0;
    if (past && (rank != 4 || !strstr(lp_text(graph->input[i]->name), "past"))) continue;
    for (size_t k = past ? 2 : 0; k < (past ? 3 : rank); k++)
      if (strlen(label_at(tensor, k)) == size && strncmp(label_at(tensor, k), label, size) == 0) return true;
  }
  return false;
}

bool lp_is_wrong_label(const Onnx__GraphProto *graph, const Onnx__TypeProto__Tensor *tensor, const char *name,
                       int32_t axis) {
  if (tensor->shape->n_dim != 2 || axis != 1 || !strstr(name, "mask")) return false;
  const char *label = label_at(tensor, 1);
  if (label[0] && has_label(graph, label, strlen(label), true)) return true;
  if (!strchr(label, '+')) return false;
  for (const char *at = label; *at; at += strspn(at, " +*0123456789()")) {
    const size_t size = strcspn(at, " +*()");
    if (size > 0 && !has_label(graph, at, size, false)) return true;
    at += size;
  }
  return false;
}

bool lp_has_constant_length(const Onnx__GraphProto *graph) {
  for (size_t i = 0; graph && i < graph->n_input; i++) {
    const Onnx__TypeProto *type = graph->input[i]->type;
    const Onnx__TypeProto__Tensor *tensor =
        type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? type->tensor_type : NULL;
    for (int32_t axis = 0; tensor && tensor->shape && axis < (int32_t)tensor->shape->n_dim; axis++)
      if (lp_is_constant_length(graph, tensor, lp_text(graph->input[i]->name), axis)) return true;
  }
  return false;
}

/* ---- the module -------------------------------------------------------------------------------------------------- */

static bool is_open(lp_type type, int64_t axis) {
  if (axis < 0) axis += type.rank;
  return axis >= 0 && axis < type.rank && !lp_poly_is_const(type.dim[axis], NULL);
}

/* Tells whether a constant among the first `count` known integers is greater than `most`. */
static bool exceeds(const lp_value *value, int32_t i, int64_t most) {
  int64_t number;
  return value && value->known && i < value->known_count && lp_poly_is_const(value->known[i], &number) &&
         number > most && number < NO_LIMIT;
}

/* Tells whether the slice has a constant start other than 0, or a constant end, along an axis of open size. */
static bool slices_at_number(const lp_op *op) {
  const lp_value *starts = lp_op_in(op, 1), *ends = lp_op_in(op, 2), *axes = lp_op_in(op, 3);
  for (int32_t i = 0; starts && i < starts->known_count; i++) {
    int64_t axis = i;
    if (axes && (!axes->known || !lp_poly_is_const(axes->known[i], &axis))) return true;
    if (!is_open(lp_op_in(op, 0)->type, axis)) continue;
    if (exceeds(starts, i, 0) || exceeds(ends, i, 0)) return true;
  }
  return false;
}

/* Reads element `i` of an index into `number`; false when the element is not a constant. */
static bool element_of(const lp_value *index, int64_t i, int64_t *number) {
  lp_tensor tensor;
  if (index->known) return lp_poly_is_const(index->known[i], number);
  if (!lp_value_constant(index, &tensor) || !tensor.data) return false;
  *number = lp_tensor_i64(&tensor, i);
  return true;
}

/* Tells whether the index has an element other than 0 and -1, the rows that every length has. */
static bool gathers_at_number(const lp_op *op) {
  const lp_value *index = lp_op_in(op, 1);
  int64_t count, number;
  if (!is_open(lp_op_in(op, 0)->type, lp_op_i64(op, "axis", 0))) return false;
  if (!index->known && !lp_value_is_constant(index)) return false;
  if (!lp_type_static_numel(index->type, &count)) return true;
  for (int64_t i = 0; i < count; i++)
    if (!element_of(index, i, &number) ? !index->known : number != 0 && number != -1) return true;
  return false;
}

static bool takes_certain_rows(const lp_op *op) {
  switch (op->kind) {
  case LP_ONNX_Slice:
    return slices_at_number(op);
  case LP_ONNX_Gather:
  case LP_ONNX_GatherElements:
    return gathers_at_number(op);
  case LP_ONNX_GatherND:
  case LP_ONNX_ScatterND:
  case LP_ONNX_ScatterElements:
    return lp_value_is_constant(lp_op_in(op, 1));
  default:
    return false;
  }
}

bool lp_lengths_are_free(lp_module *module) {
  const lp_op *main = lp_module_find_func(module, "main");
  const lp_block *block = main ? main->region : NULL;
  bool open = false;
  for (int32_t i = 0; block && i < block->arg_count; i++) {
    const lp_value *arg = block->arg[i];
    bool whole = arg->type.dtype == LP_I64 || arg->type.dtype == LP_I32;
    if (whole && arg->type.rank == 2 && !is_open(arg->type, 1)) return false;
    open |= whole && arg->type.rank == 2;
  }
  for (const lp_op *op = block ? block->first : NULL; op; op = op->next)
    if (takes_certain_rows(op)) return false;
  return open;
}
