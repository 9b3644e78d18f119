/* The graph being written: nodes, their attributes, tensors, and the names that connect them. The graph's arena holds
 * everything until the model is packed. */
#include "backend/onnx/graph.h"

#include "base/map.h"

/* protobuf-c's members are char *, although it only reads what it packs. */
static char *text(const onnx_graph *g, const char *value) {
  return lp_arena_strdup(g->arena, value);
}

onnx_name onnx_unique(onnx_graph *g, const char *wanted) {
  const char *name = wanted;
  for (int n = 2; lp_map_has(g->names, name); n++)
    name = lp_arena_format(g->arena, "%s.%d", wanted, n);
  lp_map_put(g->names, name, NULL);
  return text(g, name);
}

/* The list with room for one item more: its capacity is the next power of two. */
static void *grown(const onnx_graph *g, void *items, size_t count, size_t item_size) {
  if (count & (count - 1)) return items;
  void *more = lp_arena_array(g->arena, count ? 2 * count : 1, item_size);
  if (count) memcpy(more, items, count * item_size);
  return more;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

onnx_name onnx_node(onnx_graph *g, const char *type, int32_t count, const onnx_name *in) {
  Onnx__NodeProto *node = LP_NEW(g->arena, Onnx__NodeProto);
  onnx__node_proto__init(node);
  const char *owner = g->op ? lp_op_str(g->op, "name", lp_op_info_get(g->op->kind)->name) : "size";
  while (count > 0 && !in[count - 1])
    count--;
  node->op_type = text(g, type);
  node->n_input = (size_t)count;
  node->input = LP_NEW_ARRAY(g->arena, char *, count + 1);
  for (int32_t i = 0; i < count; i++)
    node->input[i] = text(g, in[i] ? in[i] : "");
  onnx_name out = onnx_unique(g, lp_arena_format(g->arena, "%s/%s", owner, type));
  node->name = text(g, out);
  node->n_output = 1;
  node->output = grown(g, NULL, 0, sizeof *node->output);
  node->output[0] = text(g, out);
  lp_vec_push(&g->nodes, node);
  return out;
}

static Onnx__NodeProto *last_node(const onnx_graph *g) {
  return g->nodes.data[g->nodes.count - 1];
}

onnx_name onnx_more(onnx_graph *g) {
  Onnx__NodeProto *node = last_node(g);
  onnx_name out = onnx_unique(g, lp_arena_format(g->arena, "%s:%zu", node->name, node->n_output));
  node->output = grown(g, node->output, node->n_output, sizeof *node->output);
  node->output[node->n_output++] = text(g, out);
  return out;
}

static Onnx__AttributeProto *add_attribute(onnx_graph *g, const char *name, Onnx__AttributeProto__AttributeType type) {
  Onnx__NodeProto *node = last_node(g);
  node->attribute = grown(g, node->attribute, node->n_attribute, sizeof *node->attribute);
  Onnx__AttributeProto *attribute = LP_NEW(g->arena, Onnx__AttributeProto);
  onnx__attribute_proto__init(attribute);
  attribute->name = text(g, name);
  attribute->has_type = 1;
  attribute->type = type;
  node->attribute[node->n_attribute++] = attribute;
  return attribute;
}

void onnx_attr_i(onnx_graph *g, const char *name, int64_t value) {
  Onnx__AttributeProto *attribute = add_attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
  attribute->has_i = 1;
  attribute->i = value;
}

void onnx_attr_f(onnx_graph *g, const char *name, double value) {
  Onnx__AttributeProto *attribute = add_attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
  attribute->has_f = 1;
  attribute->f = (float)value;
}

void onnx_attr_s(onnx_graph *g, const char *name, const char *value) {
  Onnx__AttributeProto *attribute = add_attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
  attribute->has_s = 1;
  attribute->s = (ProtobufCBinaryData){.len = strlen(value), .data = lp_arena_copy(g->arena, value, strlen(value))};
}

void onnx_attr_ints(onnx_graph *g, const char *name, const int64_t *values, int32_t count) {
  Onnx__AttributeProto *attribute = add_attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
  attribute->n_ints = (size_t)count;
  attribute->ints = lp_arena_copy(g->arena, values, sizeof *values * (size_t)count);
}

void onnx_attr_tensor(onnx_graph *g, const char *name, Onnx__TensorProto *tensor) {
  add_attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t = tensor;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

Onnx__TensorProto *onnx_tensor(onnx_graph *g, lp_dtype dtype, int32_t rank, const int64_t *dim) {
  Onnx__TensorProto *tensor = LP_NEW(g->arena, Onnx__TensorProto);
  onnx__tensor_proto__init(tensor);
  tensor->has_data_type = 1;
  tensor->data_type = lp_dtype_onnx(dtype);
  tensor->n_dims = (size_t)rank;
  tensor->dims = rank > 0 ? lp_arena_copy(g->arena, dim, sizeof *dim * (size_t)rank) : NULL;
  return tensor;
}

void onnx_tensor_set_data(onnx_graph *g, Onnx__TensorProto *tensor, const void *data, size_t bytes) {
  tensor->has_raw_data = 1;
  tensor->raw_data.len = bytes;
  tensor->raw_data.data = bytes ? lp_arena_copy(g->arena, data, bytes) : NULL;
}

onnx_name onnx_initializer(onnx_graph *g, Onnx__TensorProto *tensor, const char *wanted) {
  onnx_name name = onnx_unique(g, wanted);
  tensor->name = text(g, name);
  lp_vec_push(&g->tensors, tensor);
  return name;
}

onnx_name onnx_i64s(onnx_graph *g, const int64_t *values, int32_t count) {
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  lp_buf_puts(&key, "i64s");
  for (int32_t i = 0; i < count; i++)
    lp_buf_printf(&key, "_%" PRId64, values[i]);
  onnx_name name = lp_map_get(g->made, lp_buf_text(&key));
  if (!name) {
    int64_t size = count;
    Onnx__TensorProto *tensor = onnx_tensor(g, LP_I64, 1, &size);
    onnx_tensor_set_data(g, tensor, values, sizeof *values * (size_t)count);
    name = onnx_initializer(g, tensor, lp_buf_text(&key));
    lp_map_put(g->made, lp_buf_text(&key), (void *)(uintptr_t)name);
  }
  return name;
}

onnx_name onnx_scalar(onnx_graph *g, lp_dtype dtype, double value) {
  const char *key = lp_arena_format(g->arena, "%s_%.9g", lp_dtype_name(dtype), value);
  onnx_name name = lp_map_get(g->made, key);
  if (name) return name;
  uint64_t data = 0;
  lp_array one = {.dtype = dtype, .data = &data};
  if (lp_dtype_is_float(dtype))
    lp_array_set_f64(&one, 0, value);
  else
    lp_array_set_i64(&one, 0, (int64_t)value);
  Onnx__TensorProto *tensor = onnx_tensor(g, dtype, 0, NULL);
  onnx_tensor_set_data(g, tensor, &data, (size_t)lp_dtype_bits(dtype) / 8);
  name = onnx_initializer(g, tensor, key);
  lp_map_put(g->made, key, (void *)(uintptr_t)name);
  return name;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static const char *value_key(const onnx_graph *g, const lp_value *value) {
  return lp_arena_format(g->arena, "%p", (const void *)value);
}

void onnx_bind(onnx_graph *g, const lp_value *value, onnx_name name) {
  lp_map_put(g->values, value_key(g, value), (void *)(uintptr_t)name);
}

onnx_name onnx_bound(const onnx_graph *g, const lp_value *value) {
  return lp_map_get(g->values, value_key(g, value));
}

onnx_name onnx_cast(onnx_graph *g, onnx_name x, lp_dtype dtype) {
  onnx_name y = ONNX_NODE(g, "Cast", x);
  onnx_attr_i(g, "to", lp_dtype_onnx(dtype));
  return y;
}

lp_dtype onnx_dtype(lp_dtype dtype) {
  if (dtype == LP_I4 || dtype == LP_I2) return LP_I8;
  return dtype == LP_U4 || dtype == LP_U2 ? LP_U8 : dtype;
}

lp_status onnx_refuse(const onnx_graph *g, const char *why) {
  return lp_error(g->diag, g->op->loc, "'%s' cannot be written in ONNX opset %" PRId64 ": %s",
                  lp_op_info_get(g->op->kind)->name, g->opset, why);
}

/* ---- nodes of several rules -------------------------------------------------------------------------------------- */

onnx_name onnx_transpose(onnx_graph *g, onnx_name x, const int64_t *perm, int32_t rank) {
  onnx_name y = ONNX_NODE(g, "Transpose", x);
  onnx_attr_ints(g, "perm", perm, rank);
  return y;
}

/* From opset 18 on all reductions take their axes as an input; in older opsets only the sum does. */
onnx_name onnx_reduce(onnx_graph *g, const char *type, onnx_name x, const int64_t *axes, int32_t count, bool keep) {
  bool as_input = g->opset >= 18 || lp_streq(type, "ReduceSum");
  onnx_name y = as_input ? ONNX_NODE(g, type, x, onnx_i64s(g, axes, count)) : ONNX_NODE(g, type, x);
  if (!as_input) onnx_attr_ints(g, "axes", axes, count);
  onnx_attr_i(g, "keepdims", keep);
  return y;
}
