// RUN: llmpart opt %s -p raise --verify-each | FileCheck %s
// A layer that is there already reads a value of the function in its region.

// CHECK: %[[T:.*]] = "layer.lm_head"
// CHECK: "onnx.Tanh"
// CHECK: "layer.generic"
// CHECK: "onnx.Add"(%{{.*}}, %[[T]])
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x8xf32, ["b"]>, %z: tensor<?x8xf32, ["b"]>):
    %w = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %h = "onnx.MatMul"(%x, %w) : (tensor<?x8xf32, ["b"]>, tensor<8x8xf32>) -> tensor<?x8xf32, ["b"]>
    %t = "onnx.Tanh"(%h) : (tensor<?x8xf32, ["b"]>) -> tensor<?x8xf32, ["b"]>
    %g = "layer.generic"(%z) ({
    ^bb0(%a: tensor<?x8xf32, ["b"]>):
      %k = "onnx.Neg"(%a) : (tensor<?x8xf32, ["b"]>) -> tensor<?x8xf32, ["b"]>
      %s = "onnx.Add"(%k, %t) : (tensor<?x8xf32, ["b"]>, tensor<?x8xf32, ["b"]>) -> tensor<?x8xf32, ["b"]>
      "llmpart.yield"(%s) : (tensor<?x8xf32, ["b"]>) -> ()
    }) {index = -1 : i64} : (tensor<?x8xf32, ["b"]>) -> tensor<?x8xf32, ["b"]>
    "llmpart.return"(%g, %t) : (tensor<?x8xf32, ["b"]>, tensor<?x8xf32, ["b"]>) -> ()
  }) {inputs = ["x", "z"], outputs = ["y", "t"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
