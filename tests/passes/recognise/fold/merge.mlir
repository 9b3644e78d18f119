// RUN: llmpart opt %s -p fold --verify-each | FileCheck %s
// Equal constants, weights, operators and sizes are there once; attributes and operands tell others apart.

"builtin.module"() ({
  // CHECK: ^bb0(%[[X:.*]]: tensor<?x4xf32, ["s"]>):
  // CHECK-NEXT: %[[W:.*]] = "llmpart.weight"() {{.*}}offset = 0
  // CHECK-NEXT: %[[M:.*]] = "onnx.MatMul"(%[[X]], %[[W]])
  // CHECK-NEXT: %[[V:.*]] = "llmpart.weight"() {{.*}}offset = 64
  // CHECK-NEXT: %[[N:.*]] = "onnx.MatMul"(%[[X]], %[[V]])
  // CHECK-NEXT: %[[L:.*]] = "onnx.LeakyRelu"(%[[X]]) {alpha = 5.0e-01 : f64}
  // CHECK-NEXT: %[[K:.*]] = "onnx.LeakyRelu"(%[[X]]) {alpha = 2.5e-01 : f64}
  // CHECK-NEXT: "llmpart.return"(%[[M]], %[[M]], %[[N]], %[[L]], %[[K]])
  // CHECK: sym_name = "operators"
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    %w = "llmpart.weight"() {file = "w", length = 64 : i64, offset = 0 : i64} : () -> tensor<4x4xf32>
    %m = "onnx.MatMul"(%x, %w) : (tensor<?x4xf32, ["s"]>, tensor<4x4xf32>) -> tensor<?x4xf32, ["s"]>
    %w2 = "llmpart.weight"() {file = "w", length = 64 : i64, offset = 0 : i64} : () -> tensor<4x4xf32>
    %m2 = "onnx.MatMul"(%x, %w2) : (tensor<?x4xf32, ["s"]>, tensor<4x4xf32>) -> tensor<?x4xf32, ["s"]>
    %v = "llmpart.weight"() {file = "w", length = 64 : i64, offset = 64 : i64} : () -> tensor<4x4xf32>
    %n = "onnx.MatMul"(%x, %v) : (tensor<?x4xf32, ["s"]>, tensor<4x4xf32>) -> tensor<?x4xf32, ["s"]>
    %l = "onnx.LeakyRelu"(%x) {alpha = 5.0e-01 : f64} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %k = "onnx.LeakyRelu"(%x) {alpha = 2.5e-01 : f64} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %dead = "onnx.Relu"(%k) : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%m, %m2, %n, %l, %k) : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "operators"} : () -> ()

  // s read off x and off relu(x), in two ways, is one value.
  // CHECK: ^bb0(%[[X:.*]]: tensor<?x4xf32, ["s"]>):
  // CHECK: %[[S:.*]] = "onnx.Shape"(%[[X]]) {end = 1 : i64, start = 0 : i64}
  // CHECK: "llmpart.return"(%[[S]], %[[S]])
  // CHECK: sym_name = "sizes"
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    %a = "onnx.Shape"(%x) {end = 1 : i64, start = 0 : i64} : (tensor<?x4xf32, ["s"]>) -> tensor<1xi64>
    %r = "onnx.Relu"(%x) : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %shape = "onnx.Shape"(%r) : (tensor<?x4xf32, ["s"]>) -> tensor<2xi64>
    %zero = "llmpart.constant"() {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
    %b = "onnx.Gather"(%shape, %zero) {axis = 0 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<1xi64>
    "llmpart.return"(%a, %b) : (tensor<1xi64>, tensor<1xi64>) -> ()
  }) {sym_name = "sizes"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
