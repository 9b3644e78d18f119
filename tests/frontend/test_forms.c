/* Imports the forms that the same model takes in files: attributes without types, functions, constants, elements of
 * tensors, names of dimensions, and operators of older opsets. */
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "tests/frontend/onnx_writer.h"
#include "tests/suite.h"

ONNX_CASE;

static const float numbers[] = {1, 2, 3, 4, 5, 6};

/* y of nodes and one node more, unless NULL, on x [2,3], a constant that no operator folds, and given [2,n]. */
static lp_buf graph_of(const char *nodes, lp_buf *node) {
  static const int64_t two = 2;
  static const double wide = 2;
  static const uint16_t half = 0x4000; /* 2 */
  lp_buf graph = {0};
  onnx_input(&graph, "given", ONNX_F32, "2 n");
  onnx_initializer(&graph, onnx_tensor("x", ONNX_F32, "2 3", numbers, sizeof numbers));
  onnx_initializer(&graph, onnx_tensor("two", ONNX_I64, "", &two, sizeof two));
  onnx_initializer(&graph, onnx_tensor("v2", ONNX_I64, "1", &two, sizeof two));
  onnx_initializer(&graph, onnx_tensor("wide", 11, "1", &wide, sizeof wide));
  onnx_initializer(&graph, onnx_tensor("half", 10, "1", &half, sizeof half));
  onnx_nodes(&graph, nodes);
  if (node) onnx_add(&graph, *node);
  onnx_output(&graph, "y", 0, NULL);
  return graph;
}

static lp_buf model_of(const char *nodes, lp_buf *node, int64_t opset) {
  lp_buf graph = graph_of(nodes, node);
  return onnx_model(&graph, opset);
}

static double element(const lp_array *array, int64_t i) {
  lp_tensor tensor = {.type = {.dtype = array->dtype}, .data = array->data};
  return lp_tensor_f64(&tensor, i);
}

/* The type and numbers of the result: "f32[2]: 1 2". */
static void gives(lp_buf model, const char *about, const char *wanted) {
  lp_buf found = {0};
  lp_diag_clear(diag);
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(module, "%s: %s", about, onnx_message(diag, 0));
  ck_assert_int_eq(lp_module_verify(module, diag), LP_OK);
  lp_value *y = lp_op_in(lp_block_terminator(lp_module_find_func(module, "main")->region), 0);
  lp_arena *arena = lp_arena_create();
  int64_t sym[16] = {0}, count;
  lp_array out;
  ck_assert(lp_type_static_numel(y->type, &count));
  ck_assert_msg(lp_value_eval(module, y, NULL, 0, sym, arena, &out, diag) == LP_OK, "%s: %s", about,
                onnx_message(diag, 0));
  lp_buf_printf(&found, "%s:", onnx_type_text(module, y));
  for (int64_t i = 0; i < count; i++)
    lp_buf_printf(&found, " %g", element(&out, i));
  ck_assert_msg(strcmp(lp_buf_text(&found), wanted) == 0, "%s: found %s, %s wanted", about, lp_buf_text(&found),
                wanted);
  lp_buf_free(&found);
  lp_arena_free(arena);
  lp_module_free(module);
}

static void refuses(lp_buf model, const char *about, const char *text) {
  lp_diag_clear(diag);
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(!module, "imported: %s", about);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(onnx_message(diag, 0), text), "%s: found '%s', expected '%s'", about, onnx_message(diag, 0),
                text);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

/* An attribute without a type: its fields decide. AttributeProto: f 2, i 3, s 4, t 5, floats 7, ints 8. */
static void untyped(lp_buf *node, const char *name, uint32_t field, const void *data, size_t size) {
  lp_buf a = {0};
  onnx_text(&a, 1, name);
  if (field == 3)
    onnx_varint(&a, 3, *(const uint8_t *)data);
  else if (field == 2) {
    lp_buf_append(&a, "\x15", 1); /* field 2, 4 bytes */
    lp_buf_append(&a, data, 4);
  } else if (field > 0)
    onnx_bytes(&a, field, data, size);
  onnx_sub(node, 5, &a);
}

