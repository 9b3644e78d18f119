/* Imports a graph into a block: opsets, names, inputs and outputs. */
#include "base/map.h"
#include "frontend/onnx/graph.h"
#include "frontend/onnx/identify.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/node.h"
#include "frontend/onnx/rows.h"
#include "frontend/onnx/scope.h"
#include "frontend/onnx/tensor.h"

/* The first node of the default domain, as the location of a missing or too old opset; the file when there is none. */
static lp_loc first_standard_loc(const lp_importer *im, const Onnx__GraphProto *graph) {
  for (size_t i = 0; graph && i < graph->n_node; i++)
    if (!lp_node_domain(graph->node[i])[0]) return lp_node_loc(im, graph->node[i], NULL);
  return LP_LOC_FILE(im->path);
}

lp_status lp_read_opset(lp_importer *im, const Onnx__GraphProto *graph) {
  im->opset = 0;
  LP_FOR_REFS(Onnx__OperatorSetIdProto, set, im->model->opset_import, im->model->n_opset_import) {
    const char *domain = lp_text(set->domain);
    if (!domain[0] || lp_streq(domain, "ai.onnx")) im->opset = set->version;
  }
  lp_loc loc = first_standard_loc(im, graph);
  if (im->opset == 0) return loc.op ? lp_refuse_no_opset(im, loc) : LP_OK; /* a graph of other domains needs none */
  if (im->opset < LP_ONNX_OPSET_MIN)
    return lp_error(im->diag, loc, "opset %" PRId64 " of domain 'ai.onnx' is older than %d, the oldest supported",
                    im->opset, LP_ONNX_OPSET_MIN);
  if (im->opset > LP_ONNX_OPSET_MAX)
    lp_warning(im->diag, LP_LOC_FILE(im->path), "opset %" PRId64 " is newer than %d, the newest known", im->opset,
               LP_ONNX_OPSET_MAX);
  return LP_OK;
}

/* ---- names of dimensions ---- */

/* The names of an input's axes, from which vague names are recognised. */
typedef struct {
  const char *input;
  int32_t rank;
  bool is_float;
  const char *first, *second, *rows; /* of axes 0, 1 and the last but one; "": without a name */
} axis_names;

static const char *axis_name(const Onnx__TensorShapeProto *shape, size_t axis) {
  if (axis >= shape->n_dim) return "";
  const Onnx__TensorShapeProto__Dimension *dim = shape->dim[axis];
  return dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM ? lp_text(dim->dim_param) : "";
}

static axis_names names_of(const Onnx__ValueInfoProto *input) {
  axis_names names = {.input = lp_text(input->name), .first = "", .second = "", .rows = ""};
  const Onnx__TypeProto *type = input->type;
  lp_dtype dtype;
  if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type) return names;
  const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
  if (!shape || shape->n_dim > LP_MAX_RANK || !lp_dtype_from_onnx(type->tensor_type->elem_type, &dtype)) return names;
  names.rank = (int32_t)shape->n_dim;
  names.is_float = lp_dtype_is_float(dtype);
  names.first = axis_name(shape, 0);
  names.second = axis_name(shape, 1);
  names.rows = axis_name(shape, shape->n_dim - 2); /* a vector has no such axis */
  return names;
}

/* Tells whether the input is [sequences, tokens] of the step's own tokens. A mask covers the past tokens, too. */
static bool is_of_tokens(const axis_names *names) {
  return names->rank == 2 && !names->is_float && !strstr(names->input, "mask");
}

/* The name that `other` gives to the past's length, or to the past's and the step's; "" when it gives none. */
static const char *name_with_past(const axis_names *other) {
  if (other->is_float) return other->rank >= 4 ? other->rows : "";
  return other->rank == 2 && strstr(other->input, "mask") ? other->second : "";
}

static void call_vague(lp_importer *im, const char *name, const char *why, const char *a, const char *b) {
  if (lp_map_has(im->vague, name)) return;
  lp_map_put(im->vague, name, im);
  lp_note(im->diag, LP_LOC_FILE(im->path), "the dimension name '%s' is ignored, because it stands for %s '%s'%s%s%s",
          name, why, a, b ? " and '" : "", b ? b : "", b ? "'" : "");
}

/* Finds names that carry no information because no generation allows them: one name for the sequences and their tokens,
 * or one for the tokens of a step and the past, which some exporters give to every length. Such a name is ignored in
 * all inputs. */
static void find_vague_names(lp_importer *im, const Onnx__GraphProto *graph) {
  bool has_past = false;
  for (size_t i = 0; i < graph->n_input; i++) {
    axis_names names = names_of(graph->input[i]);
    has_past |= names.is_float && names.rank >= 4;
  }
  for (size_t i = 0; i < graph->n_input; i++) {
    axis_names tokens = names_of(graph->input[i]);
    if (!is_of_tokens(&tokens) || !tokens.second[0]) continue;
    if (lp_streq(tokens.first, tokens.second)) call_vague(im, tokens.first, "both axes of", tokens.input, NULL);
    for (size_t k = 0; k < graph->n_input && has_past; k++) {
      axis_names other = names_of(graph->input[k]);
      if (lp_streq(name_with_past(&other), tokens.second))
        call_vague(im, tokens.second, "different lengths of", tokens.input, other.input);
    }
  }
}

/* ---- inputs and outputs ---- */

