/* One node becomes one operator: kind, operands, attributes, results and their types. */
#include "frontend/onnx/node.h"
#include "base/map.h"
#include "frontend/onnx/attr.h"
#include "frontend/onnx/graph.h"
#include "frontend/onnx/identify.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/rows.h"
#include "frontend/onnx/scope.h"
#include "frontend/onnx/tensor.h"

static lp_status find_kind(lp_importer *im, const Onnx__NodeProto *node, lp_loc loc, lp_kind *out) {
  if (lp_kind_find(im, node, out)) return LP_OK;
  lp_status status = lp_error(im->diag, loc, "operator '%s' is not supported", lp_text(node->op_type));
  lp_note_subgraphs(im, node, loc);
  lp_note_near_kinds(im, node, loc);
  return status;
}

/* ---- operands and results ---- */

static lp_status find_operands(lp_importer *im, const lp_scope *scope, const Onnx__NodeProto *node, lp_loc loc,
                               lp_node_form *form) {
  if (node->n_input > LP_NODE_OPERANDS)
    return lp_error(im->diag, loc, "%zu inputs, at most %d are supported", node->n_input, LP_NODE_OPERANDS);
  form->in = LP_NEW_ARRAY(im->scratch, lp_value *, node->n_input + 5);
  for (size_t i = 0; i < node->n_input; i++) {
    const char *name = lp_text(node->input[i]);
    if (!name[0]) continue;
    LP_TRY(lp_scope_find(im, scope, name, &form->in[i]));
    const lp_scope *at = scope;
    while (at && !lp_map_has(at->values, name))
      at = at->parent;
    if (!at && lp_scope_find_list(scope, name))
      return lp_error(im->diag, loc, "input '%s' is a sequence, a tensor is wanted", name);
    if (!at) return lp_error(im->diag, loc, "input '%s' is made by no node, initializer or graph input", name);
  }
  form->in_count = (int32_t)node->n_input;
  while (form->in_count > 0 && !form->in[form->in_count - 1])
    form->in_count--;
  return LP_OK;
}

static lp_status check_count(lp_importer *im, lp_loc loc, const char *what, int32_t found, int32_t min, int32_t max) {
  if (found >= min && (max < 0 || found <= max)) return LP_OK;
  if (max < 0) return lp_error(im->diag, loc, "%d %s, at least %d wanted", found, what, min);
  if (min == max) return lp_error(im->diag, loc, "%d %s, %d wanted", found, what, min);
  return lp_error(im->diag, loc, "%d %s, %d to %d wanted", found, what, min, max);
}

static int32_t result_count(const Onnx__NodeProto *node) {
  size_t count = node->n_output;
  while (count > 0 && !lp_text(node->output[count - 1])[0])
    count--;
  return (int32_t)count;
}

static lp_status name_results(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, const lp_op *op) {
  for (int32_t i = 0; i < op->out_count; i++) {
    const char *name = lp_text(node->output[i]);
    if (name[0]) LP_TRY(lp_scope_define(im, scope, name, lp_op_out(op, i), op->loc));
  }
  return LP_OK;
}

/* ---- Constant ---- */

static lp_status import_constant_list(lp_importer *im, const Onnx__AttributeProto *a, lp_loc loc, lp_value **out) {
  const char *name = lp_text(a->name);
  int64_t count = 1;
  if (lp_streq(name, "value_int")) {
    *out = lp_import_constant(im, loc, LP_I64, 0, NULL, &a->i, sizeof(a->i));
  } else if (lp_streq(name, "value_float")) {
    *out = lp_import_constant(im, loc, LP_F32, 0, NULL, &a->f, sizeof(a->f));
  } else if (lp_streq(name, "value_ints")) {
    count = (int64_t)a->n_ints;
    *out = lp_import_constant(im, loc, LP_I64, 1, &count, a->ints, a->n_ints * sizeof(int64_t));
  } else if (lp_streq(name, "value_floats")) {
    count = (int64_t)a->n_floats;
    *out = lp_import_constant(im, loc, LP_F32, 1, &count, a->floats, a->n_floats * sizeof(float));
  } else {
    return lp_error(im->diag, loc, "a constant of the form '%s' is not supported", name);
  }
  return LP_OK;
}

