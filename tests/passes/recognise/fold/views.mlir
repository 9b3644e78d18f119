// RUN: llmpart opt %s -p fold --verify-each | FileCheck %s
// A weight under another shape is a weight, however large: genai writes a tied embedding as a Reshape of the last weight.

// CHECK: %[[W:.*]] = "llmpart.weight"() {file = "w", length = 14155776 : i64, offset = 64 : i64} : () -> tensor<49152x288xui8>
// CHECK-NEXT: "onnx.Gather"(%[[W]]
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%i: tensor<?xi64, ["s"]>):
    %w = "llmpart.weight"() {file = "w", length = 14155776 : i64, offset = 64 : i64} : () -> tensor<49152x18x16xui8>
    %shape = "llmpart.constant"() {value = dense<[49152, 288]> : tensor<2xi64>} : () -> tensor<2xi64>
    %t = "onnx.Reshape"(%w, %shape) : (tensor<49152x18x16xui8>, tensor<2xi64>) -> tensor<49152x288xui8>
    %y = "onnx.Gather"(%t, %i) {axis = 0 : i64} : (tensor<49152x288xui8>, tensor<?xi64, ["s"]>) -> tensor<?x288xui8, ["s"]>
    "llmpart.return"(%y) : (tensor<?x288xui8, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
