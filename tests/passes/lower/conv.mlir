// RUN: llmpart opt %s -p lower --split-input-file --verify-each | FileCheck %s
// A convolution is a product over windows; a bias has one element for each map, whatever the number of axes.

// CHECK: ^bb0(%{{.*}}, %[[BIAS:.*]]: tensor<6xf32>):
// CHECK: "op.matmul"
// CHECK: %[[B:.*]] = "op.reshape"(%[[BIAS]]) {{.*}} : (tensor<6xf32>) -> tensor<6x1x1xf32>
// CHECK: "op.map"(%{{.*}}, %[[B]]) {fn = "add"{{.*}}} : {{.*}} -> tensor<?x6x4x4xf32, ["b"]>
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x2x6x6xf32, ["b"]>, %bias: tensor<6xf32>):
    %w = "llmpart.weight"() {file = "w", length = 432 : i64, offset = 0 : i64} : () -> tensor<6x2x3x3xf32>
    %y = "onnx.Conv"(%x, %w, %bias) : (tensor<?x2x6x6xf32, ["b"]>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<?x6x4x4xf32, ["b"]>
    "llmpart.return"(%y) : (tensor<?x6x4x4xf32, ["b"]>) -> ()
  }) {inputs = ["x", "bias"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----

// CHECK: ^bb0(%{{.*}}, %[[BIAS:.*]]: tensor<6xf32>):
// CHECK: %[[B:.*]] = "op.reshape"(%[[BIAS]]) {{.*}} : (tensor<6xf32>) -> tensor<6x1xf32>
// CHECK: "op.map"(%{{.*}}, %[[B]]) {fn = "add"{{.*}}} : {{.*}} -> tensor<?x6x4xf32, ["b"]>
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x2x6xf32, ["b"]>, %bias: tensor<6xf32>):
    %w = "llmpart.weight"() {file = "w", length = 144 : i64, offset = 0 : i64} : () -> tensor<6x2x3xf32>
    %y = "onnx.Conv"(%x, %w, %bias) : (tensor<?x2x6xf32, ["b"]>, tensor<6x2x3xf32>, tensor<6xf32>) -> tensor<?x6x4xf32, ["b"]>
    "llmpart.return"(%y) : (tensor<?x6x4xf32, ["b"]>) -> ()
  }) {inputs = ["x", "bias"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
