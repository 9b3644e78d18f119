/* Imports small models: names, order, opsets, functions, weights, dimensions. */
#include <stdlib.h>
#include <string.h>

#include "base/poly.h"
#include "frontend/frontend.h"
#include "tests/frontend/onnx_writer.h"
#include "tests/suite.h"

ONNX_CASE;

static lp_module *import(lp_buf *graph, int64_t opset) {
  lp_buf model = onnx_model(graph, opset);
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(module, "%s", onnx_message(diag, 0));
  ck_assert_int_eq(lp_module_verify(module, diag), LP_OK);
  return module;
}

static int count_ops(const lp_module *module, lp_kind kind) {
  int count = 0;
  LP_FOR_OPS(op, lp_module_find_func(module, "main")->region)
    count += op->kind == kind;
  return count;
}

/* ---- graphs ---- */

LP_TEST(names_and_locations) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "batch 3");
  onnx_add(&graph, onnx_named("/a", "Relu", "x", "h"));
  onnx_add(&graph, onnx_node("Neg", "h", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 17);
  const lp_op *func = lp_module_find_func(module, "main"), *neg = onnx_result(module, 0);
  ck_assert_str_eq(lp_op_attr(func, "inputs")->ss[0], "x");
  ck_assert_str_eq(lp_op_attr(func, "outputs")->ss[0], "y");
  ck_assert_str_eq(onnx_type_text(module, neg->out[0]), "f32[batch,3]");
  ck_assert_str_eq(neg->loc.node, "y"); /* a node without a name has its result's */
  ck_assert_str_eq(neg->loc.op, "Neg");
  ck_assert_str_eq(neg->prev->loc.node, "/a");
  ck_assert_str_eq(neg->prev->out[0]->name, "h");
  lp_module_free(module);
}

/* Imports y = x with x bound to the value; NULL: it is refused. */
static lp_module *import_bound(int32_t type, const char *shape, const char *value) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", type, shape);
  onnx_add(&graph, onnx_node("Identity", "x", "y"));
  onnx_output(&graph, "y", type, NULL);
  lp_buf model = onnx_model(&graph, 17);
  onnx_write("model.onnx", model.data, model.size);
  lp_buf_free(&model);
  const lp_input_binding binding = {"x", value};
  const lp_import_options options = {.bindings = &binding, .binding_count = 1};
  lp_module *module = NULL;
  lp_diag_clear(diag);
  lp_status status = lp_onnx_import(onnx_path("model.onnx"), &options, &module, diag);
  ck_assert_int_eq(status, module ? LP_OK : LP_FAILED);
  return module;
}

static void expect_bound(int32_t type, const char *shape, const char *value, const char *want, const double *numbers) {
  lp_module *module = import_bound(type, shape, value);
  ck_assert_msg(module, "%s", onnx_message(diag, 0));
  const lp_value *y = onnx_result(module, 0)->out[0];
  ck_assert_str_eq(onnx_type_text(module, y), want);
  lp_tensor found;
  int64_t count;
  ck_assert(lp_value_constant(lp_op_in(onnx_result(module, 0), 0), &found));
  ck_assert(lp_type_static_numel(found.type, &count));
  for (int64_t i = 0; i < count; i++)
    ck_assert_double_eq(lp_tensor_f64(&found, i), numbers[i]);
  lp_module_free(module);
}

static void expect_not_bound(int32_t type, const char *shape, const char *value, const char *said) {
  ck_assert_msg(!import_bound(type, shape, value), "%s is bound to %s", shape, value);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(onnx_message(diag, 0), said), "'%s' for %s", onnx_message(diag, 0), value);
}

LP_TEST(inputs_are_bound_to_lists) {
  expect_bound(ONNX_I64, "3", "2,-3,4", "i64[3]", (const double[]){2, -3, 4});
  expect_bound(ONNX_I64, "n", "2,3", "i64[2]", (const double[]){2, 3});
  expect_bound(ONNX_I64, "n", "", "i64[0]", NULL);
  expect_bound(ONNX_I64, "", "7", "i64[]", (const double[]){7});
  expect_bound(ONNX_F32, "2 2", "1,2.5,-3,4e1", "f32[2,2]", (const double[]){1, 2.5, -3, 40});
  expect_bound(ONNX_BOOL, "2", "true,false", "bool[2]", (const double[]){1, 0});
  expect_not_bound(ONNX_I64, "3", "2,3", "input 'x': found 2 values for a tensor of 3");
  expect_not_bound(ONNX_I64, "", "2,3", "input 'x': found 2 values for a tensor of 1");
  expect_not_bound(ONNX_I64, "n 2", "2,3", "input 'x': found 2 values for a tensor of 0");
  expect_not_bound(ONNX_I64, "n", "2,,3", "input 'x': a value is empty");
  expect_not_bound(ONNX_I64, "n", "2,3,", "input 'x': a value is empty");
  expect_not_bound(ONNX_F32, "2", "1,2x", "'2x' is not a number");
  expect_not_bound(ONNX_F32, "2", "1, ", "' ' is not a number");
  expect_not_bound(ONNX_I64, "2", "1,two", "two");
}

/* A file of i64 with these dimensions, of ones. */
static const char *tensor_file(const char *dims, size_t count) {
  int64_t ones[8];
  for (size_t i = 0; i < 8; i++)
    ones[i] = 1;
  lp_buf tensor = onnx_tensor("t", ONNX_I64, dims, ones, count * sizeof *ones);
  onnx_write("input.pb", tensor.data, tensor.size);
  lp_buf_free(&tensor);
  return onnx_path("input.pb");
}