static lp_status import_constant(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, const lp_call *call,
                                 lp_loc loc) {
  if (node->n_output != 1 || node->n_attribute != 1)
    return lp_error(im->diag, loc, "a constant has one value and one output");
  const Onnx__AttributeProto *a = lp_attribute_resolve(node->attribute[0], call);
  const char *name = lp_text(node->output[0]);
  lp_value *value = NULL;
  if (!a) return lp_error(im->diag, loc, "a constant has one value and one output");
  if (lp_streq(lp_text(node->attribute[0]->name), "value") && a->t)
    LP_TRY(lp_import_tensor(im, a->t, loc, name, &value));
  else
    LP_TRY(import_constant_list(im, a, loc, &value));
  return lp_scope_define(im, scope, name, value, loc);
}

/* ---- nodes ---- */

static lp_status import_operator(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, const lp_call *call,
                                 lp_loc loc) {
  lp_node_form form = {0};
  LP_TRY(find_kind(im, node, loc, &form.kind));
  const lp_op_info *info = lp_op_info_get(form.kind);
  LP_TRY(find_operands(im, scope, node, loc, &form));
  int32_t out_count = result_count(node);
  LP_TRY(check_count(im, loc, "outputs", out_count, info->out_min, info->out_max));
  LP_TRY(lp_normalise(im, node, call, loc, &form));
  LP_TRY(check_count(im, loc, "inputs", form.in_count, info->in_min, info->in_max));
  lp_type *types = LP_NEW_ARRAY(im->scratch, lp_type, out_count);
  for (int32_t i = 0; i < out_count; i++)
    types[i] = form.kind == LP_ONNX_NonZero ? lp_nonzero_type(im, form.in[0]) : (lp_type){.rank = -1};
  lp_op *op = lp_op_create(im->module, form.kind, loc, form.in_count, form.in, out_count, types);
  LP_TRY(lp_import_attributes(im, op, node, call, form.consumed));
  if (form.has_axis) lp_op_set_i64(im->module, op, "axis", form.axis);
  if (form.flatten) lp_op_set_bool(im->module, op, "flatten", true);
  if (form.shares_buffer) lp_op_set_i64(im->module, op, "past_present_share_buffer", 1);
  lp_op_append(im->block, op);
  LP_TRY(lp_op_infer(im->module, op, im->diag));
  lp_nonzero_count(im, op);
  return name_results(im, scope, node, op);
}

static lp_status import_node(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, const lp_call *call) {
  lp_loc loc = lp_node_loc(im, node, call);
  if (++im->node_count > LP_IMPORT_NODES)
    return lp_error(im->diag, loc, "the graph has more than %d operators once functions are inlined", LP_IMPORT_NODES);
  if (lp_arena_bytes(im->module->arena) + lp_arena_bytes(im->scratch) - im->unpacked > LP_IMPORT_BYTES)
    return lp_error(im->diag, loc, "its names and attributes take more than %d MiB once functions are inlined",
                    LP_IMPORT_BYTES >> 20);
  if (!lp_node_domain(node)[0] && im->opset == 0) return lp_refuse_no_opset(im, loc);
  const Onnx__FunctionProto *function = lp_function_find(im, node);
  if (function) return lp_inline_function(im, scope, node, function, call, loc);
  if (!lp_node_domain(node)[0] && lp_streq(node->op_type, "Constant"))
    return import_constant(im, scope, node, call, loc);
  if (!lp_node_domain(node)[0] && lp_streq(node->op_type, "Einsum"))
    return lp_import_einsum(im, scope, node, call, loc);
  if (!lp_node_domain(node)[0] && lp_streq(node->op_type, "If")) return lp_import_if(im, scope, node, call, loc);
  if (!lp_node_domain(node)[0] && lp_streq(node->op_type, "Loop")) return lp_import_loop(im, scope, node, call, loc);
  if (!lp_node_domain(node)[0] && lp_is_sequence_operator(lp_text(node->op_type)))
    return lp_import_sequence(im, scope, node, call, loc);
  return import_operator(im, scope, node, call, loc);
}

lp_status lp_import_nodes(lp_importer *im, lp_scope *scope, Onnx__NodeProto **nodes, size_t count,
                          const lp_call *call) {
  if (!call && im->depth == 0) { /* only nodes of the graph itself */
    Onnx__NodeProto **kept = LP_NEW_ARRAY(im->scratch, Onnx__NodeProto *, count);
    count = lp_keep_latest_constants(im, nodes, count, kept);
    nodes = kept;
  }
  size_t *order = LP_NEW_ARRAY(im->scratch, size_t, count);
  LP_TRY(lp_sort_nodes(im, nodes, count, call, order));
  for (size_t i = 0; i < count; i++)
    LP_TRY(import_node(im, scope, nodes[order[i]], call));
  return LP_OK;
}
