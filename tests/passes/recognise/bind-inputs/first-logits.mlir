// RUN: llmpart opt %s -p bind-inputs --verify-each | FileCheck %s
// If no output is called "logits", the first one of their type and the tokens' own sizes is taken; a later one is an
// exit's. Outputs of integers, of other sizes, and of a vocabulary that varies are data.

// CHECK: output_roles = ["data", "data", "logits", "exit_logits"]
// CHECK-SAME: outputs = ["classes", "moved", "scores", "more"]
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["batch", "seq"]>):
    %table = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %e = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<8x8xf32>, tensor<?x?xi64, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["batch", "seq"]>
    %c = "onnx.Cast"(%e) {to = 7 : i64} : (tensor<?x?x8xf32, ["batch", "seq"]>) -> tensor<?x?x8xi64, ["batch", "seq"]>
    %t = "onnx.Transpose"(%e) {perm = array<i64: 1, 0, 2>} : (tensor<?x?x8xf32, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["seq", "batch"]>
    %s = "onnx.Relu"(%e) : (tensor<?x?x8xf32, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["batch", "seq"]>
    %m = "onnx.Neg"(%e) : (tensor<?x?x8xf32, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["batch", "seq"]>
    "llmpart.return"(%c, %t, %s, %m) : (tensor<?x?x8xi64, ["batch", "seq"]>, tensor<?x?x8xf32, ["seq", "batch"]>, tensor<?x?x8xf32, ["batch", "seq"]>, tensor<?x?x8xf32, ["batch", "seq"]>) -> ()
  }) {inputs = ["input_ids"], outputs = ["classes", "moved", "scores", "more"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t", "batch", "seq"]} : () -> ()