LP_TEST(inputs_are_bound_to_files) {
  static const double ones[] = {1, 1, 1, 1, 1, 1};
  char file[256];
  snprintf(file, sizeof file, "%s", tensor_file("2 3", 6));
  expect_bound(ONNX_I64, "2 3", file, "i64[2,3]", ones);
  expect_bound(ONNX_I64, "n m", file, "i64[2,3]", ones);
  expect_not_bound(ONNX_I32, "2 3", file, "input 'x' is i32 of rank 2, the file's tensor i64 of rank 2");
  expect_not_bound(ONNX_I64, "n", file, "input 'x' is i64 of rank 1, the file's tensor i64 of rank 2");
  expect_not_bound(ONNX_I64, "2 4", file, "axis 1 of input 'x' is 4, the file's tensor has 3");
  expect_bound(ONNX_I64, "n n", file, "i64[2,3]", ones); /* a name twice in one shape is a mere label */
  expect_not_bound(ONNX_I64, "2 3", "/nowhere.pb", "/nowhere.pb");
  (void)tensor_file("0 3", 0);
  expect_bound(ONNX_I64, "n 3", file, "i64[0,3]", ones);
}

/* The arguments of transformers that count positions with logits are bound, and an index of them to the last. */
LP_TEST(counts_of_logits_are_bound) {
  static const struct {
    const char *name, *dims, *nodes;
    int64_t wanted; /* -2: it stays an input */
  } cases[] = {{"logits_to_keep", "", "Identity logits_to_keep > y", 0},
               {"num_logits_to_keep", "1", "Identity num_logits_to_keep > y", 0},
               {"logits_to_keep", "", "Identity logits_to_keep > y; Gather x logits_to_keep > z", -1},
               {"logits_to_keep", "1", "Cast logits_to_keep > c to=7; Identity c > y; Gather x c > z", -1},
               {"logits_to_keep", "1 1", "Identity logits_to_keep > y", -2},
               {"logits", "", "Identity logits > y", -2}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    const lp_import_options options = {.frees_lengths = true};
    lp_buf graph = {0};
    lp_module *module = NULL;
    lp_tensor found;
    onnx_input(&graph, "x", ONNX_F32, "n 2");
    onnx_input(&graph, cases[i].name, ONNX_I64, cases[i].dims);
    onnx_nodes(&graph, cases[i].nodes);
    onnx_output(&graph, "y", ONNX_I64, NULL);
    lp_buf model = onnx_model(&graph, 17);
    onnx_write("model.onnx", model.data, model.size);
    lp_buf_free(&model);
    lp_diag_clear(diag);
    ck_assert_msg(lp_onnx_import(onnx_path("model.onnx"), &options, &module, diag) == LP_OK, "%s: %s", cases[i].nodes,
                  onnx_message(diag, 0));
    const lp_value *y = lp_op_in(onnx_result(module, 0), 0);
    while (y->def && y->def->kind == LP_ONNX_Cast)
      y = lp_op_in(y->def, 0);
    bool constant = lp_value_constant(y, &found);
    ck_assert_msg(constant == (cases[i].wanted != -2), "%s, %s", cases[i].name, cases[i].nodes);
    if (constant) ck_assert_int_eq(lp_tensor_i64(&found, 0), cases[i].wanted);
    lp_module_free(module);
  }
}

LP_TEST(sorts_nodes) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "2");
  onnx_add(&graph, onnx_node("Neg", "b", "y"));
  onnx_add(&graph, onnx_node("Abs", "a", "b"));
  onnx_add(&graph, onnx_node("Relu", "x", "a"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 17);
  const lp_op *neg = onnx_result(module, 0);
  ck_assert_int_eq(neg->kind, LP_ONNX_Neg);
  ck_assert_int_eq(neg->prev->kind, LP_ONNX_Abs);
  ck_assert_int_eq(neg->prev->prev->kind, LP_ONNX_Relu);
  lp_module_free(module);
}

LP_TEST(keeps_order) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "2");
  onnx_add(&graph, onnx_node("Relu", "x", "a"));
  onnx_add(&graph, onnx_node("Abs", "x", "b"));
  onnx_add(&graph, onnx_node("Add", "b a", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 17);
  ck_assert_int_eq(onnx_result(module, 0)->prev->kind, LP_ONNX_Abs);
  lp_module_free(module);
}

LP_TEST(shares_initializers) {
  static const float w[] = {1, 2};
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "2");
  onnx_input(&graph, "w", ONNX_F32, "2"); /* listed among the inputs, as before IR version 4 */
  onnx_initializer(&graph, onnx_tensor("w", ONNX_F32, "2", w, sizeof w));
  onnx_initializer(&graph, onnx_tensor("unused", ONNX_F32, "2", w, sizeof w));
  onnx_add(&graph, onnx_node("Add", "x w", "a"));
  onnx_add(&graph, onnx_node("Mul", "a w", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 17);
  ck_assert_int_eq(count_ops(module, LP_OP_CONSTANT), 1);
  ck_assert_int_eq(lp_op_attr(lp_module_find_func(module, "main"), "inputs")->count, 1);
  lp_module_free(module);
}

/* ---- dimensions ---- */

LP_TEST(names_dimensions) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "s past_length+s batch-size ? 7");
  onnx_add(&graph, onnx_node("Relu", "x", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 17);
  /* s is the compiler's own: the model's is another symbol */
  ck_assert_str_eq(onnx_type_text(module, onnx_result(module, 0)->out[0]),
                   "f32[s_dim,s_dim + past_length,batch_size,d0,7]");
  lp_module_free(module);
}

