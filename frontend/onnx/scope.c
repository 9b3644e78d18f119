/* Names of values in a graph, in a function, and in the body of a node. */
#include "frontend/onnx/scope.h"
#include "base/map.h"
#include "frontend/onnx/identify.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/tensor.h"

lp_scope lp_scope_open(lp_importer *im, const lp_scope *parent) {
  lp_scope scope = {
      .parent = parent, .values = lp_map_create(), .initializers = lp_map_create(), .lists = lp_map_create()};
  lp_vec_push(&im->maps, scope.values);
  lp_vec_push(&im->maps, scope.initializers);
  lp_vec_push(&im->maps, scope.lists);
  return scope;
}

lp_status lp_scope_find(lp_importer *im, const lp_scope *scope, const char *name, lp_value **out) {
  *out = NULL;
  for (; scope; scope = scope->parent) {
    if (lp_map_has(scope->values, name)) {
      *out = lp_map_get(scope->values, name);
      return LP_OK;
    }
    const Onnx__TensorProto *tensor = lp_map_get(scope->initializers, name);
    if (!tensor) continue;
    lp_loc loc = {.file = im->file, .node = lp_arena_strdup(im->module->arena, name), .op = "initializer"};
    LP_TRY(lp_import_tensor(im, tensor, loc, name, out));
    lp_map_put(scope->values, name, *out);
    return LP_OK;
  }
  return LP_OK;
}

const lp_list *lp_scope_find_list(const lp_scope *scope, const char *name) {
  for (; scope; scope = scope->parent)
    if (lp_map_has(scope->lists, name)) return lp_map_get(scope->lists, name);
  return NULL;
}

lp_status lp_scope_define(lp_importer *im, lp_scope *scope, const char *name, lp_value *value, lp_loc loc) {
  if (lp_map_has(scope->values, name) || lp_map_has(scope->initializers, name) || lp_map_has(scope->lists, name))
    return lp_error(im->diag, loc, "value '%s' is defined twice", name);
  lp_map_put(scope->values, name, value);
  if (value && !value->name) value->name = lp_arena_strdup(im->module->arena, name);
  return LP_OK;
}

static lp_status refuse_sparse(const lp_importer *im, const Onnx__GraphProto *graph) {
  const Onnx__TensorProto *values = graph->sparse_initializer[0]->values;
  const char *name = values ? lp_text(values->name) : "";
  return lp_error(im->diag, lp_reader_loc(im, graph, name), "initializer '%s' is sparse, which is not supported", name);
}

lp_status lp_scope_add_initializers(lp_importer *im, lp_scope *scope, const Onnx__GraphProto *graph) {
  lp_loc loc = LP_LOC_FILE(im->path);
  if (graph->n_sparse_initializer > 0) return refuse_sparse(im, graph);
  LP_FOR_REFS(Onnx__TensorProto, tensor, graph->initializer, graph->n_initializer) {
    const char *name = lp_text(tensor->name);
    if (!name[0]) return lp_error(im->diag, loc, "an initializer has no name");
    if (lp_map_has(scope->initializers, name)) return lp_error(im->diag, loc, "value '%s' is defined twice", name);
    lp_tensor_data checked;
    lp_dtype dtype;
    lp_loc at = lp_dtype_from_onnx(tensor->data_type, &dtype) ? loc : lp_reader_loc(im, graph, name);
    LP_TRY(lp_tensor_check(im, tensor, at, name, &checked));
    bool external = checked.file && checked.file != im->file && checked.bytes > 0;
    if (external) lp_vec_push(&im->regions, ((lp_region){checked.file, name, checked.offset, checked.bytes}));
    lp_map_put(scope->initializers, name, tensor);
  }
  return LP_OK;
}

lp_status lp_scope_result(lp_importer *im, const lp_scope *body, const char *name, lp_loc loc, lp_value **out) {
  LP_TRY(lp_scope_find(im, body, name, out));
  if (*out) return LP_OK;
  if (lp_scope_find_list(body, name))
    return lp_error(im->diag, loc, "output '%s' is a sequence, which is not supported as a result", name);
  return lp_error(im->diag, loc, "output '%s' is made by no node", name);
}

lp_status lp_import_enter(lp_importer *im, lp_loc loc) {
  if (++im->depth > LP_IMPORT_DEPTH)
    return lp_error(im->diag, loc, "functions and branches nest deeper than %d levels", LP_IMPORT_DEPTH);
  return LP_OK;
}

lp_status lp_import_body(lp_importer *im, lp_scope *body, const Onnx__GraphProto *graph, const lp_call *call,
                         lp_loc loc) {
  LP_TRY(lp_import_enter(im, loc));
  LP_TRY(lp_scope_add_initializers(im, body, graph));
  LP_TRY(im->import_nodes(im, body, graph->node, graph->n_node, call));
  im->depth--;
  return LP_OK;
}