/* Turns inputs that are not initializers (which older files list among the inputs) into the function's arguments. */
static lp_status import_inputs(lp_importer *im, lp_scope *scope, const Onnx__GraphProto *graph, lp_op **func) {
  size_t count = 0, bound = 0, room = graph->n_input + 1;
  lp_type *types = LP_NEW_ARRAY(im->scratch, lp_type, room);
  const char **names = LP_NEW_ARRAY(im->scratch, const char *, room);
  lp_type *bound_types = LP_NEW_ARRAY(im->scratch, lp_type, room);
  const lp_input_binding **bindings = LP_NEW_ARRAY(im->scratch, const lp_input_binding *, room);
  if (!im->without_labels) find_vague_names(im, graph);
  for (size_t i = 0; i < graph->n_input; i++) {
    const char *name = lp_text(graph->input[i]->name);
    if (lp_map_has(scope->initializers, name)) continue;
    if (!name[0]) return lp_error(im->diag, LP_LOC_FILE(im->path), "an input has no name");
    if (im->options->without_past && !lp_is_read_without_past(graph, name)) continue;
    LP_TRY(lp_import_type(im, graph, graph->input[i]->type, name, &types[count]));
    bindings[bound] = lp_binding_of(im, graph, name, types[count]);
    if (bindings[bound])
      bound_types[bound++] = types[count];
    else
      names[count++] = lp_arena_strdup(im->module->arena, name);
  }
  *func = lp_module_add_func(im->module, im->func, (int32_t)count, types);
  im->block = (*func)->region;
  for (size_t i = 0; i < count; i++)
    LP_TRY(lp_scope_define(im, scope, names[i], im->block->arg[i], LP_LOC_FILE(im->path)));
  lp_op_set_strs(im->module, *func, "inputs", names, (int32_t)count);
  for (size_t i = 0; i < bound; i++) {
    lp_value *value;
    LP_TRY(lp_import_binding(im, bindings[i], bound_types[i], &value));
    LP_TRY(lp_scope_define(im, scope, bindings[i]->name, value, LP_LOC_FILE(im->path)));
  }
  return LP_OK;
}

static lp_status import_outputs(lp_importer *im, const lp_scope *scope, const Onnx__GraphProto *graph, lp_op *func) {
  size_t count = graph->n_output;
  lp_loc loc = LP_LOC_FILE(im->path);
  const char **names = LP_NEW_ARRAY(im->scratch, const char *, count);
  lp_value **values = LP_NEW_ARRAY(im->scratch, lp_value *, count);
  for (size_t i = 0; i < count; i++) {
    names[i] = lp_text(graph->output[i]->name);
    LP_TRY(lp_scope_find(im, scope, names[i], &values[i]));
    if (!values[i]) return lp_error(im->diag, loc, "output '%s' is made by no node", names[i]);
    names[i] = lp_arena_strdup(im->module->arena, names[i]);
  }
  lp_op *end = lp_op_create(im->module, LP_OP_RETURN, (lp_loc){.file = im->file}, (int32_t)count, values, 0, NULL);
  lp_op_append(im->block, end);
  lp_op_set_strs(im->module, func, "outputs", names, (int32_t)count);
  return LP_OK;
}

/* Compares the element types that exporters state for outputs; a difference from the inferred type shows a misread
 * operator. */
static lp_status check_outputs(const lp_importer *im, const Onnx__GraphProto *graph) {
  const lp_op *end = lp_block_terminator(im->block);
  for (size_t i = 0; i < graph->n_output; i++) {
    const Onnx__TypeProto *type = graph->output[i]->type;
    lp_dtype declared;
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type ||
        !lp_dtype_from_onnx(type->tensor_type->elem_type, &declared))
      continue;
    lp_dtype found = lp_op_in(end, (int32_t)i)->type.dtype;
    if (declared != found)
      return lp_error(im->diag, LP_LOC_FILE(im->path), "output '%s' is declared %s but computed as %s",
                      lp_text(graph->output[i]->name), lp_dtype_name(declared), lp_dtype_name(found));
  }
  return LP_OK;
}

lp_status lp_import_model(lp_importer *im) {
  lp_loc loc = LP_LOC_FILE(im->path);
  const Onnx__GraphProto *graph = NULL;
  LP_TRY(lp_model_graph(im, &graph));
  if (graph->n_node == 0) return lp_error(im->diag, loc, "the graph is empty: it has no nodes");
  if (graph->n_output == 0) return lp_error(im->diag, loc, "the graph has no outputs");
  LP_TRY(lp_read_opset(im, graph));
  LP_TRY(lp_functions_index(im));
  im->import_nodes = lp_import_nodes;
  lp_scope outer = lp_scope_open(im, NULL), scope = lp_scope_open(im, &outer);
  lp_op *func = NULL;
  if (graph != im->model->graph) LP_TRY(lp_scope_add_initializers(im, &outer, im->model->graph));
  LP_TRY(lp_scope_add_initializers(im, &scope, graph));
  LP_TRY(lp_bindings_check(im, graph));
  LP_TRY(import_inputs(im, &scope, graph, &func));
  LP_TRY(lp_import_nodes(im, &scope, graph->node, graph->n_node, NULL));
  LP_TRY(import_outputs(im, &scope, graph, func));
  if (im->has_cache_switch) lp_op_set_i64(im->module, func, "cache_switch", 1);
  LP_TRY(lp_nonzero_bound(im));
  lp_external_report_overlaps(im);
  return check_outputs(im, graph);
}
