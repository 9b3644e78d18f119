/* Model-local functions are inlined: later stages do not know them. */
#include "base/map.h"
#include "frontend/onnx/identify.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/node.h"
#include "frontend/onnx/scope.h"

enum { ATTRIBUTE_PROTO_FIELD = 11 }; /* FunctionProto.attribute_proto, younger than the installed onnx.proto */

/* ---- functions ---- */

static const char *function_key(lp_arena *arena, const char *domain, const char *name) {
  return lp_arena_format(arena, "%s:%s", lp_streq(domain, "ai.onnx") ? "" : domain, name);
}

lp_status lp_functions_index(lp_importer *im) {
  LP_FOR_REFS(Onnx__FunctionProto, function, im->model->functions, im->model->n_functions) {
    const char *key = function_key(im->scratch, lp_text(function->domain), lp_text(function->name));
    if (lp_map_put(im->functions, key, function))
      return lp_error(im->diag, LP_LOC_FILE(im->path), "function '%s' is defined twice", lp_text(function->name));
  }
  return LP_OK;
}

const Onnx__FunctionProto *lp_function_find(const lp_importer *im, const Onnx__NodeProto *node) {
  if (lp_map_count(im->functions) == 0) return NULL;
  return lp_map_get(im->functions, function_key(im->scratch, lp_node_domain(node), lp_text(node->op_type)));
}

/* Reads the function's attributes that have a default value. */
static void read_defaults(lp_importer *im, const Onnx__FunctionProto *function, lp_call *call) {
  ProtobufCAllocator allocator = lp_importer_allocator(im);
  const ProtobufCMessage *base = &function->base;
  call->defaults = LP_NEW_ARRAY(im->scratch, Onnx__AttributeProto *, base->n_unknown_fields + 1);
  LP_FOR_EACH(const ProtobufCMessageUnknownField, field, base->unknown_fields, base->n_unknown_fields) {
    if (field->tag != ATTRIBUTE_PROTO_FIELD || field->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) continue;
    size_t header = 0; /* the field's key and length precede it */
    while (header < field->len && (field->data[header] & 0x80))
      header++;
    if (++header > field->len) continue;
    Onnx__AttributeProto *attribute =
        onnx__attribute_proto__unpack(&allocator, field->len - header, field->data + header);
    if (attribute) call->defaults[call->default_count++] = attribute;
  }
}

static int64_t function_opset(const lp_importer *im, const Onnx__FunctionProto *function) {
  for (size_t i = 0; i < function->n_opset_import; i++) {
    const char *domain = lp_text(function->opset_import[i]->domain);
    if (!domain[0] || lp_streq(domain, "ai.onnx")) return function->opset_import[i]->version;
  }
  return im->opset;
}

static lp_status bind_arguments(lp_importer *im, const lp_scope *scope, const Onnx__NodeProto *node,
                                const Onnx__FunctionProto *function, lp_loc loc, lp_scope *body) {
  if (node->n_input > function->n_input || node->n_output > function->n_output)
    return lp_error(im->diag, loc, "%zu inputs and %zu outputs, but the function has %zu and %zu", node->n_input,
                    node->n_output, function->n_input, function->n_output);
  for (size_t i = 0; i < function->n_input; i++) {
    const char *name = i < node->n_input ? lp_text(node->input[i]) : "";
    lp_value *value = NULL;
    if (name[0]) {
      LP_TRY(lp_scope_find(im, scope, name, &value));
      if (!value) return lp_error(im->diag, loc, "input '%s' is made by no node, initializer or graph input", name);
    }
    LP_TRY(lp_scope_define(im, body, lp_text(function->input[i]), value, loc));
  }
  return LP_OK;
}

static lp_status bind_results(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, lp_loc loc,
                              const lp_scope *body, const Onnx__FunctionProto *function) {
  for (size_t i = 0; i < node->n_output; i++) {
    lp_value *value;
    if (!lp_text(node->output[i])[0]) continue;
    LP_TRY(lp_scope_result(im, body, lp_text(function->output[i]), loc, &value));
    LP_TRY(lp_scope_define(im, scope, lp_text(node->output[i]), value, loc));
  }
  return LP_OK;
}

lp_status lp_inline_function(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node,
                             const Onnx__FunctionProto *function, const lp_call *call, lp_loc loc) {
  LP_TRY(lp_import_enter(im, loc));
  lp_call inner = {.outer = call, .node = node, .name = loc.node};
  read_defaults(im, function, &inner);
  lp_scope body = lp_scope_open(im, NULL);
  LP_TRY(bind_arguments(im, scope, node, function, loc, &body));
  int64_t opset = im->opset;
  im->opset = function_opset(im, function);
  LP_TRY(im->import_nodes(im, &body, function->node, function->n_node, &inner));
  im->opset = opset;
  im->depth--;
  return bind_results(im, scope, node, loc, &body, function);
}
