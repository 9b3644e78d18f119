// RUN: llmpart opt %s -p bind-inputs --verify-each | FileCheck %s
// Keys and values in one tensor, tokens without a known name.

"builtin.module"() ({
  // CHECK: ^bb0(%[[IDS:.*]]: tensor<?x?xi32, ["b", "s"]>, %[[P:.*]]: tensor<2x?x2x?x4xf32, ["b", "p"]>):
  // CHECK: input_roles = ["tokens", "past_kv"]
  // CHECK-SAME: output_roles = ["logits", "present_kv"]
  // CHECK-SAME: past_pair = array<i64: -1, 1>
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi32, ["n", "len"]>, %past: tensor<2x?x2x?x4xf32, ["n", "before"]>):
    %table = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %wide = "onnx.Cast"(%ids) {to = 7 : i64} : (tensor<?x?xi32, ["n", "len"]>) -> tensor<?x?xi64, ["n", "len"]>
    %h = "onnx.Gather"(%table, %wide) {axis = 0 : i64} : (tensor<8x8xf32>, tensor<?x?xi64, ["n", "len"]>) -> tensor<?x?x8xf32, ["n", "len"]>
    %split = "llmpart.constant"() {value = dense<[1, 0, 0, 2, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
    %ax = "llmpart.constant"() {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
    %shape = "llmpart.constant"() {value = dense<[0, 0, 2, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
    %r = "onnx.Reshape"(%h, %shape) : (tensor<?x?x8xf32, ["n", "len"]>, tensor<4xi64>) -> tensor<?x?x2x4xf32, ["n", "len"]>
    %t = "onnx.Transpose"(%r) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["n", "len"]>) -> tensor<?x2x?x4xf32, ["n", "len"]>
    %u = "onnx.Unsqueeze"(%t, %ax) : (tensor<?x2x?x4xf32, ["n", "len"]>, tensor<1xi64>) -> tensor<1x?x2x?x4xf32, ["n", "len"]>
    %both = "onnx.Concat"(%u, %u) {axis = 0 : i64} : (tensor<1x?x2x?x4xf32, ["n", "len"]>, tensor<1x?x2x?x4xf32, ["n", "len"]>) -> tensor<2x?x2x?x4xf32, ["n", "len"]>
    %present = "onnx.Concat"(%past, %both) {axis = 3 : i64} : (tensor<2x?x2x?x4xf32, ["n", "before"]>, tensor<2x?x2x?x4xf32, ["n", "len"]>) -> tensor<2x?x2x?x4xf32, ["n", "before + len"]>
    "llmpart.return"(%h, %present) : (tensor<?x?x8xf32, ["n", "len"]>, tensor<2x?x2x?x4xf32, ["n", "before + len"]>) -> ()
  }) {inputs = ["words", "past_0"], outputs = ["scores", "present_0"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t", "n", "len", "before"]} : () -> ()
