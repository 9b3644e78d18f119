/* Hostile files. A small generator writes each; it is imported and, if the import succeeds, goes through every pass: in
 * bounded time and memory, and with the expected message or none. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "frontend/frontend.h"
#include "passes/passes.h"
#include "tests/frontend/onnx_writer.h"
#include "tests/suite.h"

static int many; /* nodes of a large graph */

static void setup(void) {
  many = lp_part("long") ? 100000 : 5000;
}

LP_CASE(.setup = setup, .timeout = 600);

/* ---- models ---- */

static lp_buf with_x(void) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "s 8");
  return graph;
}

static lp_buf with_y(lp_buf graph) {
  onnx_output(&graph, "y", ONNX_F32, NULL);
  return onnx_model(&graph, 17);
}

static void add_i64s(lp_buf *graph, const char *name, int count, const int64_t *values) {
  char dims[16];
  snprintf(dims, sizeof dims, "%d", count);
  onnx_initializer(graph, onnx_tensor(name, ONNX_I64, dims, values, (size_t)count * sizeof *values));
}

/* `count` nodes one after another from `from` to `to`; `more`: a further input of each, or "". */
static void add_chain(lp_buf *graph, const char *op, const char *from, const char *to, const char *more, int count) {
  for (int i = 0; i < count; i++) {
    char in[96], out[32], before[32];
    snprintf(before, sizeof before, "%s.%d", to, i);
    snprintf(in, sizeof in, "%s %s", i ? before : from, more);
    snprintf(out, sizeof out, i + 1 < count ? "%s.%d" : "%s", to, i + 1);
    onnx_add(graph, onnx_node(op, in, out));
  }
}

/* ---- running ---- */

static double seconds(void) {
  return (double)clock() / CLOCKS_PER_SEC; /* of this process: others do not count */
}

/* Runs everything that a compilation does before code; at most one error is reported. */
static void compile(lp_module *module, lp_diag *diag) {
  const lp_compile_request request = {.isl = 16, .osl = 4, .batch = 1};
  const lp_run_options options = {.verify_each = true};
  lp_status status = lp_passes_run(module, lp_pipeline_ops, &request, &options, diag);
  ck_assert_uint_eq(lp_diag_error_count(diag), status == LP_OK ? 0 : 1);
}

/* The model imports and compiles, or its only error holds `text`. */
static void expect(lp_buf model, const char *text) {
  lp_diag *diag = lp_diag_create();
  lp_module *module = onnx_import(&model, diag);
  if (module) compile(module, diag);
  bool failed = lp_diag_error_count(diag) > 0;
  ck_assert_msg(failed == (text != NULL), "%s", failed ? onnx_message(diag, 0) : "taken");
  if (text) ck_assert_msg(strstr(onnx_message(diag, 0), text), "found '%s', wanted '%s'", onnx_message(diag, 0), text);
  lp_module_free(module);
  lp_diag_free(diag);
  onnx_cleanup();
}

/* Builds a model of about `count` nodes; `op` is what expect_linear was given. */
typedef lp_buf model_maker(const char *op, int count);

static double seconds_for(model_maker *make, const char *op, int count) {
  lp_buf model = make(op, count);
  double start = seconds();
  expect(model, NULL);
  return seconds() - start;
}

/* Four times the nodes take about four times as long, and not sixteen times as with a quadratic algorithm. */
static void expect_linear(model_maker *make, const char *op) {
  double quarter = seconds_for(make, op, many / 4), whole = seconds_for(make, op, many);
  ck_assert_msg(whole < 10 * quarter + 0.1, "%g s for %d nodes and %g s for %d", quarter, many / 4, whole, many);
}

/* The cost of a loop is that of its actual trips, not of the possible ones. */
LP_TEST(many_scans) {
  lp_buf body = {0}, graph = with_x(), node = onnx_node("Loop", "trips", "");
  const int64_t none = 0;
  onnx_input(&body, "i", ONNX_I64, "");
  onnx_input(&body, "go", ONNX_BOOL, "");
  for (int i = 0; i < many * 10; i++)
    lp_buf_append(&body, "\x62", 2); /* an output without a name */
  onnx_initializer(&graph, onnx_tensor("trips", ONNX_I64, "", &none, sizeof none));
  onnx_attr_graph(&node, "body", &body);
  onnx_add(&graph, node);
  onnx_add(&graph, onnx_node("Relu", "x", "y"));
  expect(with_y(graph), NULL);
}

