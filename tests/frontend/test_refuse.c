/* Every refusal of the importer: one message with location and reason. */
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "tests/frontend/onnx_writer.h"
#include "tests/suite.h"

static const float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};

/* Writes, imports and expects exactly one error that holds `text`. */
static void refuse(lp_buf model, const char *text) {
  lp_diag *diag = lp_diag_create();
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(!module, "imported, expected: %s", text);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(onnx_message(diag, 0), text), "found '%s', expected '%s'", onnx_message(diag, 0), text);
  lp_diag_free(diag);
  onnx_cleanup();
}

/* y = node(x), x of f32[2,n] */
static lp_buf around_opset(lp_buf node, int64_t opset) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "2 n");
  onnx_add(&graph, node);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  return onnx_model(&graph, opset);
}

static lp_buf around(lp_buf node) {
  return around_opset(node, 17);
}

static lp_buf with_initializer(lp_buf tensor) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "2 n");
  onnx_initializer(&graph, tensor);
  onnx_add(&graph, onnx_node("Relu", "x", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  return onnx_model(&graph, 17);
}

static lp_buf with_input(int type, const char *dims) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", type, dims);
  onnx_add(&graph, onnx_node("Relu", "x", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  return onnx_model(&graph, 17);
}

static lp_buf bytes(const char *text, size_t size) {
  lp_buf buf = {0};
  lp_buf_append(&buf, text, size);
  return buf;
}

/* ---- files ---- */

LP_TEST(refuses_no_protobuf) {
  refuse(bytes("", 0), "not an ONNX file: the file is empty");
  refuse(bytes("hello, this is a text file\n", 27), "not an ONNX file");
  refuse(bytes("root:x:0:0:root:/root:/bin/bash\n"
               "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
               "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n",
               117),
         "not an ONNX file");
  refuse(bytes("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11), "not an ONNX file");
  refuse(bytes("\x08\x08\x07", 3), "damaged: no valid protobuf field at offset 2");
}

LP_TEST(refuses_truncated) {
  lp_buf model = around(onnx_node("Relu", "x", "y"));
  model.size -= 5;
  refuse(model, "truncated: a field of");
}

LP_TEST(refuses_missing_file) {
  lp_diag *diag = lp_diag_create();
  lp_module *module = NULL;
  ck_assert_int_eq(lp_onnx_import("/nowhere/model.onnx", NULL, &module, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  lp_diag_free(diag);
}

LP_TEST(refuses_deep_nesting) {
  lp_buf graph = {0};
  for (int i = 0; i < 120; i++) {
    lp_buf node = onnx_node("If", "x", "y"), outer = {0};
    onnx_attr_graph(&node, "then_branch", &graph);
    onnx_sub(&outer, 1, &node);
    graph = outer;
  }
  refuse(onnx_model(&graph, 17), "its messages nest deeper than 100 levels");
}

/* ---- graphs ---- */

LP_TEST(refuses_empty) {
  lp_buf graph = {0}, model = {0};
  onnx_varint(&model, 1, 8);
  refuse(model, "the model holds no graph");
  refuse(onnx_model(&graph, 17), "the graph is empty: it has no nodes");
  onnx_add(&graph, onnx_node("Relu", "x", "y"));
  refuse(onnx_model(&graph, 17), "the graph has no outputs");
}

LP_TEST(refuses_cycle) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "2 n");
  onnx_add(&graph, onnx_named("first", "Add", "x b", "a"));
  onnx_add(&graph, onnx_named("second", "Relu", "a", "b"));
  onnx_output(&graph, "b", ONNX_F32, NULL);
  refuse(onnx_model(&graph, 17), "node 'first' (Add): error: the graph has a cycle through this node");
}

LP_TEST(refuses_names) {
  refuse(around(onnx_named("n", "Add", "x z", "y")), "node 'n' (Add): error: input 'z' is made by no node");
  refuse(around(onnx_node("Relu", "x", "q")), "output 'y' is made by no node");
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "2 n");
  onnx_add(&graph, onnx_node("Relu", "x", "y"));
  onnx_add(&graph, onnx_named("again", "Neg", "x", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  refuse(onnx_model(&graph, 17), "node 'again' (Neg): error: value 'y' is defined twice");
  refuse(with_initializer(onnx_tensor("", ONNX_F32, "2", numbers, 8)), "an initializer has no name");
}

static lp_buf constant(const char *dims) {
  lp_buf node = onnx_named("a constant", "Constant", "", "c"), tensor = onnx_tensor("", ONNX_F32, dims, numbers, 8);
  onnx_attr_tensor(&node, "value", &tensor);
  return node;
}

static lp_buf with_two(lp_buf first, lp_buf second) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "2 n");
  onnx_add(&graph, first);
  onnx_add(&graph, second);
  onnx_add(&graph, onnx_node("Add", "x c", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  return onnx_model(&graph, 17);
}

/* Constants of one name need one type; nothing else shares a name with a constant. */
LP_TEST(refuses_unlike_constants) {
  lp_buf number = onnx_named("a constant", "Constant", "", "c");
  onnx_attr_i(&number, "value_int", 2);
  const char *text = "node 'a constant' (Constant): error: value 'c' is defined twice";
  refuse(with_two(constant("2"), constant("2 1")), text);
  refuse(with_two(constant("2"), number), text);
  refuse(with_two(onnx_named("n", "Neg", "x", "c"), constant("2 1")), text);
  refuse(with_two(constant("2 1"), onnx_named("n", "Neg", "x", "c")),
         "node 'n' (Neg): error: value 'c' is defined twice");
}

LP_TEST(refuses_duplicate_initializer) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "2 n");
  onnx_initializer(&graph, onnx_tensor("w", ONNX_F32, "2", numbers, 8));
  onnx_initializer(&graph, onnx_tensor("w", ONNX_F32, "2", numbers, 8));
  onnx_add(&graph, onnx_node("Relu", "x", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  refuse(onnx_model(&graph, 17), "value 'w' is defined twice");
}

/* GraphProto.sparse_initializer 15: values 1, indices 2, dims 3 */
LP_TEST(refuses_sparse_initializers) {
  lp_buf graph = {0}, sparse = {0}, values = onnx_tensor("w", ONNX_F32, "2", numbers, 8);
  onnx_sub(&sparse, 1, &values);
  onnx_varint(&sparse, 3, 8);
  onnx_input(&graph, "x", ONNX_F32, "8");
  onnx_sub(&graph, 15, &sparse);
  onnx_add(&graph, onnx_named("n", "Add", "x w", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  refuse(onnx_model(&graph, 17),
         "node 'n' (Add): error: initializer 'w' is sparse, which is not supported [ai.onnx, opset 17]");
}

LP_TEST(refuses_operators) {
  refuse(around(onnx_named("n", "Frobnicate", "x", "y")),
         "model.onnx: node 'n' (Frobnicate): error: operator 'Frobnicate' is not supported [ai.onnx, opset 17]");
  lp_buf node = onnx_named("n", "Magic", "x", "y");
  onnx_domain(&node, "com.example");
  refuse(around(node), "(Magic): error: operator 'Magic' is not supported");
  lp_buf foreign = onnx_named("n", "Magic", "x", "y");
  onnx_domain(&foreign, "com.example");
  refuse(around_opset(foreign, 0),
         "node 'n' (Magic): error: operator 'Magic' is not supported [com.example, no opset declared]");
  refuse(around_opset(onnx_node("Relu", "x", "y"), 0),
         "node 'y' (Relu): error: the model declares no opset of the default domain 'ai.onnx'");
  refuse(around_opset(onnx_node("Relu", "x", "y"), -1),
         "node 'y' (Relu): error: opset -1 of domain 'ai.onnx' is older than 1");
  lp_diag *diag = lp_diag_create();
  lp_buf model = around(onnx_node("Softmx", "x", "y"));
  ck_assert(!onnx_import(&model, diag));
  ck_assert(strstr(onnx_message(diag, 1), "did you mean 'Softmax'?"));
  lp_diag_free(diag);
  onnx_cleanup();
}

LP_TEST(refuses_arity) {
  refuse(around(onnx_node("Relu", "x x", "y")), "2 inputs, 1 wanted");
  refuse(around(onnx_node("Add", "x", "y")), "1 inputs, 2 wanted");
  refuse(around(onnx_node("Gemm", "x", "y")), "1 inputs, 2 to 3 wanted");
  refuse(around(onnx_node("Concat", "", "y")), "0 inputs, at least 1 wanted");
  refuse(around(onnx_node("Relu", "x", "y z")), "2 outputs, 1 wanted");
}

LP_TEST(refuses_equations) {
  lp_buf node = onnx_named("n", "Einsum", "x", "y");
  refuse(around(node), "attribute 'equation' is missing");
  node = onnx_named("n", "Einsum", "x", "y");
  onnx_attr_s(&node, "equation", "ii->i");
  refuse(around(node), "node 'n' (Einsum): error: the equation 'ii->i' is not supported");
  node = onnx_named("n", "Einsum", "x x", "y");
  onnx_attr_s(&node, "equation", "ij,jk,kl->il");
  refuse(around(node), "the equation 'ij,jk,kl->il' is not supported");
  node = onnx_named("n", "Einsum", "x", "y");
  onnx_attr_s(&node, "equation", "ijk->i");
  refuse(around(node), "the equation 'ijk->i' is not supported");
}

/* ---- attributes ---- */

LP_TEST(refuses_attributes) {
  lp_buf node = onnx_node("Transpose", "x", "y");
  onnx_attr_i(&node, "perm", 1);
  refuse(around(node), "attribute 'perm' is of type INT, INTS wanted");
  node = onnx_node("Relu", "x", "y");
  onnx_attr_i(&node, "speed", 1);
  refuse(around(node), "attribute 'speed' is not known");
  refuse(around(onnx_node("Cast", "x", "y")), "attribute 'to' is missing");
  node = onnx_node("Flatten", "x", "y");
  onnx_attr_i(&node, "axis", 0);
  onnx_attr_i(&node, "axis", 1);
  refuse(around(node), "attribute 'axis' is given twice");
  int64_t axes[] = {0};
  lp_buf graph = {0};
  node = onnx_node("Unsqueeze", "x a", "y");
  onnx_attr_ints(&node, "axes", 1, axes);
  onnx_input(&graph, "x", ONNX_F32, "2 n");
  onnx_initializer(&graph, onnx_tensor("a", ONNX_I64, "1", axes, 8));
  onnx_add(&graph, node);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  refuse(onnx_model(&graph, 12), "'axes' is given both as attribute and as input");
}

/* ---- tensors and types ---- */

LP_TEST(refuses_tensors) {
  refuse(with_initializer(onnx_tensor("w", ONNX_F32, "2 3", numbers, 20)),
         "tensor 'w' of f32[2x3] takes 24 bytes, its data has 20");
  refuse(with_initializer(onnx_tensor("w", ONNX_F32, "-2", numbers, 8)), "tensor 'w' has the negative dimension -2");
  refuse(with_initializer(onnx_tensor("w", ONNX_F32, "4611686018427387904 4", numbers, 8)),
         "the size of tensor 'w' overflows");
  refuse(with_initializer(onnx_tensor("w", ONNX_F32, "1 1 1 1 1 1 1 1 1", numbers, 4)), "has 9 dimensions, at most 8");
  refuse(with_initializer(onnx_tensor("w", ONNX_STRING, "1", numbers, 4)), "elements of type 'string' (8)");
  refuse(with_initializer(onnx_tensor("w", 14, "1", numbers, 8)), "elements of type 'complex64' (14)");
  refuse(with_initializer(onnx_tensor("w", 22, "5", numbers, 2)), "tensor 'w' of i4[5] takes 3 bytes, its data has 2");
  refuse(with_initializer(onnx_tensor("w", 99, "1", numbers, 1)), "elements of type 'undefined' (99)");
}

LP_TEST(refuses_typed_data) {
  lp_buf tensor = {0}, packed = {0};
  onnx_varint(&tensor, 1, 3);
  onnx_varint(&tensor, 2, ONNX_I64);
  onnx_text(&tensor, 8, "w");
  lp_buf_append(&packed, "\x01\x02", 2);
  onnx_sub(&tensor, 7, &packed);
  refuse(with_initializer(tensor), "tensor 'w' of i64[3] takes 24 bytes, its data has 16");
}

LP_TEST(refuses_external) {
  refuse(with_initializer(onnx_external("w", ONNX_F32, "2", "/etc/passwd", "0", "8")),
         "its location '/etc/passwd' is absolute");
  refuse(with_initializer(onnx_external("w", ONNX_F32, "2", "a/../../w.bin", "0", "8")),
         "its location 'a/../../w.bin' climbs with '..'");
  refuse(with_initializer(onnx_external("w", ONNX_F32, "2", NULL, "0", "8")), "external data without a location");
  refuse(with_initializer(onnx_external("w", ONNX_F32, "2", "w.bin", "0", "8")), "its file 'w.bin' does not exist");
  refuse(with_initializer(onnx_external("w", ONNX_F32, "2", "w.bin", "-4", "8")),
         "the external offset '-4' is not a size");
  refuse(with_initializer(onnx_external("w", ONNX_F32, "2", "w.bin", "0", "12")),
         "tensor 'w' of f32[2] takes 8 bytes, its data has 12");
  onnx_write("w.bin", numbers, 12);
  refuse(with_initializer(onnx_external("w", ONNX_F32, "2", "w.bin", "8", "8")),
         "tensor 'w' ends at byte 16 of 'w.bin', which has 12");
}

LP_TEST(refuses_inputs) {
  refuse(with_input(ONNX_STRING, "2"), "input 'x' has elements of type 'string' (8)");
  refuse(with_input(ONNX_F32, NULL), "input 'x' has no shape");
  refuse(with_input(ONNX_F32, "-2 2"), "input 'x' has the negative dimension -2");
  refuse(with_input(ONNX_F32, "1 1 1 1 1 1 1 1 1"), "input 'x' has 9 dimensions, at most 8");
  refuse(with_input(ONNX_F32, "4611686018427387904 n 4"), "the size of input 'x' overflows");
}

/* TypeProto: 4 sequence, 9 optional, 8 sparse tensor */
static lp_buf with_other_input(uint32_t field) {
  lp_buf graph = {0}, type = {0}, inner = {0}, value = {0};
  onnx_sub(&type, field, &inner);
  onnx_text(&value, 1, "x");
  onnx_sub(&value, 2, &type);
  onnx_sub(&graph, 11, &value);
  onnx_add(&graph, onnx_node("Relu", "x", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  return onnx_model(&graph, 17);
}

LP_TEST(refuses_other_types) {
  refuse(with_other_input(4), "input 'x' is a sequence; only tensors are supported");
  refuse(with_other_input(9), "input 'x' is an optional; only tensors are supported");
  refuse(with_other_input(8), "input 'x' is a sparse tensor; only tensors are supported");
}

LP_TEST(refuses_output_type) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "2 n");
  onnx_add(&graph, onnx_node("Relu", "x", "y"));
  onnx_output(&graph, "y", ONNX_I64, "2 n");
  refuse(onnx_model(&graph, 17), "output 'y' is declared i64 but computed as f32");
}

/* ---- branches and functions ---- */

static lp_buf branch(const char *op) {
  lp_buf graph = {0};
  onnx_add(&graph, onnx_node(op, "x", "r"));
  onnx_output(&graph, "r", ONNX_F32, NULL);
  return graph;
}

LP_TEST(refuses_conditions) {
  lp_buf graph = {0}, yes = branch("Relu"), no = branch("Shape"), node = onnx_named("choose", "If", "c", "y");
  onnx_attr_graph(&node, "then_branch", &yes);
  onnx_attr_graph(&node, "else_branch", &no);
  onnx_input(&graph, "x", ONNX_F32, "2 n");
  onnx_input(&graph, "c", ONNX_BOOL, "");
  onnx_add(&graph, node);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  refuse(onnx_model(&graph, 17),
         "node 'choose' (If): error: its condition depends on the input, and the shape or type of a result");
}

/* In an encoder-decoder model the branch with a past does not compute the keys of the encoder's states, as the other
 * branch does. */
LP_TEST(refuses_a_cache_switch_between_different_inputs) {
  lp_buf graph = {0}, yes = branch("Relu"), no = {0}, node = onnx_named("choose", "If", "use_cache_branch", "y");
  onnx_add(&no, onnx_node("Add", "x states", "r"));
  onnx_output(&no, "r", ONNX_F32, NULL);
  onnx_attr_graph(&node, "then_branch", &yes);
  onnx_attr_graph(&node, "else_branch", &no);
  onnx_input(&graph, "x", ONNX_F32, "2 n");
  onnx_input(&graph, "states", ONNX_F32, "2 n");
  onnx_input(&graph, "use_cache_branch", ONNX_BOOL, "1");
  onnx_add(&graph, node);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  refuse(onnx_model(&graph, 17),
         "node 'choose' (If): error: its branch with a past does not read input 'states', which");
}

/* A body that carries one value and scans it: its condition is `going`. */
static lp_buf loop_body(const char *going, bool scans) {
  lp_buf graph = {0};
  onnx_add(&graph, onnx_node("Add", "v v", "w"));
  onnx_add(&graph, onnx_node("Identity", going, "on"));
  onnx_input(&graph, "i", ONNX_I64, "");
  onnx_input(&graph, "k", ONNX_BOOL, "");
  onnx_input(&graph, "v", ONNX_F32, "n");
  onnx_output(&graph, "on", ONNX_BOOL, "");
  onnx_output(&graph, "w", ONNX_F32, "n");
  if (scans) onnx_output(&graph, "v", ONNX_F32, "n");
  return graph;
}

static lp_buf looping(lp_buf body, const char *inputs, const char *outputs) {
  static const int64_t three = 3, many = 2000;
  lp_buf graph = {0}, node = onnx_named("repeat", "Loop", inputs, outputs);
  onnx_attr_graph(&node, "body", &body);
  onnx_input(&graph, "x", ONNX_F32, "n");
  onnx_input(&graph, "m", ONNX_I64, "");
  onnx_input(&graph, "c", ONNX_BOOL, "");
  onnx_initializer(&graph, onnx_tensor("three", ONNX_I64, "", &three, 8));
  onnx_initializer(&graph, onnx_tensor("many", ONNX_I64, "", &many, 8));
  onnx_add(&graph, node);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  return onnx_model(&graph, 17);
}

LP_TEST(refuses_loops) {
  refuse(looping(loop_body("k", false), "m - x", "y"), "(Loop): error: its trip count depends on the input");
  refuse(looping(loop_body("c", false), "- - x", "y"),
         "its number of trips depends on the input, and no trip count limits it");
  refuse(looping(loop_body("c", true), "three - x", "y s"),
         "its number of trips depends on the input, and so does the size of a result");
  refuse(looping(loop_body("k", false), "many - x", "y"), "it makes more than 1024 trips, the most that are unrolled");
  refuse(looping(loop_body("k", false), "- - x", "y"), "it makes more than 1024 trips, the most that are unrolled");
  refuse(looping(loop_body("k", false), "three - x x", "y"), "its body has 3 inputs, 4 wanted");
  refuse(looping(loop_body("k", false), "three - x", "y s"), "its body has 2 outputs, 3 wanted");
  refuse(looping(loop_body("x", false), "three - x", "y"), "its condition is not of type bool");
}

LP_TEST(refuses_recursion) {
  lp_buf model = around(onnx_node("F", "x", "y")), function = {0}, node = onnx_node("F", "a", "b");
  onnx_text(&function, 1, "F");
  onnx_text(&function, 4, "a");
  onnx_text(&function, 5, "b");
  onnx_sub(&function, 7, &node);
  onnx_function_field(&model, &function);
  refuse(model, "functions and branches nest deeper than 64 levels");
}

/* f0 calls f1 twice, which calls f2 twice, ...: 2^30 nodes from a few bytes. */
LP_TEST(refuses_expansion) {
  lp_buf model = around(onnx_node("f0", "x", "y"));
  for (int i = 0; i < 30; i++) {
    char name[8], next[8];
    snprintf(name, sizeof name, "f%d", i);
    snprintf(next, sizeof next, i < 29 ? "f%d" : "Relu", i + 1);
    lp_buf function = {0}, first = onnx_node(next, "a", "m"), second = onnx_node(next, "m", "b");
    onnx_text(&function, 1, name);
    onnx_text(&function, 4, "a");
    onnx_text(&function, 5, "b");
    onnx_sub(&function, 7, &first);
    onnx_sub(&function, 7, &second);
    onnx_function_field(&model, &function);
  }
  refuse(model, "more than 300000 operators once functions are inlined");
}

/* ---- sequences ---- */

/* y of a sequence of x's rows, f32[2,n], and `at`, an i64 scalar. */
static lp_buf with_sequence(lp_buf last, int64_t axis, int64_t at) {
  lp_buf graph = {0}, split = onnx_named("s", "SplitToSequence", "x", "rows");
  onnx_attr_i(&split, "axis", axis);
  onnx_input(&graph, "x", ONNX_F32, "2 n");
  onnx_input(&graph, "given", ONNX_I64, "1");
  onnx_initializer(&graph, onnx_tensor("at", ONNX_I64, "", &at, sizeof at));
  onnx_add(&graph, split);
  onnx_add(&graph, last);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  return onnx_model(&graph, 17);
}

LP_TEST(refuses_sequences) {
  refuse(with_sequence(onnx_named("a", "SequenceAt", "rows at", "y"), 1, 0),
         "node 's' (SplitToSequence): error: the length of the sequence is not constant");
  refuse(with_sequence(onnx_named("a", "SequenceAt", "rows at", "y"), 2, 0), "axis 2 of a tensor of rank 2");
  refuse(with_sequence(onnx_named("a", "SequenceAt", "rows at", "y"), 0, 2), "index 2 into a sequence of 2");
  refuse(with_sequence(onnx_named("a", "SequenceAt", "rows at", "y"), 0, -3), "index -3 into a sequence of 2");
  refuse(with_sequence(onnx_named("a", "SequenceAt", "rows given", "y"), 0, 0),
         "node 'a' (SequenceAt): error: the index into the sequence is not constant");
  refuse(with_sequence(onnx_named("a", "SequenceAt", "x at", "y"), 0, 0),
         "input 'x' is no sequence of constant length that an operator makes");
  refuse(with_sequence(onnx_named("a", "Relu", "rows", "y"), 0, 0), "input 'rows' is a sequence, a tensor is wanted");
  refuse(with_sequence(onnx_named("a", "SequenceConstruct", "x rows", "y"), 0, 0),
         "input 'rows' is no tensor that a node, an initializer or an input makes");
}