LP_TEST(reads_attributes_without_types) {
  static const float slope = 0.5f, pair[] = {7, 8};
  lp_buf node = onnx_node("Flatten", "x", "y"), tensor = onnx_tensor("", ONNX_F32, "2", pair, sizeof pair);
  untyped(&node, "axis", 3, "\2", 1);
  gives(model_of("", &node, 17), "INT", "f32[6,1]: 1 2 3 4 5 6");
  node = onnx_node("LeakyRelu", "negative", "y");
  untyped(&node, "alpha", 2, &slope, 4);
  gives(model_of("Neg x > negative", &node, 17), "FLOAT", "f32[2,3]: -0.5 -1 -1.5 -2 -2.5 -3");
  node = onnx_node("Transpose", "x", "y");
  untyped(&node, "perm", 8, "\1\0", 2); /* packed */
  gives(model_of("", &node, 17), "INTS", "f32[3,2]: 1 4 2 5 3 6");
  node = onnx_node("Constant", "", "y");
  untyped(&node, "value_floats", 7, pair, sizeof pair);
  gives(model_of("", &node, 17), "FLOATS", "f32[2]: 7 8");
  node = onnx_node("Constant", "", "y");
  untyped(&node, "value", 5, tensor.data, tensor.size);
  gives(model_of("", &node, 17), "TENSOR", "f32[2]: 7 8");
  lp_buf_free(&tensor);
  node = onnx_node("Einsum", "x", "y");
  untyped(&node, "equation", 4, "ij->ji", 6);
  gives(model_of("", &node, 17), "STRING", "f32[3,2]: 1 4 2 5 3 6");
  node = onnx_node("Transpose", "x", "y");
  untyped(&node, "perm", 0, NULL, 0);
  refuses(model_of("", &node, 17), "no field", "attribute 'perm' is of type UNDEFINED, INTS wanted");
}

LP_TEST(refuses_attributes_of_other_types) {
  static const float pair[] = {1, 2};
  lp_buf node = onnx_node("LeakyRelu", "x", "y"), tensor = onnx_tensor("", ONNX_F32, "2", pair, sizeof pair);
  refuses(model_of("Flatten x > y axis=1.0", NULL, 17), "axis", "attribute 'axis' is of type FLOAT, INT wanted");
  refuses(model_of("Transpose x > y perm=a", NULL, 17), "perm", "attribute 'perm' is of type STRING, INTS wanted");
  refuses(model_of("Cast x > y to=1,", NULL, 17), "to", "attribute 'to' is of type INTS, INT wanted");
  onnx_attr_tensor(&node, "alpha", &tensor);
  refuses(model_of("", &node, 17), "alpha", "attribute 'alpha' is of type TENSOR, FLOAT wanted");
  node = onnx_node("LeakyRelu", "x", "y");
  onnx_attr_floats(&node, "alpha", 2, pair);
  refuses(model_of("", &node, 17), "alpha", "attribute 'alpha' is of type FLOATS, FLOAT wanted");
  node = onnx_node("LeakyRelu", "x", "y");
  onnx_attr_ref(&node, "alpha", "slope", 1);
  gives(model_of("", &node, 17), "a reference outside functions", "f32[2,3]: 1 2 3 4 5 6");
  node = onnx_node("ConstantOfShape", "v2", "y");
  lp_buf empty = {0};
  onnx_attr_ref(&empty, "value", "", 4); /* of type TENSOR without a tensor */
  lp_buf_append(&node, empty.data, empty.size);
  lp_buf_free(&empty);
  refuses(model_of("", &node, 17), "value", "attribute 'value' is of type TENSOR, TENSOR wanted");
}

