// RUN: llmpart opt %s -p decompose | FileCheck %s
// RUN: llmpart opt %s -p decompose | mlir-opt-19 --allow-unregistered-dialect
// Each expert's weights are a part of the file, and its result counts only where the router chose it.

// CHECK: "onnx.Softmax"
// CHECK: "onnx.TopK"
// CHECK: "onnx.ReduceSum"
// CHECK: "onnx.Div"
// CHECK: "onnx.ScatterElements"
// CHECK: length = 48 : i64, offset = 64 : i64
// CHECK: length = 12 : i64, offset = 160 : i64
// CHECK: "onnx.Swish"
// CHECK: length = 48 : i64, offset = 184 : i64
// CHECK: "onnx.Where"
// CHECK: length = 48 : i64, offset = 112 : i64
// CHECK: length = 12 : i64, offset = 172 : i64
// CHECK: length = 48 : i64, offset = 232 : i64
// CHECK: "onnx.Where"
// CHECK: "onnx.Add"
// CHECK-NOT: com.microsoft
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>, %r: tensor<?x2xf32, ["s"]>):
    %a = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 64 : i64} : () -> tensor<2x3x4xf32>
    %c = "llmpart.weight"() {file = "w", length = 24 : i64, offset = 160 : i64} : () -> tensor<2x3xf32>
    %d = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 184 : i64} : () -> tensor<2x4x3xf32>
    %y = "com.microsoft.MoE"(%x, %r, %a, %c, %d) {activation_type = "silu", k = 1 : i64, normalize_routing_weights = 1 : i64} : (tensor<?x4xf32, ["s"]>, tensor<?x2xf32, ["s"]>, tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x4x3xf32>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
