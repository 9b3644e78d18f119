/* Printer, parser and verifier: parse(print(m)) prints the same, and each refusal names its place. */
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "tests/suite.h"

static const char sample[] =
    "\"builtin.module\"() ({\n"
    "  \"llmpart.state\"() {append_axis = 2 : i64, dtype = \"f32\", index = 0 : i64, name = \"k\", shape = "
    "#llmpart.polys<\"b, 3, c, 64\">} : () -> ()\n"
    "  \"llmpart.func\"() ({\n"
    "  ^bb0(%0: tensor<?x?x8xf32, [\"b\", \"s\"]>, %1: tensor<1xi1>):\n"
    "    %2 = \"llmpart.constant\"() {value = dense<[[1.0e+00, 0x7F800000], [-2.5e-01, 1.17549435e-38]]> : "
    "tensor<2x2xf32>} : () -> tensor<2x2xf32>\n"
    "    %3 = \"llmpart.weight\"() {file = \"w \\22x\\22\", length = 256 : i64, offset = 64 : i64} : () -> "
    "tensor<8x8xf32>\n"
    "    %4 = \"op.linear\"(%0, %3, %0) {bytes_read = #llmpart.poly<\"64*b*s + 256\">, bytes_written = "
    "#llmpart.poly<\"32*b*s\">, epilogue = \"silu\", flops = #llmpart.poly<\"144*b*s\">, operand_mask = \"1101\"} : "
    "(tensor<?x?x8xf32, [\"b\", \"s\"]>, tensor<8x8xf32>, tensor<?x?x8xf32, [\"b\", \"s\"]>) -> tensor<?x?x8xf32, "
    "[\"b\", \"s\"]> loc(\"/layers.0/mlp/MatMul (MatMul)\"(\"m.onnx\":0:0))\n"
    "    %5:2 = \"op.add_norm\"(%4, %0) {epsilon = 1.0e-05 : f64, type = \"rms\"} : (tensor<?x?x8xf32, [\"b\", "
    "\"s\"]>, "
    "tensor<?x?x8xf32, [\"b\", \"s\"]>) -> (tensor<?x?x8xf32, [\"b\", \"s\"]>, tensor<?x?x8xf32, [\"b\", \"s\"]>)\n"
    "    %6 = \"llmpart.constant\"() {value = dense<[-8, 7, -1]> : tensor<3xi4>} : () -> tensor<3xi4>\n"
    "    %7 = \"llmpart.constant\"() {value = dense<[0, 3, 1, 2, 3]> : tensor<5xui2>} : () -> tensor<5xui2>\n"
    "    %8 = \"llmpart.constant\"() {value = dense<[4.48e+02, 0xFF, -1.5e+00]> : tensor<3xf8E4M3FN>} : () -> "
    "tensor<3xf8E4M3FN>\n"
    "    %9 = \"llmpart.constant\"() {value = dense<[-6.0e+00, 5.0e-01]> : tensor<2x!llmpart.f4E2M1>} : () -> "
    "tensor<2x!llmpart.f4E2M1>\n"
    "    \"llmpart.return\"(%5#1) : (tensor<?x?x8xf32, [\"b\", \"s\"]>) -> ()\n"
    "  }) {inputs = [\"x\", \"m\"], outputs = [\"y\"], places = [\"phone\", \"edge\"], sym_name = \"main\"} : () -> "
    "()\n"
    "}) {llmpart.name = \"m.onnx\", llmpart.symbols = [\"b\", \"s\", \"p\", \"r\", \"c\", \"t\"]} : () -> ()\n";

static lp_module *parse(const char *text, lp_diag *diag) {
  lp_module *module = NULL;
  lp_status status = lp_module_parse("t.mlir", text, strlen(text), &module, diag);
  return status == LP_OK ? module : NULL;
}