/* y = (past, x) * mask, of matrices with these names of axes. */
static lp_module *masked_rows(const char *x, const char *past, const char *mask) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, x);
  onnx_input(&graph, "past", ONNX_F32, past);
  onnx_input(&graph, "mask", ONNX_F32, mask);
  lp_buf concat = onnx_node("Concat", "past x", "all");
  onnx_attr_i(&concat, "axis", 1);
  onnx_add(&graph, concat);
  onnx_add(&graph, onnx_node("Mul", "all mask", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  return import(&graph, 17);
}

LP_TEST(agrees_on_dimensions) {
  lp_module *module = masked_rows("batch seq", "batch past", "batch total");
  const lp_op *mul = onnx_result(module, 0);
  ck_assert_str_eq(onnx_type_text(module, mul->out[0]), "f32[batch,seq + past]");
  ck_assert_str_eq(onnx_type_text(module, lp_op_in(mul, 1)), "f32[batch,seq + past]");
  lp_module_free(module);
}

/* Older exporters name the axis of a mask after the one token of their example, as "past+1". For other numbers of
 * tokens the name is wrong. */
LP_TEST(a_number_in_a_name_is_no_size) {
  lp_module *module = masked_rows("batch seq", "batch past", "batch past+1");
  ck_assert_str_eq(onnx_type_text(module, onnx_result(module, 0)->out[0]), "f32[batch,seq + past]");
  ck_assert_ptr_nonnull(strstr(onnx_message(diag, 0), "the dimension 'past+1' adds a number"));
  lp_module_free(module);
}

/* In the graph a cache grows by the step's rows. Dimension names that contradict this are ignored, with a note. */
LP_TEST(the_graph_outweighs_names) {
  lp_module *module = masked_rows("batch width", "batch width", "batch width");
  const lp_op *mul = onnx_result(module, 0);
  ck_assert_str_eq(onnx_type_text(module, mul->out[0]), "f32[d0,d1 + d3]");
  ck_assert_str_eq(onnx_type_text(module, lp_op_in(mul, 1)), "f32[d0,d1 + d3]");
  ck_assert_uint_eq(lp_diag_count(diag), 1);
  ck_assert_ptr_nonnull(strstr(onnx_message(diag, 0), "note: dimension names contradict the graph and are ignored: "
                                                      "dimensions 2*width and width must agree"));
  lp_module_free(module);
}

/* A refusal that does not depend on dimension names is reported once, as in the first import. */
LP_TEST(names_excuse_no_other_fault) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "batch 3");
  onnx_input(&graph, "z", ONNX_F32, "batch 4");
  onnx_add(&graph, onnx_node("Mul", "x z", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_buf model = onnx_model(&graph, 17);
  ck_assert_ptr_null(onnx_import(&model, diag));
  ck_assert_uint_eq(lp_diag_count(diag), 1);
  ck_assert_ptr_nonnull(strstr(onnx_message(diag, 0), "error: dimensions 3 and 4 must agree"));
}

/* A model with these dimension names for the inputs `ids`, `mask` and `past`. */
static lp_module *named_alike(const char *tokens, const char *mask, const char *past) {
  lp_buf graph = {0};
  onnx_input(&graph, "ids", ONNX_I64, tokens);
  onnx_input(&graph, "mask", ONNX_I64, mask);
  onnx_input(&graph, "past", ONNX_F32, past);
  onnx_add(&graph, onnx_node("Identity", "ids", "a"));
  onnx_add(&graph, onnx_node("Identity", "mask", "b"));
  onnx_add(&graph, onnx_node("Identity", "past", "c"));
  onnx_output(&graph, "a", ONNX_I64, NULL);
  onnx_output(&graph, "b", ONNX_I64, NULL);
  onnx_output(&graph, "c", ONNX_F32, NULL);
  return import(&graph, 17);
}

LP_TEST(lengths_that_differ_have_no_name) {
  static const struct {
    const char *tokens, *mask, *past, *types[3], *note;
  } cases[] = {
      {"n n", "n total", "n 2 past 8", {"i64[d0,d1]", "i64[d2,total]", "f32[d3,2,past,8]"}, "both axes of 'ids'"},
      {"batch n",
       "batch n",
       "batch 2 past 8",
       {"i64[batch,d0]", "i64[batch,d1]", "f32[batch,2,past,8]"},
       "lengths of 'ids' and 'mask'"},
      {"batch n",
       "batch total",
       "batch 2 n 8",
       {"i64[batch,d0]", "i64[batch,total]", "f32[batch,2,d1,8]"},
       "lengths of 'ids' and 'past'"},
      {"batch n", "batch total", "batch 2 past 8", {"i64[batch,n]", "i64[batch,total]", "f32[batch,2,past,8]"}, NULL}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    lp_diag_clear(diag);
    lp_module *module = named_alike(cases[i].tokens, cases[i].mask, cases[i].past);
    for (int32_t k = 0; k < 3; k++)
      ck_assert_str_eq(onnx_type_text(module, onnx_result(module, k)->out[0]), cases[i].types[k]);
    ck_assert_uint_eq(lp_diag_count(diag), cases[i].note != NULL);
    if (cases[i].note) ck_assert_ptr_nonnull(strstr(onnx_message(diag, 0), cases[i].note));
    lp_module_free(module);
  }
}

/* ---- weights ---- */

LP_TEST(references_weights) {
  enum { BYTES = 1 << 20 };
  float *data = lp_alloc(BYTES);
  data[5] = 42;
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "n 512");
  onnx_initializer(&graph, onnx_tensor("w", ONNX_F32, "512 512", data, BYTES));
  onnx_add(&graph, onnx_node("MatMul", "x w", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 17);
  const lp_value *w = lp_op_in(onnx_result(module, 0), 1);
  ck_assert_int_eq(w->def->kind, LP_OP_WEIGHT);
  ck_assert_str_eq(lp_op_str(w->def, "file", ""), "model.onnx");
  ck_assert_uint_lt(lp_arena_bytes(module->arena), BYTES / 4);
  lp_tensor tensor;
  ck_assert_int_eq(lp_weight_data(module, w, &tensor, diag), LP_OK);
  ck_assert_uint_eq(tensor.bytes, BYTES);
  ck_assert_double_eq(lp_tensor_f64(&tensor, 5), 42);
  lp_module_free(module);
  free(data);
}

LP_TEST(references_packed_floats) {
  enum { COUNT = 4096 };
  float *data = lp_alloc(COUNT * sizeof(float));
  lp_buf graph = {0}, tensor = {0};
  onnx_varint(&tensor, 1, COUNT);
  onnx_varint(&tensor, 2, ONNX_F32);
  onnx_text(&tensor, 8, "w");
  onnx_bytes(&tensor, 4, data, COUNT * sizeof(float)); /* float_data */
  onnx_input(&graph, "x", ONNX_F32, "n 1");
  onnx_initializer(&graph, tensor);
  onnx_add(&graph, onnx_node("Add", "x w", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 17);
  ck_assert_int_eq(lp_op_in(onnx_result(module, 0), 1)->def->kind, LP_OP_WEIGHT);
  lp_module_free(module);
  free(data);
}

LP_TEST(reads_external_data) {
  float data[2048] = {0};
  data[1025] = 7;
  onnx_write("w.bin", data, sizeof data);
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "n 1");
  onnx_initializer(&graph, onnx_external("small", ONNX_F32, "2", "w.bin", "4096", "8"));
  onnx_initializer(&graph, onnx_external("large", ONNX_F32, "2048", "w.bin", NULL, NULL));
  onnx_initializer(&graph, onnx_external("absent", ONNX_F32, "2", "gone.bin", "0", NULL));
  onnx_add(&graph, onnx_node("Mul", "x small", "a"));
  onnx_add(&graph, onnx_node("Mul", "x large", "b"));
  onnx_add(&graph, onnx_node("Mul", "x absent", "c"));
  onnx_output(&graph, "a", ONNX_F32, NULL);
  onnx_output(&graph, "b", ONNX_F32, NULL);
  onnx_output(&graph, "c", ONNX_F32, NULL);
  lp_buf model = onnx_model(&graph, 17);
  lp_module *module = onnx_import_with(&model, true, diag);
  ck_assert_ptr_nonnull(module);
  lp_tensor tensor;
  ck_assert(lp_value_constant(lp_op_in(onnx_result(module, 0), 1), &tensor));
  ck_assert_double_eq(lp_tensor_f64(&tensor, 1), 7);
  const lp_value *large = lp_op_in(onnx_result(module, 1), 1), *absent = lp_op_in(onnx_result(module, 2), 1);
  ck_assert_str_eq(lp_op_str(large->def, "file", ""), "w.bin");
  ck_assert_int_eq(absent->def->kind, LP_OP_WEIGHT);
  ck_assert_int_eq(lp_weight_data(module, absent, &tensor, diag), LP_FAILED);
  lp_module_free(module);
}

/* Data in the fields of its type: 16 bits wide in int32_data. */
LP_TEST(reads_typed_data) {
  lp_buf graph = {0}, tensor = {0}, packed = {0};
  onnx_varint(&tensor, 1, 2);
  onnx_varint(&tensor, 2, 10);
  onnx_text(&tensor, 8, "w");
  lp_buf_append(&packed, "\x80\x78\x80\x80\x01", 5); /* 0x3c00, 0x4000: 1 and 2 in half precision */
  onnx_sub(&tensor, 5, &packed);
  onnx_input(&graph, "x", 10, "2");
  onnx_initializer(&graph, tensor);
  onnx_add(&graph, onnx_node("Add", "x w", "y"));
  onnx_output(&graph, "y", 10, NULL);
  lp_module *module = import(&graph, 17);
  lp_tensor found;
  ck_assert(lp_value_constant(lp_op_in(onnx_result(module, 0), 1), &found));
  ck_assert_double_eq(lp_tensor_f64(&found, 0), 1);
  ck_assert_double_eq(lp_tensor_f64(&found, 1), 2);
  lp_module_free(module);
}

/* ---- older opsets ---- */

static int64_t known(const lp_value *value, int32_t index) {
  int64_t number = INT64_MIN;
  ck_assert_ptr_nonnull(value);
  ck_assert(value->known && index < value->known_count && lp_poly_is_const(value->known[index], &number));
  return number;
}

LP_TEST(normalises_axes) {
  static const int64_t axes[] = {0, 2};
  lp_buf graph = {0}, unsqueeze = onnx_node("Unsqueeze", "x", "u"), sum = onnx_node("ReduceSum", "u", "y");
  onnx_attr_ints(&unsqueeze, "axes", 2, axes);
  onnx_attr_ints(&sum, "axes", 1, axes + 1);
  onnx_attr_i(&sum, "keepdims", 0);
  onnx_input(&graph, "x", ONNX_F32, "n 3");
  onnx_add(&graph, unsqueeze);
  onnx_add(&graph, sum);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 11);
  const lp_op *reduce = onnx_result(module, 0);
  ck_assert_int_eq(known(lp_op_in(reduce, 1), 0), 2);
  ck_assert(!lp_op_attr(reduce, "axes"));
  ck_assert_str_eq(onnx_type_text(module, lp_op_in(reduce, 0)), "f32[1,n,1,3]");
  ck_assert_str_eq(onnx_type_text(module, reduce->out[0]), "f32[1,n,3]");
  lp_module_free(module);
}