/* ---- the wire format ---- */

/* A message of two bytes becomes one of a hundred. */
LP_TEST(many_messages) {
  lp_buf graph = with_x();
  for (int i = 0; i < (4 << 20) + 10; i++)
    lp_buf_append(&graph, "\x0a", 2);
  expect(with_y(graph), "more than 4194304 messages");
}

LP_TEST(large_texts) {
  static char text[1 << 20];
  memset(text, 'a', sizeof text - 1);
  lp_buf graph = with_x();
  lp_buf node = onnx_node("Relu", "x", "y");
  for (int i = 0; i < 257; i++)
    onnx_text(&node, 1, text);
  onnx_add(&graph, node);
  expect(with_y(graph), "more than 256 MiB outside of its tensors' data");
}

LP_TEST(names_with_nul) {
  lp_buf graph = with_x(), node = {0};
  onnx_bytes(&node, 1, "x\0x", 3);
  onnx_text(&node, 2, "y");
  onnx_text(&node, 4, "Relu");
  onnx_add(&graph, node);
  expect(with_y(graph), "has a NUL byte in it");
}

/* Control characters are shown as escapes, and long names are cut. */
LP_TEST(names_in_messages) {
  static char name[100000];
  memset(name, 'n', sizeof name - 1);
  lp_buf graph = with_x();
  onnx_add(&graph, onnx_named("\x1b[2J\nerror", "Relu\x07", "x", "y"));
  expect(with_y(graph), "node '\\x1b[2J\\x0aerror' (Relu\\x07): error: operator 'Relu\\x07'");
  graph = with_x();
  onnx_add(&graph, onnx_named(name, "Frobnicate", "x", "y"));
  expect(with_y(graph), "nnn... (99999 bytes)' (Frobnicate): error");
}

/* ---- functions ---- */

static void add_function(lp_buf *model, const char *name, lp_buf first, lp_buf second) {
  lp_buf function = {0};
  onnx_text(&function, 1, name);
  onnx_text(&function, 4, "a");
  onnx_text(&function, 5, "b");
  onnx_sub(&function, 7, &first);
  onnx_sub(&function, 7, &second);
  onnx_function_field(model, &function);
}

/* A long name in a function that is called often. */
LP_TEST(inlined_names) {
  static char name[1 << 20];
  memset(name, 'n', sizeof name - 1);
  lp_buf graph = with_x();
  add_chain(&graph, "F", "x", "y", "", 2000);
  lp_buf model = with_y(graph);
  add_function(&model, "F", onnx_named(name, "Relu", "a", "m"), onnx_node("Neg", "m", "b"));
  expect(model, "take more than 1024 MiB once functions are inlined");
}

LP_TEST(functions_in_a_ring) {
  lp_buf graph = with_x();
  onnx_add(&graph, onnx_node("F", "x", "y"));
  lp_buf model = with_y(graph);
  add_function(&model, "F", onnx_node("G", "a", "m"), onnx_node("Neg", "m", "b"));
  add_function(&model, "G", onnx_node("F", "a", "m"), onnx_node("Neg", "m", "b"));
  expect(model, "functions and branches nest deeper than 64 levels");
}

/* ---- sizes ---- */

/* y = x + max(op(inputs)), where the input "n" holds the given numbers. */
static lp_buf added(const char *op, const char *inputs, int count, const int64_t *n) {
  lp_buf graph = with_x();
  add_i64s(&graph, "n", count, n);
  onnx_initializer(&graph, onnx_tensor("one", ONNX_F32, "1", (float[]){1}, 4));
  onnx_initializer(&graph, onnx_tensor("zero", ONNX_F32, "", (float[]){0}, 4));
  onnx_initializer(&graph, onnx_tensor("step", ONNX_F32, "", (float[]){1}, 4));
  onnx_initializer(&graph, onnx_tensor("much", ONNX_F32, "", (float[]){1e12f}, 4));
  onnx_add(&graph, onnx_node(op, inputs, "big"));
  lp_buf top = onnx_node("ReduceMax", "big", "top");
  onnx_attr_i(&top, "keepdims", 0);
  onnx_add(&graph, top);
  onnx_add(&graph, onnx_node("Add", "x top", "y"));
  return with_y(graph);
}