/* Places in the model are printed on demand, for each operator that has one. */
LP_TEST(locations) {
  lp_module *module = parse(sample, NULL);
  ck_assert_ptr_nonnull(module);
  lp_buf with = {0}, without = {0};
  lp_module_print(module, true, &with);
  lp_module_print(module, false, &without);
  const char *at = strstr(lp_buf_text(&with), " loc(");
  ck_assert_ptr_nonnull(at);
  ck_assert_int_eq(strncmp(at, " loc(\"/layers.0/mlp/MatMul (MatMul)\"(\"m.onnx\":0:0))\n", 52), 0);
  ck_assert_ptr_null(strstr(at + 1, " loc("));
  ck_assert_ptr_null(strstr(lp_buf_text(&without), " loc("));
  ck_assert_uint_eq(with.size - without.size, 51);
  lp_buf_free(&with);
  lp_buf_free(&without);
  lp_module_free(module);
}

/* Bytes of strings may be given by two hexadecimal digits, large or small. */
LP_TEST(escapes) {
  lp_buf text = {0}, printed = {0};
  const char *from = "w \\22x\\22", *at = strstr(sample, from);
  lp_buf_append(&text, sample, (size_t)(at - sample));
  lp_buf_puts(&text, "\\7a\\7A\\4f\\4F\\39");
  lp_buf_puts(&text, at + strlen(from));
  lp_module *module = parse(lp_buf_text(&text), NULL);
  ck_assert_ptr_nonnull(module);
  lp_module_print(module, false, &printed);
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&printed), "file = \"zzOO9\""));
  lp_buf_free(&text);
  lp_buf_free(&printed);
  lp_module_free(module);
}

LP_TEST(round_trip_is_the_identity) {
  lp_diag *diag = lp_diag_create();
  lp_module *module = parse(sample, diag);
  lp_buf text = {0};
  if (lp_diag_count(diag)) lp_diag_format(lp_diag_get(diag, 0), &text);
  ck_assert_msg(module != NULL, "%s", lp_buf_text(&text));
  lp_status status = lp_module_verify(module, diag);
  if (status != LP_OK) lp_diag_format(lp_diag_get(diag, 0), &text);
  ck_assert_msg(status == LP_OK, "%s", lp_buf_text(&text));
  lp_buf_clear(&text);
  lp_module_print(module, true, &text);
  lp_module *again = parse(lp_buf_text(&text), diag);
  ck_assert_ptr_nonnull(again);
  lp_buf second = {0};
  lp_module_print(again, true, &second);
  ck_assert_str_eq(lp_buf_text(&text), lp_buf_text(&second));
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&text), "0x7F800000"));
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&text), "operand_mask = \"1101\""));
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&text), "dense<[-8, 7, -1]> : tensor<3xi4>"));
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&text), "dense<[0, 3, 1, 2, 3]> : tensor<5xui2>"));
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&text), "dense<[4.48e+02, 0xFF, -1.5e+00]> : tensor<3xf8E4M3FN>"));
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&text), "dense<[-6.0e+00, 5.0e-01]> : tensor<2x!llmpart.f4E2M1>"));
  lp_buf_free(&text);
  lp_buf_free(&second);
  lp_module_free(module);
  lp_module_free(again);
  lp_diag_free(diag);
}