LP_TEST(normalises_slice_split_pad_clip) {
  static const int64_t starts[] = {1}, ends[] = {3}, axes[] = {1}, sizes[] = {1, 1}, pads[] = {0, 1, 0, 2};
  lp_buf graph = {0}, slice = onnx_node("Slice", "x", "s"), split = onnx_node("Split", "s", "p q");
  lp_buf pad = onnx_node("Pad", "p", "t"), clip = onnx_node("Clip", "t", "y");
  onnx_attr_ints(&slice, "starts", 1, starts);
  onnx_attr_ints(&slice, "ends", 1, ends);
  onnx_attr_ints(&slice, "axes", 1, axes);
  onnx_attr_ints(&split, "split", 2, sizes);
  onnx_attr_i(&split, "axis", 1);
  onnx_attr_ints(&pad, "pads", 4, pads);
  onnx_attr_f(&pad, "value", 0.5f);
  onnx_attr_f(&clip, "max", 6);
  onnx_input(&graph, "x", ONNX_F32, "n 5");
  onnx_add(&graph, slice);
  onnx_add(&graph, split);
  onnx_add(&graph, pad);
  onnx_add(&graph, clip);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 9);
  const lp_op *last = onnx_result(module, 0), *padded = lp_op_in(last, 0)->def;
  lp_tensor bound;
  ck_assert_int_eq(last->in_count, 3);
  ck_assert_ptr_null(lp_op_in(last, 1));
  ck_assert(lp_value_constant(lp_op_in(last, 2), &bound) && lp_tensor_f64(&bound, 0) == 6);
  ck_assert_int_eq(known(lp_op_in(padded, 1), 3), 2);
  ck_assert_str_eq(onnx_type_text(module, padded->out[0]), "f32[n,4]");
  const lp_op *halves = lp_op_in(padded, 0)->def;
  ck_assert_int_eq(known(lp_op_in(halves, 1), 0), 1);
  ck_assert_int_eq(known(lp_op_in(lp_op_in(halves, 0)->def, 3), 0), 1);
  lp_module_free(module);
}

