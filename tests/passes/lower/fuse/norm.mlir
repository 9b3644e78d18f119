// RUN: llmpart opt %s -p fuse --verify-each | FileCheck %s
// A residual add and its norm run as one; the sum is still there for the next residual. A scale goes into its norm.

"builtin.module"() ({
  // CHECK: ^bb0(%[[X:.*]]: {{.*}}, %[[R:.*]]: tensor
  // CHECK: %[[N:.*]]:2 = "op.add_norm"(%[[X]], %[[R]], %{{.*}}) {epsilon = 1.0e-05 : f64, type = "rms"}
  // CHECK-NEXT: "llmpart.return"(%[[N]]#0, %[[N]]#1)
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>, %r: tensor<?x4xf32, ["s"]>):
    %sum = "op.map"(%x, %r) {fn = "add"} : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %w = "llmpart.weight"() {file = "w", length = 16 : i64, offset = 0 : i64} : () -> tensor<4xf32>
    %n = "op.norm"(%sum, %w) {epsilon = 1.0e-05 : f64, type = "rms"} : (tensor<?x4xf32, ["s"]>, tensor<4xf32>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%sum, %n) : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "residual"} : () -> ()

  // CHECK: %[[W:.*]] = "llmpart.weight"
  // CHECK-NEXT: %[[N:.*]] = "op.norm"(%{{.*}}, %[[W]]) {epsilon = 1.0e-05 : f64, name = "scaled", type = "rms"}
  // CHECK-NEXT: "llmpart.return"(%[[N]])
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    %one = "llmpart.constant"() {value = dense<[1.0e+00, 1.0e+00, 1.0e+00, 1.0e+00]> : tensor<4xf32>} : () -> tensor<4xf32>
    %w = "llmpart.weight"() {file = "w", length = 16 : i64, offset = 0 : i64} : () -> tensor<4xf32>
    %n = "op.norm"(%x, %one) {epsilon = 1.0e-05 : f64, type = "rms"} : (tensor<?x4xf32, ["s"]>, tensor<4xf32>) -> tensor<?x4xf32, ["s"]>
    %y = "op.map"(%w, %n) {fn = "mul", name = "scaled"} : (tensor<4xf32>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "scale"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
