/* Writes one part as a ModelProto: its ports, its operators lowered by the table of rules, its constants. */
#include "backend/onnx/halves.h"

#include "backend/onnx/constants.h"
#include "backend/onnx/rules/rules.h"
#include "base/map.h"
#include "base/poly.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static const struct {
  lp_kind kind;
  onnx_rule *rule;
} rules[] = {
    {LP_OP_LINEAR, onnx_lower_linear},       {LP_OP_MATMUL, onnx_lower_matmul},
    {LP_OP_QUANTIZE, onnx_lower_quantize},   {LP_OP_DEQUANTIZE, onnx_lower_dequantize},
    {LP_OP_ATTENTION, onnx_lower_attention}, {LP_OP_KV_APPEND, onnx_lower_kv_append},
    {LP_OP_ROTARY, onnx_lower_rotary},       {LP_OP_NORM, onnx_lower_norm},
    {LP_OP_ADD_NORM, onnx_lower_add_norm},   {LP_OP_MAP, onnx_lower_map},
    {LP_OP_FUSED, onnx_lower_fused},         {LP_OP_SOFTMAX, onnx_lower_softmax},
    {LP_OP_REDUCE, onnx_lower_reduce},       {LP_OP_ARGMAX, onnx_lower_argmax},
    {LP_OP_TOPK, onnx_lower_topk},           {LP_OP_CUMSUM, onnx_lower_cumsum},
    {LP_OP_GATHER, onnx_lower_gather},       {LP_OP_GATHER_ELEMENTS, onnx_lower_gather_elements},
    {LP_OP_CONCAT, onnx_lower_concat},       {LP_OP_SLICE, onnx_lower_slice},
    {LP_OP_TRANSPOSE, onnx_lower_transpose}, {LP_OP_RESHAPE, onnx_lower_reshape},
    {LP_OP_EXPAND, onnx_lower_expand},       {LP_OP_PAD, onnx_lower_pad},
    {LP_OP_WINDOWS, onnx_lower_windows},     {LP_OP_IOTA, onnx_lower_iota},
    {LP_OP_DIMS, onnx_lower_dims},           {LP_OP_FILL, onnx_lower_fill},
};