LP_TEST(normalises_topk) {
  lp_buf graph = {0}, node = onnx_node("TopK", "x", "y i");
  onnx_attr_i(&node, "k", 2);
  onnx_input(&graph, "x", ONNX_F32, "n 5");
  onnx_add(&graph, node);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 1);
  const lp_op *op = onnx_result(module, 0);
  ck_assert_int_eq(known(lp_op_in(op, 1), 0), 2);
  ck_assert_str_eq(onnx_type_text(module, op->out[1]), "i64[n,2]");
  lp_module_free(module);
}

static lp_module *softmax(int64_t opset, int64_t axis, bool given) {
  lp_buf graph = {0}, node = onnx_node("Softmax", "x", "y");
  if (given) onnx_attr_i(&node, "axis", axis);
  onnx_input(&graph, "x", ONNX_F32, "n 3 4");
  onnx_add(&graph, node);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  return import(&graph, opset);
}

LP_TEST(normalises_softmax) {
  static const struct {
    int64_t opset, axis;
    bool given;
    int64_t wanted_axis;
    bool wanted_flatten;
  } cases[] = {{11, 0, false, 1, true},
               {11, 2, true, 2, false},
               {12, -1, true, -1, false},
               {13, 0, false, -1, false},
               {13, 1, true, 1, false}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    lp_module *module = softmax(cases[i].opset, cases[i].axis, cases[i].given);
    ck_assert_int_eq(lp_op_i64(onnx_result(module, 0), "axis", 99), cases[i].wanted_axis);
    ck_assert_int_eq(lp_op_bool(onnx_result(module, 0), "flatten", false), cases[i].wanted_flatten);
    lp_module_free(module);
  }
}

/* ---- functions and branches ---- */

/* scaled(a) {alpha = 0.25} = LeakyRelu<alpha = @alpha>(a) + a */
static lp_buf scaled_function(void) {
  lp_buf function = {0}, leaky = onnx_named("leaky", "LeakyRelu", "a", "m"), add = onnx_node("Add", "m a", "b");
  lp_buf fallback = {0};
  onnx_attr_ref(&leaky, "alpha", "alpha", 1);
  onnx_text(&function, 1, "scaled");
  onnx_text(&function, 4, "a");
  onnx_text(&function, 5, "b");
  onnx_sub(&function, 7, &leaky);
  onnx_sub(&function, 7, &add);
  onnx_text(&function, 10, "local");
  onnx_text(&fallback, 1, "alpha");
  onnx_varint(&fallback, 20, 1);
  lp_buf_append(&fallback, "\x15\x00\x00\x80\x3e", 5); /* f = 0.25 */
  onnx_sub(&function, 11, &fallback);
  return function;
}

LP_TEST(inlines_functions) {
  lp_buf graph = {0}, first = onnx_named("one", "scaled", "x", "h"), second = onnx_named("two", "scaled", "h", "y");
  onnx_domain(&first, "local");
  onnx_domain(&second, "local");
  onnx_attr_f(&first, "alpha", 0.5f);
  onnx_input(&graph, "x", ONNX_F32, "n");
  onnx_add(&graph, first);
  onnx_add(&graph, second);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_buf model = onnx_model(&graph, 17), function = scaled_function();
  onnx_function_field(&model, &function);
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(module, "%s", onnx_message(diag, 0));
  const lp_op *outer = onnx_result(module, 0), *leaky = lp_op_in(outer, 0)->def, *inner = lp_op_in(outer, 1)->def;
  ck_assert_double_eq(lp_op_f64(leaky, "alpha", 0), 0.25);
  ck_assert_str_eq(leaky->loc.node, "two/leaky");
  ck_assert_double_eq(lp_op_f64(lp_op_in(inner, 0)->def, "alpha", 0), 0.5);
  lp_module_free(module);
}

static lp_buf branch(const char *op) {
  lp_buf graph = {0};
  onnx_add(&graph, onnx_node(op, "x", "r"));
  onnx_output(&graph, "r", ONNX_F32, NULL);
  return graph;
}

/* As in optimum's merged decoders, each branch calls its results what the If calls its own, and reads them. */
LP_TEST(tells_names_of_a_branch_from_those_outside) {
  static const float one = 1;
  lp_buf graph = {0}, yes = {0}, no = branch("Neg"), choose = onnx_node("If", "use_cache_branch", "y z");
  onnx_initializer(&yes, onnx_tensor("w", ONNX_F32, "", &one, 4));
  onnx_add(&yes, onnx_node("Add", "x w", "y"));
  onnx_add(&yes, onnx_node("Relu", "y", "z"));
  onnx_output(&yes, "y", ONNX_F32, NULL);
  onnx_output(&yes, "z", ONNX_F32, NULL);
  onnx_attr_graph(&choose, "then_branch", &yes);
  onnx_attr_graph(&choose, "else_branch", &no);
  onnx_input(&graph, "x", ONNX_F32, "n 3");
  onnx_input(&graph, "use_cache_branch", ONNX_BOOL, "1");
  onnx_add(&graph, choose);
  onnx_add(&graph, onnx_node("Exp", "z", "w")); /* a node outside makes the name of the branch's own constant */
  onnx_output(&graph, "y", ONNX_F32, NULL);
  onnx_output(&graph, "w", ONNX_F32, NULL);
  lp_module *module = import(&graph, 17);
  ck_assert_int_eq(onnx_result(module, 0)->kind, LP_ONNX_Add);
  ck_assert_int_eq(onnx_result(module, 1)->kind, LP_ONNX_Exp);
  ck_assert_int_eq(lp_op_in(onnx_result(module, 1), 0)->def->kind, LP_ONNX_Relu);
  lp_module_free(module);
}

