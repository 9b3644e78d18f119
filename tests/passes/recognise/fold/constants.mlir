// RUN: llmpart opt %s -p fold --verify-each | FileCheck %s
// RUN: llmpart opt %s -p fold | mlir-opt --allow-unregistered-dialect -o /dev/null
// Operators without inputs are computed; known elements of shapes become constants; large results and weights stay
// operators.

"builtin.module"() ({
  // CHECK: ^bb0(%[[X:.*]]: tensor<?x4xf32, ["s"]>):
  // CHECK-NEXT: %[[C:.*]] = "llmpart.constant"() {value = dense<[3.0e+00, 8.0e+00]> : tensor<2xf32>}
  // CHECK-NEXT: "llmpart.return"(%[[C]])
  // CHECK: sym_name = "arithmetic"
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    %a = "llmpart.constant"() {value = dense<[1.0e+00, 4.0e+00]> : tensor<2xf32>} : () -> tensor<2xf32>
    %b = "llmpart.constant"() {value = dense<2.0e+00> : tensor<f32>} : () -> tensor<f32>
    %m = "onnx.Mul"(%a, %b) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    %i = "llmpart.constant"() {value = dense<[1, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
    %f = "onnx.Cast"(%i) {to = 1 : i64} : (tensor<2xi64>) -> tensor<2xf32>
    %y = "onnx.Add"(%m, %f) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "llmpart.return"(%y) : (tensor<2xf32>) -> ()
  }) {sym_name = "arithmetic"} : () -> ()

  // The last axis is 4 whatever the input is; the first is not known.
  // CHECK: ^bb0(%[[X:.*]]: tensor<?x4xf32, ["s"]>):
  // CHECK-DAG: %[[F:.*]] = "llmpart.constant"() {value = dense<4> : tensor<i64>}
  // CHECK-DAG: %[[S:.*]] = "onnx.Shape"(%[[X]])
  // CHECK-DAG: %[[G:.*]] = "onnx.Gather"(%[[S]]
  // CHECK: "llmpart.return"(%[[F]], %[[G]])
  // CHECK: sym_name = "shapes"
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    %shape = "onnx.Shape"(%x) : (tensor<?x4xf32, ["s"]>) -> tensor<2xi64>
    %one = "llmpart.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %zero = "llmpart.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %last = "onnx.Gather"(%shape, %one) {axis = 0 : i64} : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
    %first = "onnx.Gather"(%shape, %zero) {axis = 0 : i64} : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
    "llmpart.return"(%last, %first) : (tensor<i64>, tensor<i64>) -> ()
  }) {sym_name = "shapes"} : () -> ()

  // 8 MB of zeros and a transposed weight are not made constants.
  // CHECK: "onnx.ConstantOfShape"
  // CHECK: %[[W:.*]] = "llmpart.weight"
  // CHECK: "onnx.Transpose"(%[[W]])
  // CHECK: sym_name = "large"
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    %n = "llmpart.constant"() {value = dense<[1024, 2048]> : tensor<2xi64>} : () -> tensor<2xi64>
    %z = "onnx.ConstantOfShape"(%n) : (tensor<2xi64>) -> tensor<1024x2048xf32>
    %w = "llmpart.weight"() {file = "w", length = 64 : i64, offset = 0 : i64} : () -> tensor<4x4xf32>
    %t = "onnx.Transpose"(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    "llmpart.return"(%z, %t) : (tensor<1024x2048xf32>, tensor<4x4xf32>) -> ()
  }) {sym_name = "large"} : () -> ()

  // Four positions after a past of any size: their number is known, they are not.
  // CHECK: "onnx.LessOrEqual"
  // CHECK: sym_name = "positions"
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["p"]>):
    %one = "llmpart.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %three = "llmpart.constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
    %past = "op.dims"() {values = #llmpart.polys<"p">} : () -> tensor<i64>
    %total = "op.dims"() {values = #llmpart.polys<"p + 4">} : () -> tensor<i64>
    %own = "onnx.Range"(%past, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<4xi64>
    %early = "onnx.LessOrEqual"(%own, %three) : (tensor<4xi64>, tensor<i64>) -> tensor<4xi1>
    "llmpart.return"(%early) : (tensor<4xi1>) -> ()
  }) {sym_name = "positions"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