LP_TEST(refuses_tensors_elsewhere) {
  lp_buf node = onnx_node("ConstantOfShape", "v2", "y");
  lp_buf tensor = onnx_external("", ONNX_F32, "1", "w.bin", "0", "4");
  onnx_write("w.bin", numbers, 4);
  onnx_attr_tensor(&node, "value", &tensor);
  gives(model_of("", &node, 17), "a small tensor in a file", "f32[2]: 1 1");
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

LP_TEST(reads_constants_of_all_forms) {
  gives(model_of("Constant > y value_int=3", NULL, 17), "value_int", "i64[]: 3");
  gives(model_of("Constant > y value_ints=3,4", NULL, 17), "value_ints", "i64[2]: 3 4");
  gives(model_of("Constant > y value_float=1.5", NULL, 17), "value_float", "f32[]: 1.5");
  refuses(model_of("Constant > y value_string=word", NULL, 17), "value_string",
          "node 'y' (Constant): error: a constant of the form 'value_string' is not supported");
  refuses(model_of("Constant > y", NULL, 17), "none", "a constant has one value and one output");
  refuses(model_of("Constant > y value_int=3 value_float=1.5", NULL, 17), "two",
          "a constant has one value and one output");
  refuses(model_of("Constant > y z value_int=3", NULL, 17), "two", "a constant has one value and one output");
  lp_buf node = onnx_node("Constant", "", "y");
  onnx_attr_ref(&node, "value_int", "number", 2);
  refuses(model_of("", &node, 17), "a reference", "a constant has one value and one output");
}

/* ---- elements of tensors ----------------------------------------------------------------------------------------- */

/* y = an initializer without raw data. TensorProto: floats 4, int32s 5, int64s 7, doubles 10, uint64s 11. */
static lp_buf typed_tensor(uint64_t type, uint32_t field, const void *data, size_t size, uint32_t extra) {
  lp_buf graph = {0}, t = {0}, segment = {0};
  onnx_varint(&t, 1, 2);
  onnx_varint(&t, 2, type);
  onnx_text(&t, 8, "w");
  onnx_bytes(&t, field, data, size);
  if (extra) onnx_sub(&t, extra, &segment);
  onnx_input(&graph, "given", ONNX_F32, "2 n");
  onnx_initializer(&graph, t);
  onnx_nodes(&graph, "Identity w > y");
  onnx_output(&graph, "y", 0, NULL);
  return onnx_model(&graph, 17);
}

static const struct {
  uint64_t type;
  uint32_t field;
  const char *data;
  size_t size;
  const char *wanted;
} typed[] = {
    {ONNX_F32, 4, "\0\0\x80\x3f\0\0\0\x40", 8, "f32[2]: 1 2"},
    {2, 5, "\1\2", 2, "u8[2]: 1 2"},
    {3, 5, "\1\2", 2, "i8[2]: 1 2"},
    {4, 5, "\1\2", 2, "u16[2]: 1 2"},
    {5, 5, "\1\2", 2, "i16[2]: 1 2"},
    {ONNX_I32, 5, "\1\2", 2, "i32[2]: 1 2"},
    {ONNX_I64, 7, "\1\2", 2, "i64[2]: 1 2"},
    {ONNX_BOOL, 5, "\1\0", 2, "bool[2]: 1 0"},
    {10, 5, "\x80\x78\x80\x80\1", 5, "f16[2]: 1 2"},
    {11, 10, "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40", 16, "f64[2]: 1 2"},
    {12, 11, "\1\2", 2, "u32[2]: 1 2"},
    {13, 11, "\1\2", 2, "u64[2]: 1 2"},
    {16, 5, "\x80\x7f\x80\x80\1", 5, "bf16[2]: 1 2"},
};

LP_LOOP_TEST(reads_elements, 0, LP_COUNT(typed)) {
  gives(typed_tensor(typed[_i].type, typed[_i].field, typed[_i].data, typed[_i].size, 0), typed[_i].wanted,
        typed[_i].wanted);
}

LP_TEST(refuses_elements) {
  refuses(typed_tensor(12, 11, "\1", 1, 0), "one of two", "tensor 'w' of u32[2] takes 8 bytes, its data has 4");
  refuses(typed_tensor(13, 11, "\1\2\3", 3, 0), "three", "tensor 'w' of u64[2] takes 16 bytes, its data has 24");
  refuses(typed_tensor(ONNX_F32, 7, "\1\2", 2, 0), "another list",
          "tensor 'w' of f32[2] takes 8 bytes, its data has 0");
  refuses(typed_tensor(ONNX_I64, 7, "\1\2", 2, 3), "a segment",
          "tensor 'w' is one segment of several, which is not supported");
  refuses(typed_tensor(10, 10, "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40", 16, 0), "doubles for f16",
          "tensor 'w' of f16[2] takes 4 bytes, its data has 0");
}

/* ---- names of dimensions ----------------------------------------------------------------------------------------- */

static const struct {
  const char *dims, *type;
} dimensions[] = {
    {"n", "f32[n]"},
    {"_n", "f32[_n]"},
    {"seq-len", "f32[seq_len]"},
    {"seq.len", "f32[seq_len]"},
    {"%n", "f32[d__n]"},
    {"a+m", "f32[a + m]"},
    {"a*m", "f32[a*m]"},
    {"(a+m)*2", "f32[2*a + 2*m]"},
    {"2*n", "f32[2]"}, /* the writer reads a number */
    {"n*2", "f32[2*n]"},
    {"m.n*2", "f32[2*m_n]"},
    {"m:n*2", "f32[2*m_n]"},
    {"?", "f32[d0]"},
    {"a+", "f32[a_]"},
    {"(a", "f32[d__a]"},
    {"a)", "f32[a_]"},
    {"(a)", "f32[d__a_]"},
    {"(a*2", "f32[d__a_2]"},
    {"()*a", "f32[d____a]"},
    {"a(b)", "f32[a_b_]"},
    {"a*@", "f32[a__]"},
    {"+a", "f32[d__a]"},
    {"a-1*m", "f32[a - m]"},
    {"a-b*2", "f32[a_b_2]"},
    {"a.b a_b", "f32[a_b,a_b_dim]"},
    {"a.b a:b a_b", "f32[a_b,a_b_dim,a_b_2]"},
};

LP_LOOP_TEST(names_dimensions, 0, LP_COUNT(dimensions)) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, dimensions[_i].dims);
  onnx_nodes(&graph, "Identity x > y");
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_buf model = onnx_model(&graph, 17);
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(module, "%s: %s", dimensions[_i].dims, onnx_message(diag, 0));
  const char *found = onnx_type_text(module, onnx_result(module, 0)->out[0]);
  ck_assert_msg(strcmp(found, dimensions[_i].type) == 0, "%s: found %s, %s wanted", dimensions[_i].dims, found,
                dimensions[_i].type);
  lp_module_free(module);
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* FunctionProto: name 1, input 4, output 5, attribute 6, node 7, opset_import 9, domain 10, attribute_proto 11. */
static lp_buf function_of(const char *input, const char *output, const char *op, const char *inputs,
                          const char *outputs) {
  lp_buf function = {0}, node = onnx_node(op, inputs, outputs);
  onnx_text(&function, 1, "F");
  onnx_text(&function, 4, input);
  onnx_text(&function, 5, output);
  onnx_sub(&function, 7, &node);
  return function;
}