/* None of these results is computed: the operator stays, or is refused. */
LP_TEST(large_constants) {
  int64_t huge[] = {1000000, 1000000}, overflow[] = {1 << 30, 1 << 30, 1 << 30}, negative[] = {-1, 4},
          pads[] = {0, 1000000000};
  expect(added("ConstantOfShape", "n", 2, huge), NULL);
  expect(added("Expand", "one n", 2, huge), NULL);
  expect(added("Tile", "one n", 1, huge), NULL);
  expect(added("Pad", "one n", 2, pads), NULL);
  expect(added("Range", "zero much step", 1, huge), NULL);
  expect(added("ConstantOfShape", "n", 3, overflow), "the size of its result overflows");
  expect(added("ConstantOfShape", "n", 2, negative), "would have the size -1");
}

static lp_buf constant_functions(const char *op, int count) {
  lp_buf graph = with_x();
  add_i64s(&graph, "n", 1, (int64_t[]){16000});
  onnx_add(&graph, onnx_node("ConstantOfShape", "n", "c"));
  add_chain(&graph, op, "c", "e", "", count);
  onnx_add(&graph, onnx_node("ReduceMax", "e", "top"));
  onnx_add(&graph, onnx_node("Add", "x top", "y"));
  return with_y(graph);
}

static lp_buf constant_products(const char *op, int count) {
  lp_buf graph = with_x();
  add_i64s(&graph, "n", 2, (int64_t[]){120, 120});
  onnx_add(&graph, onnx_node("ConstantOfShape", "n", "c"));
  onnx_add(&graph, onnx_node("Exp", "c", "m"));
  add_chain(&graph, op, "m", "e", "m", count / 10);
  onnx_add(&graph, onnx_node("ReduceMax", "e", "top"));
  onnx_add(&graph, onnx_node("Add", "x top", "y"));
  return with_y(graph);
}

/* Many small constants add up: folding has a budget. */
LP_TEST(chains_of_constants) {
  expect_linear(constant_functions, "Exp");
  expect_linear(constant_products, "MatMul");
}

LP_TEST(many_symbols) {
  lp_buf graph = {0};
  for (int i = 0; i < 5000; i++) {
    char name[16], dims[16];
    snprintf(name, sizeof name, "x%d", i);
    snprintf(dims, sizeof dims, "s%d 8", i);
    onnx_input(&graph, name, ONNX_F32, dims);
  }
  onnx_add(&graph, onnx_node("Relu", "x0", "y"));
  expect(with_y(graph), "more than 4096 names of dimensions");
}

/* Each addition makes one more pair of symbols equal, everywhere. */
LP_TEST(many_equal_symbols) {
  lp_buf graph = {0};
  for (int i = 0; i < 4000; i++) {
    char name[16], dims[16];
    snprintf(name, sizeof name, "x%d", i);
    snprintf(dims, sizeof dims, "s%d 8", i);
    onnx_input(&graph, name, ONNX_F32, dims);
  }
  add_chain(&graph, "Relu", "x0", "r", "", many / 2);
  onnx_add(&graph, onnx_node("Add", "x0 x1", "a1"));
  for (int i = 2; i < 4000; i++) {
    char in[32], out[16];
    snprintf(in, sizeof in, "a%d x%d", i - 1, i);
    snprintf(out, sizeof out, "a%d", i);
    onnx_add(&graph, onnx_node("Add", in, out));
  }
  onnx_add(&graph, onnx_node("Add", "a3999 r", "y"));
  expect(with_y(graph), "too many dimensions that must agree with each other");
}

/* The product of two sums of 100 sizes has 10,000 terms. */
LP_TEST(products_of_sums) {
  lp_buf graph = {0}, names = {0}, other = {0};
  for (int i = 0; i < 200; i++) {
    char name[16], dims[16];
    snprintf(name, sizeof name, "x%d", i);
    snprintf(dims, sizeof dims, i < 100 ? "s%d 1" : "1 s%d", i);
    onnx_input(&graph, name, ONNX_F32, dims);
    lp_buf_printf(i < 100 ? &names : &other, "%s ", name);
  }
  lp_buf rows = onnx_node("Concat", lp_buf_text(&names), "rows");
  lp_buf columns = onnx_node("Concat", lp_buf_text(&other), "columns");
  onnx_attr_i(&rows, "axis", 0);
  onnx_attr_i(&columns, "axis", 1);
  onnx_add(&graph, rows);
  onnx_add(&graph, columns);
  onnx_add(&graph, onnx_node("Mul", "rows columns", "m"));
  add_i64s(&graph, "n", 1, (int64_t[]){-1});
  onnx_add(&graph, onnx_node("Reshape", "m n", "y"));
  expect(with_y(graph), "the number of its elements overflows");
  lp_buf_free(&names);
  lp_buf_free(&other);
}

