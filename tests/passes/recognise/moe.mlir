// RUN: llmpart opt %s -p decompose | FileCheck %s
// RUN: llmpart opt %s -p decompose | mlir-opt-19 --allow-unregistered-dialect
// The weights of all experts are stacked, and only the experts that the router chose compute a token.

// CHECK: "onnx.Softmax"
// CHECK: "onnx.TopK"
// CHECK: "onnx.ReduceSum"
// CHECK: "onnx.Div"
// CHECK: length = 96 : i64, offset = 64 : i64
// CHECK-SAME: tensor<6x4xf32>
// CHECK: length = 24 : i64, offset = 160 : i64
// CHECK-SAME: tensor<6xf32>
// CHECK: "llmpart.Experts"{{.*}}{experts = 2 : i64}
// CHECK: "onnx.Swish"
// CHECK: length = 96 : i64, offset = 184 : i64
// CHECK-SAME: tensor<8x3xf32>
// CHECK: "llmpart.Experts"
// CHECK: "onnx.Mul"
// CHECK: "onnx.ReduceSum"
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