/* If rank(x) == 2 */
LP_TEST(inlines_branches) {
  static const int64_t two = 2;
  lp_buf graph = {0}, yes = branch("Relu"), no = branch("Neg"), choose = onnx_node("If", "c", "y");
  onnx_attr_graph(&choose, "then_branch", &yes);
  onnx_attr_graph(&choose, "else_branch", &no);
  onnx_input(&graph, "x", ONNX_F32, "n 3");
  onnx_initializer(&graph, onnx_tensor("two", ONNX_I64, "", &two, 8));
  onnx_add(&graph, choose);
  onnx_add(&graph, onnx_node("Equal", "rank two", "c"));
  onnx_add(&graph, onnx_node("Size", "shape", "rank"));
  onnx_add(&graph, onnx_node("Shape", "x", "shape"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 17);
  ck_assert_int_eq(onnx_result(module, 0)->kind, LP_ONNX_Relu);
  lp_module_free(module);
}

/* The input decides: both branches and a choice. */
LP_TEST(chooses_between_branches) {
  lp_buf graph = {0}, yes = branch("Relu"), no = branch("Neg"), choose = onnx_node("If", "c", "y");
  onnx_attr_graph(&choose, "then_branch", &yes);
  onnx_attr_graph(&choose, "else_branch", &no);
  onnx_input(&graph, "x", ONNX_F32, "n 3");
  onnx_input(&graph, "c", ONNX_BOOL, "1");
  onnx_add(&graph, choose);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 17);
  const lp_op *where = onnx_result(module, 0);
  ck_assert_int_eq(where->kind, LP_ONNX_Where);
  ck_assert_int_eq(lp_op_in(where, 0)->type.rank, 0);
  ck_assert_int_eq(lp_op_in(where, 1)->def->kind, LP_ONNX_Relu);
  ck_assert_int_eq(lp_op_in(where, 2)->def->kind, LP_ONNX_Neg);
  lp_module_free(module);
}

/* v = v + v, scanning v and the trip's number; goes on while its condition `going` holds, three times at most. */
static lp_module *unrolled(const char *going, bool scans) {
  static const int64_t three = 3, one = 1;
  lp_buf graph = {0}, body = {0}, node = onnx_named("repeat", "Loop", "three - x", scans ? "y s t" : "y");
  onnx_add(&body, onnx_node("Add", "v v", "w"));
  onnx_add(&body, onnx_node("Less", "i one", "early"));
  onnx_add(&body, onnx_node("Identity", going, "on"));
  onnx_input(&body, "i", ONNX_I64, "");
  onnx_input(&body, "k", ONNX_BOOL, "");
  onnx_input(&body, "v", ONNX_F32, "n");
  onnx_output(&body, "on", ONNX_BOOL, "");
  onnx_output(&body, "w", ONNX_F32, "n");
  if (scans) onnx_output(&body, "v", ONNX_F32, "n");
  if (scans) onnx_output(&body, "i", ONNX_I64, "");
  onnx_attr_graph(&node, "body", &body);
  onnx_input(&graph, "x", ONNX_F32, "n");
  onnx_input(&graph, "c", ONNX_BOOL, "");
  onnx_initializer(&graph, onnx_tensor("three", ONNX_I64, "", &three, 8));
  onnx_initializer(&graph, onnx_tensor("one", ONNX_I64, "", &one, 8));
  onnx_add(&graph, node);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  if (scans) onnx_output(&graph, "s", ONNX_F32, NULL);
  if (scans) onnx_output(&graph, "t", ONNX_I64, NULL);
  return import(&graph, 17);
}

LP_TEST(unrolls_loops) {
  lp_module *module = unrolled("k", true);
  const lp_op *add = onnx_result(module, 0);
  ck_assert_str_eq(add->loc.node, "repeat/2/w");
  ck_assert_ptr_eq(lp_op_in(add, 0), lp_op_in(add, 1));
  ck_assert_str_eq(lp_op_in(add, 0)->def->loc.node, "repeat/1/w");
  ck_assert_str_eq(onnx_type_text(module, onnx_result(module, 1)->out[0]), "f32[3,n]");
  ck_assert_int_eq(known(onnx_result(module, 2)->out[0], 2), 2);
  lp_module_free(module);
  module = unrolled("early", true); /* 0 < 1, not 1 < 1: two trips */
  ck_assert_str_eq(onnx_result(module, 0)->loc.node, "repeat/1/w");
  ck_assert_str_eq(onnx_type_text(module, onnx_result(module, 1)->out[0]), "f32[2,n]");
  lp_module_free(module);
  module = unrolled("c", false); /* the second and third take place where c holds */
  const lp_op *third = onnx_result(module, 0);
  ck_assert_int_eq(third->kind, LP_ONNX_Where);
  ck_assert_int_eq(lp_op_in(third, 0)->def->kind, LP_ONNX_And);
  const lp_op *second = lp_op_in(third, 2)->def;
  ck_assert_int_eq(second->kind, LP_ONNX_Where);
  ck_assert_str_eq(lp_op_in(second, 2)->def->loc.node, "repeat/0/w");
  lp_module_free(module);
}

LP_TEST(takes_the_branch_with_past) {
  lp_buf graph = {0}, yes = branch("Relu"), no = branch("Neg"), choose = onnx_node("If", "use_cache_branch", "y");
  onnx_attr_graph(&choose, "then_branch", &yes);
  onnx_attr_graph(&choose, "else_branch", &no);
  onnx_input(&graph, "x", ONNX_F32, "n 3");
  onnx_input(&graph, "use_cache_branch", ONNX_BOOL, "1");
  onnx_add(&graph, choose);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 17);
  ck_assert_int_eq(onnx_result(module, 0)->kind, LP_ONNX_Relu);
  lp_module_free(module);
}