/* ---- long graphs ---- */

static lp_buf chain(const char *op, int count) {
  lp_buf graph = with_x();
  add_chain(&graph, op, "x", "y", "", count);
  return with_y(graph);
}

LP_TEST(long_chains) {
  static const char *const ops[] = {"Relu", "Sigmoid", "Transpose", "Softmax", "Identity"};
  for (size_t i = 0; i < LP_COUNT(ops); i++)
    expect_linear(chain, ops[i]);
}

static lp_buf backwards(const char *op, int count) {
  lp_buf graph = with_x();
  for (int i = count; i > 0; i--) {
    char in[16], out[16];
    snprintf(in, sizeof in, i > 1 ? "v%d" : "x", i - 1);
    snprintf(out, sizeof out, i < count ? "v%d" : "y", i);
    onnx_add(&graph, onnx_node(op, in, out));
  }
  return with_y(graph);
}

LP_TEST(long_backwards) {
  expect_linear(backwards, "Relu");
}

static lp_buf integers(const char *op, int count) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_I64, "4");
  add_i64s(&graph, "n", 1, (int64_t[]){1});
  add_chain(&graph, op, "x", "i", "n", count);
  lp_buf cast = onnx_node("Cast", "i", "y");
  onnx_attr_i(&cast, "to", ONNX_F32);
  onnx_add(&graph, cast);
  return with_y(graph);
}

/* Integers of a static size that depend on the input: shape arithmetic that never becomes known. */
LP_TEST(long_integers) {
  expect_linear(integers, "Add");
}

static lp_buf wide(const char *op, int count) {
  lp_buf graph = with_x(), names = {0};
  for (int i = 0; i < count; i++) {
    char out[16];
    snprintf(out, sizeof out, "v%d", i);
    onnx_add(&graph, onnx_node(i % 2 ? "Neg" : op, "x", out));
    if (i < 4000) lp_buf_printf(&names, "%s ", out);
  }
  onnx_add(&graph, onnx_node("Sum", lp_buf_text(&names), "y"));
  lp_buf_free(&names);
  return with_y(graph);
}

/* One value that everything reads, and one operator that reads everything it may. */
LP_TEST(wide_graphs) {
  expect_linear(wide, "Exp");
}

static lp_buf mask_after_chain(const char *op, int count) {
  lp_buf graph = {0};
  onnx_input(&graph, "q", ONNX_F32, "1 2 s 8");
  add_i64s(&graph, "n", 2, (int64_t[]){100000, 100000});
  onnx_add(&graph, onnx_node("ConstantOfShape", "n", "c"));
  add_chain(&graph, op, "c", "m", "", count);
  lp_buf slice = onnx_node("Shape", "q", "sizes");
  onnx_add(&graph, slice);
  add_i64s(&graph, "two", 1, (int64_t[]){2});
  add_i64s(&graph, "none", 1, (int64_t[]){0});
  onnx_add(&graph, onnx_node("Gather", "sizes two", "s1"));
  onnx_add(&graph, onnx_node("Slice", "m none s1 none", "rows"));
  add_i64s(&graph, "last", 1, (int64_t[]){1});
  onnx_add(&graph, onnx_node("Slice", "rows none s1 last", "mask"));
  lp_buf kt = onnx_node("Transpose", "q", "kt");
  onnx_attr_ints(&kt, "perm", 4, (int64_t[]){0, 1, 3, 2});
  onnx_add(&graph, kt);
  onnx_add(&graph, onnx_node("MatMul", "q kt", "scores"));
  onnx_add(&graph, onnx_node("Add", "scores mask", "masked"));
  onnx_add(&graph, onnx_node("Softmax", "masked", "p"));
  onnx_add(&graph, onnx_node("MatMul", "p q", "y"));
  return with_y(graph);
}

/* An attention mask at the end of a long chain without inputs is evaluated without recursion. */
LP_TEST(long_masks) {
  expect_linear(mask_after_chain, "Relu");
}
