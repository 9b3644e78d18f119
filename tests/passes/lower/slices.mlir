// RUN: llmpart opt %s -p 'fold,lower' --verify-each | FileCheck %s
// The rows of the new positions, x[:, :, -s:, :] of a bias over all positions: they begin after the past, at p. T5's
// decoders compute their bias so.

// CHECK: "op.slice"({{.*}}starts = #llmpart.polys<"0, 0, p, 0">
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>, %x: tensor<1x4x?x?xf32, ["s + p", "s + p"]>):
    %shape = "onnx.Shape"(%ids) {end = 2 : i64, start = 1 : i64} : (tensor<?x?xi64, ["b", "s"]>) -> tensor<1xi64>
    %from = "onnx.Neg"(%shape) : (tensor<1xi64>) -> tensor<1xi64>
    %to = "llmpart.constant"() {value = dense<[9223372036854775807]> : tensor<1xi64>} : () -> tensor<1xi64>
    %axis = "llmpart.constant"() {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
    %y = "onnx.Slice"(%x, %from, %to, %axis) : (tensor<1x4x?x?xf32, ["s + p", "s + p"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x4x?x?xf32, ["s", "s + p"]>
    "llmpart.return"(%y) : (tensor<1x4x?x?xf32, ["s", "s + p"]>) -> ()
  }) {inputs = ["ids", "x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