/* The result of an equation on small whole numbers, in one text. */
static void einsum(const char *equation, const char *a_dims, const char *b_dims, const char *wanted) {
  static const float numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};
  lp_buf graph = {0}, node = onnx_node("Einsum", b_dims ? "a b" : "a", "y"), found = {0};
  size_t sizes[2] = {4, 4};
  for (const char *c = a_dims; *c; c++)
    if (*c != ' ') sizes[0] *= (size_t)(*c - '0');
  for (const char *c = b_dims ? b_dims : ""; *c; c++)
    if (*c != ' ') sizes[1] *= (size_t)(*c - '0');
  onnx_attr_s(&node, "equation", equation);
  onnx_initializer(&graph, onnx_tensor("a", ONNX_F32, a_dims, numbers, sizes[0]));
  if (b_dims) onnx_initializer(&graph, onnx_tensor("b", ONNX_F32, b_dims, numbers, sizes[1]));
  onnx_add(&graph, node);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 17);
  lp_arena *arena = lp_arena_create();
  int64_t sym[16] = {0}, count = 1;
  lp_array out;
  ck_assert_int_eq(lp_value_eval(module, onnx_result(module, 0)->out[0], NULL, 0, sym, arena, &out, diag), LP_OK);
  for (int32_t i = 0; i < out.rank; i++)
    count *= out.dim[i];
  for (int64_t i = 0; i < count; i++)
    lp_buf_printf(&found, "%s%g", i ? " " : "", (double)((float *)out.data)[i]);
  ck_assert_msg(strcmp(lp_buf_text(&found), wanted) == 0, "%s: found %s", equation, lp_buf_text(&found));
  lp_buf_free(&found);
  lp_arena_free(arena);
  lp_module_free(module);
}

LP_TEST(builds_einsum) {
  einsum("ij,jk->ik", "2 2", "2 2", "7 10 15 22");
  einsum("ij,jk", "2 2", "2 2", "7 10 15 22");
  einsum("i,j->ji", "2", "2", "1 2 2 4");
  einsum("i,i->", "2", "2", "5");
  einsum("ij->j", "2 2", NULL, "4 6");
  einsum("ij->ji", "2 3", NULL, "1 4 2 5 3 6");
  einsum("...ij,...kj->...ik", "1 2 2", "1 2 2", "5 11 11 25");
  einsum("abc,cbd->ad", "1 2 2", "2 2 1", "29"); /* 1*1 + 2*3 + 3*2 + 4*4 */
  einsum("abc,cd->abd", "2 1 2", "2 1", "5 11");
}

