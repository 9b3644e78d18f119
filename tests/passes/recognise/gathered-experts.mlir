// RUN: llmpart opt %s -p decompose | FileCheck %s
// RUN: llmpart opt %s -p decompose | mlir-opt-19 --allow-unregistered-dialect
// A product with the matrix that each row's expert number takes computes only chosen experts. Of [experts][n][k] the
// stack keeps its place in the file; of [experts][k][n] its parts are transposed.

// CHECK: length = 96 : i64, offset = 64 : i64
// CHECK-SAME: tensor<6x4xf32>
// CHECK: "llmpart.Experts"{{.*}}{experts = 2 : i64}
// CHECK: files = ["w", "w"], length = 96 : i64, offset = 160 : i64, offsets = array<i64: 160, 208>, turned = true
// CHECK-SAME: tensor<8x3xf32>
// CHECK: "llmpart.Experts"
// A number that is no choice may be negative, and the result of such a Gather has the same form.
// CHECK: "onnx.Gather"
// CHECK: "onnx.MatMul"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>, %r: tensor<?x2xf32, ["s"]>, %other: tensor<?xi64, ["s"]>):
    %a = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 64 : i64} : () -> tensor<2x3x4xf32>
    %b = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 160 : i64} : () -> tensor<2x3x4xf32>
    %one = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %two = "llmpart.constant"() {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
    %flat = "llmpart.constant"() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %top:2 = "onnx.TopK"(%r, %one) : (tensor<?x2xf32, ["s"]>, tensor<1xi64>) -> (tensor<?x1xf32, ["s"]>, tensor<?x1xi64, ["s"]>)
    %index = "onnx.Reshape"(%top#1, %flat) : (tensor<?x1xi64, ["s"]>, tensor<1xi64>) -> tensor<?xi64, ["s"]>
    %w = "onnx.Gather"(%a, %index) {axis = 0 : i64} : (tensor<2x3x4xf32>, tensor<?xi64, ["s"]>) -> tensor<?x3x4xf32, ["s"]>
    %column = "onnx.Unsqueeze"(%x, %two) : (tensor<?x4xf32, ["s"]>, tensor<1xi64>) -> tensor<?x4x1xf32, ["s"]>
    %up = "onnx.MatMul"(%w, %column) : (tensor<?x3x4xf32, ["s"]>, tensor<?x4x1xf32, ["s"]>) -> tensor<?x3x1xf32, ["s"]>
    %vector = "onnx.Squeeze"(%up, %two) : (tensor<?x3x1xf32, ["s"]>, tensor<1xi64>) -> tensor<?x3xf32, ["s"]>
    %row = "onnx.Unsqueeze"(%vector, %one) : (tensor<?x3xf32, ["s"]>, tensor<1xi64>) -> tensor<?x1x3xf32, ["s"]>
    %pairs = "onnx.Unsqueeze"(%index, %one) : (tensor<?xi64, ["s"]>, tensor<1xi64>) -> tensor<?x1xi64, ["s"]>
    %v = "onnx.GatherND"(%b, %pairs) {batch_dims = 0 : i64} : (tensor<2x3x4xf32>, tensor<?x1xi64, ["s"]>) -> tensor<?x3x4xf32, ["s"]>
    %down = "onnx.MatMul"(%row, %v) : (tensor<?x1x3xf32, ["s"]>, tensor<?x3x4xf32, ["s"]>) -> tensor<?x1x4xf32, ["s"]>
    %u = "onnx.Gather"(%b, %other) {axis = 0 : i64} : (tensor<2x3x4xf32>, tensor<?xi64, ["s"]>) -> tensor<?x3x4xf32, ["s"]>
    %full = "onnx.MatMul"(%row, %u) : (tensor<?x1x3xf32, ["s"]>, tensor<?x3x4xf32, ["s"]>) -> tensor<?x1x4xf32, ["s"]>
    %y = "onnx.Add"(%down, %full) : (tensor<?x1x4xf32, ["s"]>, tensor<?x1x4xf32, ["s"]>) -> tensor<?x1x4xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?x1x4xf32, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
