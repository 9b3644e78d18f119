// RUN: llmpart opt %s -p fold --verify-each | FileCheck %s
// Operators that change nothing go; those that only look like it stay.

"builtin.module"() ({
  // CHECK: ^bb0(%[[X:.*]]: tensor<?x4xf32, ["s"]>):
  // CHECK-NEXT: "llmpart.return"(%[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]])
  // CHECK: sym_name = "nothing"
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    %axes = "llmpart.constant"() {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
    %shape = "llmpart.constant"() {value = dense<[0, 2, 2]> : tensor<3xi64>} : () -> tensor<3xi64>
    %back = "llmpart.constant"() {value = dense<[-1, 4]> : tensor<2xi64>} : () -> tensor<2xi64>
    %ones = "llmpart.constant"() {value = dense<[1, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
    %unit = "llmpart.constant"() {value = dense<1.0e+00> : tensor<f32>} : () -> tensor<f32>
    %a = "onnx.Identity"(%x) : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %b = "onnx.Cast"(%x) {to = 1 : i64} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %c1 = "onnx.Reshape"(%x, %shape) : (tensor<?x4xf32, ["s"]>, tensor<3xi64>) -> tensor<?x2x2xf32, ["s"]>
    %c = "onnx.Reshape"(%c1, %back) : (tensor<?x2x2xf32, ["s"]>, tensor<2xi64>) -> tensor<?x4xf32, ["s"]>
    %d1 = "onnx.Transpose"(%x) : (tensor<?x4xf32, ["s"]>) -> tensor<4x?xf32, ["s"]>
    %d = "onnx.Transpose"(%d1) {perm = array<i64: 1, 0>} : (tensor<4x?xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %e = "onnx.Expand"(%x, %ones) : (tensor<?x4xf32, ["s"]>, tensor<2xi64>) -> tensor<?x4xf32, ["s"]>
    %f = "onnx.Mul"(%unit, %x) : (tensor<f32>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %four = "llmpart.constant"() {value = dense<[4]> : tensor<1xi64>} : () -> tensor<1xi64>
    %last = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %g1 = "onnx.Slice"(%x, %four, %four, %last) : (tensor<?x4xf32, ["s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x0xf32, ["s"]>
    %g = "onnx.Concat"(%g1, %x) {axis = 1 : i64} : (tensor<?x0xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%a, %b, %c, %d, %e, %f, %g) : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "nothing"} : () -> ()

  // A slice that reverses keeps the shape; a sum with zeros may broadcast; a quotient is no product.
  // CHECK: "onnx.Slice"
  // CHECK: "onnx.Add"
  // CHECK: "onnx.Div"
  // CHECK: sym_name = "something"
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    %from = "llmpart.constant"() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %to = "llmpart.constant"() {value = dense<[-9223372036854775807]> : tensor<1xi64>} : () -> tensor<1xi64>
    %axes = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %a = "onnx.Slice"(%x, %from, %to, %axes, %from) : (tensor<?x4xf32, ["s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x4xf32, ["s"]>
    %zero = "llmpart.constant"() {value = dense<[[[0.0e+00]], [[0.0e+00]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
    %b = "onnx.Add"(%x, %zero) : (tensor<?x4xf32, ["s"]>, tensor<2x1x1xf32>) -> tensor<2x?x4xf32, ["s"]>
    %one = "llmpart.constant"() {value = dense<1.0e+00> : tensor<f32>} : () -> tensor<f32>
    %c = "onnx.Div"(%one, %x) : (tensor<f32>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%a, %b, %c) : (tensor<?x4xf32, ["s"]>, tensor<2x?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "something"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