LP_TEST(reads_constants) {
  static const int64_t ints[] = {3, 4};
  lp_buf graph = {0}, list = onnx_node("Constant", "", "shape"), fill = onnx_node("ConstantOfShape", "shape", "f");
  float half = 0.5f;
  lp_buf tensor = onnx_tensor("", ONNX_F32, "1", &half, 4), number = onnx_node("Constant", "", "two");
  onnx_attr_ints(&list, "value_ints", 2, ints);
  onnx_attr_tensor(&fill, "value", &tensor);
  onnx_attr_f(&number, "value_float", 2);
  onnx_add(&graph, list);
  onnx_add(&graph, fill);
  onnx_add(&graph, number);
  onnx_add(&graph, onnx_node("Mul", "f two", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_module *module = import(&graph, 17);
  ck_assert_str_eq(onnx_type_text(module, onnx_result(module, 0)->out[0]), "f32[3,4]");
  ck_assert_int_eq(count_ops(module, LP_OP_CONSTANT), 2);
  lp_module_free(module);
}

static lp_buf constant_of(const char *form, float value) {
  lp_buf node = onnx_node("Constant", "", "c"), tensor = onnx_tensor("", ONNX_F32, "", &value, sizeof value);
  if (lp_streq(form, "value_float"))
    onnx_attr_f(&node, form, value);
  else
    onnx_attr_tensor(&node, form, &tensor);
  lp_buf_free(&tensor);
  return node;
}

/* Several constants of one name, before and after the node that reads it: ONNX Runtime 1.31 uses the latest. */
LP_TEST(uses_the_latest_constant) {
  for (int reader = 0; reader < 4; reader++) { /* the position of the reader among the constants */
    lp_buf graph = {0};
    onnx_input(&graph, "x", ONNX_F32, "2");
    for (int i = 0; i < 4; i++) {
      if (i == reader) onnx_add(&graph, onnx_node("Mul", "x c", "y"));
      if (i < 3) onnx_add(&graph, constant_of(i == 1 ? "value_float" : "value", (float)(i + 1)));
    }
    onnx_output(&graph, "y", ONNX_F32, NULL);
    lp_module *module = import(&graph, 17);
    lp_tensor used;
    ck_assert(lp_value_constant(lp_op_in(onnx_result(module, 0), 1), &used));
    ck_assert_double_eq(lp_tensor_f64(&used, 0), 3);
    ck_assert_ptr_nonnull(strstr(onnx_message(diag, lp_diag_count(diag) - 1),
                                 "value 'c' is defined twice: the latest constant of a name is used (2 are ignored)"));
    lp_module_free(module);
  }
}

LP_TEST(reads_tensor_files) {
  static const int64_t data[] = {5, 6};
  lp_buf tensor = onnx_tensor("ids", ONNX_I64, "1 2", data, sizeof data);
  onnx_write("input_0.pb", tensor.data, tensor.size);
  lp_buf_free(&tensor);
  lp_arena *arena = lp_arena_create();
  lp_array array;
  const char *name;
  ck_assert_int_eq(lp_onnx_read_tensor(onnx_path("input_0.pb"), arena, &array, &name, diag), LP_OK);
  ck_assert_str_eq(name, "ids");
  ck_assert_int_eq(array.rank, 2);
  ck_assert_int_eq(array.dim[1], 2);
  ck_assert_int_eq(((int64_t *)array.data)[1], 6);
  onnx_write("input_0.pb", "no", 2);
  ck_assert_int_eq(lp_onnx_read_tensor(onnx_path("input_0.pb"), arena, &array, &name, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  tensor = onnx_external("ids", ONNX_I64, "1 2", "nowhere.bin", "0", "16");
  onnx_write("input_0.pb", tensor.data, tensor.size);
  lp_buf_free(&tensor);
  ck_assert_int_eq(lp_onnx_read_tensor(onnx_path("input_0.pb"), arena, &array, &name, diag), LP_FAILED);
  ck_assert_ptr_nonnull(strstr(onnx_message(diag, 1), "tensor 'ids': its file 'nowhere.bin' does not exist"));
  lp_arena_free(arena);
}

/* ---- rows that data decides ---- */

/* Takes the rows of x [n, 2] that have a flag other than zero, doubles and negates them, and adds them at their
 * places. */
static lp_buf chosen_rows(void) {
  static const int64_t axes[] = {0}, last[] = {1};
  lp_buf graph = {0}, sum;
  onnx_input(&graph, "x", ONNX_F32, "n 2");
  onnx_input(&graph, "flags", ONNX_I64, "n");
  onnx_initializer(&graph, onnx_tensor("zero", ONNX_I64, "1", axes, sizeof axes));
  onnx_initializer(&graph, onnx_tensor("one", ONNX_I64, "1", last, sizeof last));
  onnx_add(&graph, onnx_node("NonZero", "flags", "places"));
  onnx_add(&graph, onnx_node("Squeeze", "places zero", "rows"));
  onnx_add(&graph, onnx_node("Gather", "x rows", "taken"));
  onnx_add(&graph, onnx_node("Add", "taken taken", "doubled"));
  onnx_add(&graph, onnx_node("Neg", "doubled", "made"));
  onnx_add(&graph, onnx_node("Unsqueeze", "rows one", "index"));
  sum = onnx_node("ScatterND", "x index made", "y");
  onnx_attr_s(&sum, "reduction", "add");
  onnx_add(&graph, sum);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  return onnx_model(&graph, 18);
}

LP_TEST(bounds_chosen_rows) {
  lp_buf model = chosen_rows();
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(module, "%s", onnx_message(diag, 0));
  ck_assert_int_eq(lp_module_verify(module, diag), LP_OK);
  ck_assert_int_eq(count_ops(module, LP_ONNX_NonZero), 0);
  ck_assert_int_eq(count_ops(module, LP_ONNX_Where), 1);
  ck_assert_str_eq(onnx_type_text(module, onnx_result(module, 0)->out[0]), "f32[n,2]");
  const lp_block *main = lp_module_find_func(module, "main")->region;
  float x[] = {1, 2, 3, 4, 5, 6}, wanted[] = {1, 2, -3, -4, 5, 6};
  int64_t flags[] = {0, 7, 0}, sym[64];
  for (size_t i = 0; i < 64; i++)
    sym[i] = 3;
  lp_binding bindings[] = {{main->arg[0], {LP_F32, 2, {3, 2}, x}}, {main->arg[1], {LP_I64, 1, {3}, flags}}};
  lp_arena *arena = lp_arena_create();
  lp_array out;
  ck_assert_int_eq(lp_value_eval(module, onnx_result(module, 0)->out[0], bindings, 2, sym, arena, &out, diag), LP_OK);
  for (int i = 0; i < 6; i++)
    ck_assert_float_eq(((const float *)out.data)[i], wanted[i]);
  lp_arena_free(arena);
  lp_module_free(module);
}

static void refuses_rows(lp_buf model) {
  lp_module *module = onnx_import(&model, diag);
  ck_assert(!module);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_ptr_nonnull(strstr(onnx_message(diag, 0), "depends on the data of input 0 ('flags')"));
}

LP_TEST(refuses_rows_that_meet) {
  static const int64_t axes[] = {0};
  lp_buf graph = {0}, sum = onnx_node("ReduceSum", "taken zero", "y");
  onnx_input(&graph, "x", ONNX_F32, "n 2");
  onnx_input(&graph, "flags", ONNX_I64, "n");
  onnx_initializer(&graph, onnx_tensor("zero", ONNX_I64, "1", axes, sizeof axes));
  onnx_add(&graph, onnx_node("NonZero", "flags", "places"));
  onnx_add(&graph, onnx_node("Squeeze", "places zero", "rows"));
  onnx_add(&graph, onnx_node("Gather", "x rows", "taken"));
  onnx_add(&graph, sum);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  refuses_rows(onnx_model(&graph, 18));
}

LP_TEST(refuses_rows_as_result) {
  lp_buf graph = {0};
  onnx_input(&graph, "flags", ONNX_I64, "n");
  onnx_add(&graph, onnx_node("NonZero", "flags", "y"));
  onnx_output(&graph, "y", ONNX_I64, NULL);
  refuses_rows(onnx_model(&graph, 18));
}

/* A mask that may have several elements along each of its two axes. */
LP_TEST(refuses_rows_of_any_matrix) {
  static const int64_t axes[] = {0};
  lp_buf graph = {0}, pick = onnx_node("Gather", "places zero", "first"), sum;
  onnx_input(&graph, "x", ONNX_F32, "n");
  onnx_input(&graph, "flags", ONNX_I64, "n 2");
  onnx_initializer(&graph, onnx_tensor("zero", ONNX_I64, "1", axes, sizeof axes));
  onnx_add(&graph, onnx_node("NonZero", "flags", "places"));
  onnx_add(&graph, pick);
  onnx_add(&graph, onnx_node("Squeeze", "first zero", "rows"));
  onnx_add(&graph, onnx_node("Gather", "x rows", "taken"));
  sum = onnx_node("ScatterElements", "x rows taken", "y");
  onnx_attr_s(&sum, "reduction", "add");
  onnx_add(&graph, sum);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  refuses_rows(onnx_model(&graph, 18));
}