/* NULL: ONNX has no operator for the kind. */
static onnx_rule *rule_of(lp_kind kind) {
  for (size_t i = 0; i < LP_COUNT(rules); i++)
    if (rules[i].kind == kind) return rules[i].rule;
  return NULL;
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static Onnx__TypeProto *type_of(const onnx_graph *g, lp_type type) {
  Onnx__TypeProto *out = LP_NEW(g->arena, Onnx__TypeProto);
  Onnx__TypeProto__Tensor *tensor = LP_NEW(g->arena, Onnx__TypeProto__Tensor);
  Onnx__TensorShapeProto *shape = LP_NEW(g->arena, Onnx__TensorShapeProto);
  onnx__type_proto__init(out);
  onnx__type_proto__tensor__init(tensor);
  onnx__tensor_shape_proto__init(shape);
  out->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  out->tensor_type = tensor;
  tensor->has_elem_type = 1;
  tensor->elem_type = lp_dtype_onnx(onnx_dtype(type.dtype));
  tensor->shape = shape;
  shape->n_dim = (size_t)type.rank;
  shape->dim = LP_NEW_ARRAY(g->arena, Onnx__TensorShapeProto__Dimension *, type.rank + 1);
  for (int32_t i = 0; i < type.rank; i++) {
    Onnx__TensorShapeProto__Dimension *dim = LP_NEW(g->arena, Onnx__TensorShapeProto__Dimension);
    onnx__tensor_shape_proto__dimension__init(dim);
    shape->dim[i] = dim;
    if (lp_poly_is_const(type.dim[i], &dim->dim_value)) {
      dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
      continue;
    }
    LP_OWNED(lp_buf_free) lp_buf text = {0};
    lp_poly_print(type.dim[i], &g->module->symbols, &text);
    dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    dim->dim_param = lp_arena_strdup(g->arena, lp_buf_text(&text));
  }
  return out;
}

static Onnx__ValueInfoProto **infos(const onnx_graph *g, const onnx_ports *ports) {
  Onnx__ValueInfoProto **list = LP_NEW_ARRAY(g->arena, Onnx__ValueInfoProto *, ports->count + 1);
  for (size_t i = 0; i < ports->count; i++) {
    list[i] = LP_NEW(g->arena, Onnx__ValueInfoProto);
    onnx__value_info_proto__init(list[i]);
    list[i]->name = lp_arena_strdup(g->arena, ports->data[i].name);
    list[i]->type = type_of(g, ports->data[i].type);
  }
  return list;
}

/* Reserves the names of ports before any other name is made. */
static void bind_ports(onnx_graph *g) {
  for (size_t i = 0; i < g->part->out.count; i++)
    lp_map_put(g->names, g->part->out.data[i].name, NULL);
  LP_FOR_VEC(const onnx_port, port, &g->part->in) {
    lp_map_put(g->names, port->name, NULL);
    if (port->value) onnx_bind(g, port->value, port->name);
  }
}

static lp_status lower(onnx_graph *g, const lp_op *op) {
  onnx_rule *rule = rule_of(op->kind);
  onnx_name *out = LP_NEW_ARRAY(g->arena, onnx_name, op->out_count + 1);
  g->op = op;
  if (!rule) return onnx_refuse(g, "the standard has no operators for it");
  LP_TRY(rule(g, op, out));
  for (int32_t i = 0; i < op->out_count; i++)
    if (out[i]) onnx_bind(g, op->out[i], out[i]);
  return LP_OK;
}

/* Gives the value the port's name. */
static lp_status emit_output(onnx_graph *g, const onnx_port *port) {
  onnx_name name;
  LP_TRY(onnx_value(g, port->value, &name));
  (void)ONNX_NODE(g, "Identity", name);
  g->nodes.data[g->nodes.count - 1]->output[0] = lp_arena_strdup(g->arena, port->name);
  return LP_OK;
}

static lp_status build(onnx_graph *g) {
  bind_ports(g);
  for (size_t i = 0; i < g->part->ops.count; i++)
    LP_TRY(lower(g, g->part->ops.data[i]));
  for (size_t i = 0; i < g->part->out.count; i++)
    LP_TRY(emit_output(g, &g->part->out.data[i]));
  return LP_OK;
}

/* What a viewer such as Netron shows of the model: what it is a part of, and where that runs. */
static void describe(const onnx_graph *g, Onnx__ModelProto *model) {
  const char *const text[][2] = {{"llmpart.model", g->module->name ? g->module->name : ""},
                                 {"llmpart.place", lp_module_place_name(g->module, g->part->side)},
                                 {"llmpart.turn", lp_arena_format(g->arena, "%" PRId32, g->part->turn)}};
  model->producer_name = lp_arena_strdup(g->arena, "llmpart");
  model->producer_version = lp_arena_strdup(g->arena, LP_VERSION);
  model->n_metadata_props = LP_COUNT(text);
  model->metadata_props = LP_NEW_ARRAY(g->arena, Onnx__StringStringEntryProto *, LP_COUNT(text));
  for (size_t i = 0; i < LP_COUNT(text); i++) {
    model->metadata_props[i] = LP_NEW(g->arena, Onnx__StringStringEntryProto);
    onnx__string_string_entry_proto__init(model->metadata_props[i]);
    model->metadata_props[i]->key = lp_arena_strdup(g->arena, text[i][0]);
    model->metadata_props[i]->value = lp_arena_strdup(g->arena, text[i][1]);
  }
}

static void pack(const onnx_graph *g, lp_buf *out) {
  Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
  Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
  Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};
  graph.name = lp_arena_format(g->arena, "%s.%s.%" PRId32, g->module->name,
                               lp_module_place_name(g->module, g->part->side), g->part->turn);
  graph.n_node = g->nodes.count;
  graph.node = g->nodes.data;
  graph.n_initializer = g->tensors.count;
  graph.initializer = g->tensors.data;
  graph.n_input = g->part->in.count;
  graph.input = infos(g, &g->part->in);
  graph.n_output = g->part->out.count;
  graph.output = infos(g, &g->part->out);
  opset.has_version = 1;
  opset.version = g->opset;
  model.has_ir_version = 1;
  model.ir_version = g->opset >= 21 ? 10 : 8; /* the first version with this opset */
  describe(g, &model);
  model.n_opset_import = 1;
  model.opset_import = opsets;
  model.graph = &graph;
  size_t size = onnx__model_proto__get_packed_size(&model);
  LP_OWNED(lp_free_at) uint8_t *bytes = lp_alloc(size + 1);
  onnx__model_proto__pack(&model, bytes);
  lp_buf_append(out, bytes, size);
}

lp_status onnx_part_write(lp_module *module, onnx_part *part, onnx_store *store, int64_t opset, lp_diag *diag) {
  onnx_graph g = {.module = module,
                  .arena = lp_arena_create(),
                  .diag = diag,
                  .opset = opset,
                  .part = part,
                  .store = store,
                  .names = lp_map_create(),
                  .values = lp_map_create(),
                  .made = lp_map_create()};
  size_t before = part->in.count; /* the lowering adds sizes; their names outlive its arena */
  lp_status status = build(&g);
  if (status == LP_OK) pack(&g, &part->bytes);
  for (size_t i = before; i < part->in.count; i++)
    part->in.data[i].name = lp_arena_strdup(module->arena, part->in.data[i].name);
  lp_vec_free(&g.nodes);
  lp_vec_free(&g.tensors);
  lp_map_free(g.names);
  lp_map_free(g.values);
  lp_map_free(g.made);
  lp_arena_free(g.arena);
  return status;
}