/* Each case: a text of `sample`, its replacement, and the expected message. */
static const struct {
  const char *from, *to, *message;
} refusals[] = {
    {"op.linear", "op.liner", "unknown operator 'op.liner'"},
    {"(%5#1)", "(%99)", "value '%99' is not defined"},
    {"(%5#1)", "(%5#2)", "has 2 results"},
    {"tensor<8x8xf32>\n", "tensor<8x9xf32>\n", "differs from its definition"},
    {"epilogue = \"silu\"", "epilogue = \"siluu\"", "unknown epilogue"},
    {"epsilon = 1.0e-05 : f64", "epsilon = 1 : i64", "attribute 'epsilon' of 'op.add_norm' is i64, should be f64"},
    {"epsilon = 1.0e-05 : f64, ", "", "'op.add_norm' needs the attribute 'epsilon'"},
    {"type = \"rms\"", "tipe = \"rms\"", "has no attribute 'tipe'"},
    {"144*b*s", "145*b*s", "'flops' of 'op.linear' differs"},
    {"\"1101\"", "\"1111\"", "does not fit"},
    {"\"llmpart.return\"(", "\"op.linear\"() : () -> () \"llmpart.return\"(", "'op.linear' has 0 operands, needs"},
    {"sym_name = \"main\"", "sym = \"main\"", "needs the attribute 'sym_name'"},
    {"\"llmpart.return\"", "\"llmpart.yield\"", "does not end with 'llmpart.return'"},
    {"dense<[[1.0e+00, ", "dense<[[", "3 elements for a shape of 4"},
    {"}) {llmpart.name", "{llmpart.name", "expected"},
    {"[\"phone\", ", "[\"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", ", "a list of 1 to 8 names"},
    {"[\"phone\", \"edge\"]", "[]", "a list of 1 to 8 names"},
    {"\"edge\"", "\"the edge\"", "'the edge' in `places` is no name of a place"},
    {"\"edge\"", "\"phone\"", "`places` has 'phone' twice"},
    {"\"w \\22x\\22\"", "\"w \\", "unknown escape"},
    {"tensor<1xi1>)", "tensor<1xi7>)", "expected an element type, found 'i7'"},
    {"%1: tensor<1xi1>", "%1: memref<1xi1>", "expected a tensor type, found 'memref'"},
    {"%1: tensor<1xi1>", "%1: tensor[1xi1>", "expected '<', found '['"},
    {"%1: tensor<1xi1>", "%1: tensor<1x1x1x1x1x1x1x1x1xi1>", "malformed dimensions (at most 8)"},
    {"[\"b\", \"s\"]>, %1", "[b, \"s\"]>, %1", "expected a dimension in quotes, found 'b'"},
    {"[-8, 7, -1]", "[-8, x, -1]", "expected a number, found 'x'"},
    {"[-8, 7, -1]", "[[[[[[[[[[-8]]]]]]]]]]", "lists nest deeper than 8"},
    {"[-8, 7, -1]", "[-8, 99999999999999999999, -1]", "is not a number of type i4"},
    {"[-8, 7, -1]", "[-8, 7.5, -1]", "'7.5' is not a number of type i4"},
    {"[-8, 7, -1]> : tensor<3xi4>", "[-8, 7, -1]> : tensor<?xi4, [\"b\"]>", "a constant's shape must be static"},
    {"[-8, 7, -1]> : tensor<3xi4>", "[-8, 7]> : tensor<3xi4>", "2 elements for a shape of 3"},
    {"index = 0 : i64", "index = 0 : i32", "expected i64 or f64, found 'i32'"},
    {"[\"x\", \"m\"]", "[\"x\", 7]", "expected a text in quotes, found '7'"},
    {"#llmpart.polys<\"b, 3, c, 64\">", "#llmpart.lists<\"b, 3, c, 64\">", "unknown attribute '#llmpart.lists'"},
    {"#llmpart.polys<\"b, 3, c, 64\">", "#llmpart.polys<b>", "expected a polynomial in quotes, found 'b'"},
    {"name = \"k\"", "name = k", "expected an attribute, found 'k'"},
    {"(tensor<?x?x8xf32, [\"b\", \"s\"]>) -> ()\n  })", "() -> ()\n  })", "1 operands, but 0 types"},
    {"%2 = \"llmpart.constant\"", "%2:2 = \"llmpart.constant\"", "2 result names, but 1 result types"},
    {"\"llmpart.state\"", "\"builtin.module\"", "'builtin.module' inside a module"},
    {"\"builtin.module\"", "\"llmpart.func\"", "expected 'builtin.module'"},
    {"\"llmpart.state\"() {append_axis = 2 : i64, dtype = \"f32\", index = 0 : i64, name = \"k\", shape = "
     "#llmpart.polys<\"b, 3, c, 64\">} : () -> ()",
     "%99 = \"op.fill\"() {value = 0.0e+00 : f64} : () -> tensor<1xf32>", "'op.fill' stands outside a function"},
    {"    \"llmpart.return\"(%5#1)", "    \"llmpart.return\"() : () -> ()\n    \"llmpart.return\"(%5#1)",
     "'llmpart.return' is not last in its block"},
    {"%6 = \"llmpart.constant\"() {value = dense<[-8, 7, -1]> : tensor<3xi4>} : () -> tensor<3xi4>",
     "%6 = \"op.fused\"(%0) : (tensor<?x?x8xf32, [\"b\", \"s\"]>) -> tensor<?x?x8xf32, [\"b\", \"s\"]>",
     "'op.fused' needs a region"},
    {"%6 = \"llmpart.constant\"() {value", "%6 = \"llmpart.constant\"() ({\n}) {value",
     "'llmpart.constant' takes no region"},
    {"%6 = \"llmpart.constant\"() {value = dense<[-8, 7, -1]> : tensor<3xi4>} : () -> tensor<3xi4>",
     "%6 = \"op.fused\"(%0) ({\n^bb0(%a: tensor<?x?x8xf32, [\"b\", \"s\"]>):\n\"llmpart.yield\"() : () -> ()\n}) : "
     "(tensor<?x?x8xf32, [\"b\", \"s\"]>) -> tensor<?x?x8xf32, [\"b\", \"s\"]>",
     "'llmpart.yield' has 0 operands for 1 results"},
    {"%6 = \"llmpart.constant\"() {value = dense<[-8, 7, -1]> : tensor<3xi4>} : () -> tensor<3xi4>",
     "%6 = \"op.fused\"(%0) ({\n^bb0(%a: tensor<?x?x8xf32, [\"b\", \"s\"]>, %b: tensor<1xf32>):\n\"llmpart.yield\"(%a) "
     ": "
     "(tensor<?x?x8xf32, [\"b\", \"s\"]>) -> ()\n}) : (tensor<?x?x8xf32, [\"b\", \"s\"]>) -> tensor<?x?x8xf32, [\"b\", "
     "\"s\"]>",
     "region's arguments differ from the operands"},
    {"%6 = \"llmpart.constant\"() {value = dense<[-8, 7, -1]> : tensor<3xi4>} : () -> tensor<3xi4>",
     "%6 = \"op.fused\"(%0) ({\n^bb0(%a: tensor<?x?x8xf32, [\"b\", \"s\"]>):\n%c = \"op.softmax\"(%a) : "
     "(tensor<?x?x8xf32, "
     "[\"b\", \"s\"]>) -> tensor<?x?x8xf32, [\"b\", \"s\"]>\n\"llmpart.yield\"(%c) : (tensor<?x?x8xf32, [\"b\", "
     "\"s\"]>) -> "
     "()\n}) : (tensor<?x?x8xf32, [\"b\", \"s\"]>) -> tensor<?x?x8xf32, [\"b\", \"s\"]>",
     "region holds more than op.map"},
};

LP_LOOP_TEST(refusal_names_its_place, 0, LP_COUNT(refusals)) {
  const char *at = strstr(sample, refusals[_i].from);
  ck_assert_ptr_nonnull(at);
  lp_buf text = {0}, message = {0};
  lp_buf_append(&text, sample, (size_t)(at - sample));
  lp_buf_puts(&text, refusals[_i].to);
  lp_buf_puts(&text, at + strlen(refusals[_i].from));
  lp_diag *diag = lp_diag_create();
  lp_module *module = parse(lp_buf_text(&text), diag);
  if (module) ck_assert_int_eq(lp_module_verify(module, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  lp_diag_format(lp_diag_get(diag, 0), &message);
  ck_assert_msg(strstr(lp_buf_text(&message), refusals[_i].message) != NULL, "%s", lp_buf_text(&message));
  lp_module_free(module);
  lp_buf_free(&text);
  lp_buf_free(&message);
  lp_diag_free(diag);
}