static lp_buf calling(const char *nodes, lp_buf function) {
  lp_buf model = model_of(nodes, NULL, 17);
  onnx_function_field(&model, &function);
  return model;
}

static lp_buf opset_of(const char *domain, uint64_t version) {
  lp_buf set = {0};
  onnx_text(&set, 1, domain);
  onnx_varint(&set, 2, version);
  return set;
}

LP_TEST(inlines_functions) {
  gives(calling("F x > y", function_of("a", "b", "Neg", "a", "b")), "F", "f32[2,3]: -1 -2 -3 -4 -5 -6");
  lp_buf function = function_of("a", "b", "Softmax", "a", "s"), node = onnx_node("Mul", "s s", "b");
  onnx_sub(&function, 7, &node);
  lp_buf other = opset_of("com.example", 3), own = opset_of("ai.onnx", 18);
  onnx_sub(&function, 9, &other);
  onnx_sub(&function, 9, &own);
  onnx_text(&function, 10, "ai.onnx");
  gives(calling("F x > s; ReduceMax s > t axes=1, keepdims=0; Sub t t > y", function), "F", "f32[2]: 0 0");
  function = function_of("a", "b", "Clip", "a - c", "b");
  onnx_text(&function, 4, "c");
  gives(calling("F x > y", function), "an operand left out", "f32[2,3]: 1 2 3 4 5 6");
  function = function_of("a", "b", "Neg", "a", "b");
  onnx_text(&function, 5, "a");
  gives(calling("F x > - y", function), "a result left out", "f32[2,3]: 1 2 3 4 5 6");
}

LP_TEST(reads_defaults_of_attributes) {
  lp_buf function = {0}, node = onnx_node("LeakyRelu", "a", "b"), value = {0};
  const float slope = 2;
  onnx_text(&function, 1, "F");
  onnx_text(&function, 4, "a");
  onnx_text(&function, 5, "b");
  onnx_attr_ref(&node, "alpha", "slope", 1);
  onnx_sub(&function, 7, &node);
  onnx_text(&value, 1, "slope");
  lp_buf_append(&value, "\x15", 1);
  lp_buf_append(&value, &slope, 4);
  onnx_varint(&value, 20, 1);
  onnx_varint(&function, 12, 3);
  onnx_sub(&function, 11, &value);
  gives(calling("Neg x > m; F m > y", function), "F", "f32[2,3]: -2 -4 -6 -8 -10 -12");
}

LP_TEST(refuses_calls) {
  lp_buf twice = calling("F x > y", function_of("a", "b", "Neg", "a", "b"));
  lp_buf again = function_of("a", "b", "Abs", "a", "b");
  onnx_text(&again, 10, "ai.onnx"); /* the same domain as "" */
  onnx_function_field(&twice, &again);
  refuses(twice, "two", "function 'F' is defined twice");
  refuses(calling("F x x > y", function_of("a", "b", "Neg", "a", "b")), "inputs",
          "2 inputs and 1 outputs, but the function has 1 and 1");
  refuses(calling("F x > y z", function_of("a", "b", "Neg", "a", "b")), "outputs",
          "1 inputs and 2 outputs, but the function has 1 and 1");
  refuses(calling("F nothing > y", function_of("a", "b", "Neg", "a", "b")), "nothing",
          "input 'nothing' is made by no node");
  refuses(calling("F x > y", function_of("a", "b", "Neg", "a", "c")), "result", "output 'b' is made by no node");
  refuses(calling("F x > y", function_of("a", "b", "Neg", "x", "b")), "scope", "input 'x' is made by no node");
}

/* ---- older opsets ------------------------------------------------------------------------------------------------ */

static const struct {
  const char *nodes;
  int64_t opset;
  const char *wanted;
} old_forms[] = {
    {"Slice x > y starts=0,1 ends=2,3", 9, "f32[2,2]: 2 3 5 6"},
    {"Slice x > y starts=1, ends=3, axes=1,", 9, "f32[2,2]: 2 3 5 6"},
    {"Split x > a y axis=1 split=1,2", 11, "f32[2,2]: 2 3 5 6"},
    {"Unsqueeze x > u axes=0,; Squeeze u > y axes=0,", 11, "f32[2,3]: 1 2 3 4 5 6"},
    {"TopK x > y i k=2", 9, "f32[2,2]: 3 2 6 5"},
    {"Clip x > y min=2.0 max=5.0", 6, "f32[2,3]: 2 2 3 4 5 5"},
    {"Clip wide > y max=1.0", 6, "f64[1]: 1"},
    {"Clip half > y max=1.0", 6, "f16[1]: 1"},
    {"Pad x > y pads=0,1,0,0 value=9.0", 2, "f32[2,4]: 9 1 2 3 9 4 5 6"},
    {"ReduceSum x > y axes=1, keepdims=0", 11, "f32[2]: 6 15"},
    {"ReduceMax x > y axes=0, keepdims=0", 17, "f32[3]: 4 5 6"},
    {"Dropout x > y ratio=0.5", 10, "f32[2,3]: 1 2 3 4 5 6"},
    {"Constant > slope value_float=0.5; Neg x > m; PRelu m slope > y", 6, "f32[2,3]: -0.5 -1 -1.5 -2 -2.5 -3"},
};

LP_LOOP_TEST(reads_old_forms, 0, LP_COUNT(old_forms)) {
  gives(model_of(old_forms[_i].nodes, NULL, old_forms[_i].opset), old_forms[_i].nodes, old_forms[_i].wanted);
}

LP_TEST(refuses_old_forms) {
  refuses(model_of("Clip two > y max=1.0", NULL, 6), "Clip",
          "attribute 'max' wants an operand of type f16, f32 or f64, found i64");
  refuses(model_of("Clip x x > y min=1.0", NULL, 6), "Clip", "'min' is given both as attribute and as input");
  refuses(model_of("TopK x v2 > y i k=2", NULL, 9), "TopK", "'k' is given both as attribute and as input");
  refuses(model_of("TopK x > y i k=2.0", NULL, 9), "TopK", "attribute 'k' is of type FLOAT, INT wanted");
  refuses(model_of("Softmax x > y axis=2.0", NULL, 9), "Softmax", "attribute 'axis' is of type FLOAT, INT wanted");
  refuses(model_of("Squeeze x > y axes=1", NULL, 9), "Squeeze", "attribute 'axes' is of type INT, INTS wanted");
  refuses(model_of("Clip x > y max=1", NULL, 6), "Clip", "attribute 'max' is of type INT, FLOAT wanted");
  refuses(model_of("Constant > slope value_ints=1,2; Cast slope > slopes to=1; PRelu x slopes > y", NULL, 6), "PRelu",
          "a slope per channel in the form of opsets before 7 is not supported");
}
