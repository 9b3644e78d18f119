// RUN: llmpart opt %s -p bind-inputs --verify-each | FileCheck %s
// A past in f16 that the graph only widens takes its present's type, and the cast goes. A past that something else reads
// as f16 is no cache.

// CHECK: ^bb0(%[[IDS:.*]]: tensor<?x?xi64, ["b", "s"]>, %[[K:.*]]: tensor<?x2x?x4xf32, ["b", "p"]>, %[[V:.*]]: tensor<?x2x?x4xf16, ["b", "past"]>):
// CHECK: "onnx.Concat"(%[[K]], %{{.*}})
// CHECK: %[[WIDE:.*]] = "onnx.Cast"(%[[V]]) {to = 1 : i64}
// CHECK: "onnx.Concat"(%[[WIDE]], %{{.*}})
// CHECK: input_roles = ["tokens", "past_key", "data"]
// CHECK-SAME: past_pair = array<i64: -1, 1, -1>
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["batch", "seq"]>, %k: tensor<?x2x?x4xf16, ["batch", "rows"]>, %v: tensor<?x2x?x4xf16, ["batch", "past"]>):
    %table = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %h = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<8x8xf32>, tensor<?x?xi64, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["batch", "seq"]>
    %split = "llmpart.constant"() {value = dense<[0, 0, 2, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
    %r = "onnx.Reshape"(%h, %split) : (tensor<?x?x8xf32, ["batch", "seq"]>, tensor<4xi64>) -> tensor<?x?x2x4xf32, ["batch", "seq"]>
    %t = "onnx.Transpose"(%r) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["batch", "seq"]>) -> tensor<?x2x?x4xf32, ["batch", "seq"]>
    %kw = "onnx.Cast"(%k) {to = 1 : i64} : (tensor<?x2x?x4xf16, ["batch", "rows"]>) -> tensor<?x2x?x4xf32, ["batch", "rows"]>
    %k2 = "onnx.Concat"(%kw, %t) {axis = 2 : i64} : (tensor<?x2x?x4xf32, ["batch", "rows"]>, tensor<?x2x?x4xf32, ["batch", "seq"]>) -> tensor<?x2x?x4xf32, ["batch", "rows + seq"]>
    %vw = "onnx.Cast"(%v) {to = 1 : i64} : (tensor<?x2x?x4xf16, ["batch", "past"]>) -> tensor<?x2x?x4xf32, ["batch", "past"]>
    %v2 = "onnx.Concat"(%vw, %t) {axis = 2 : i64} : (tensor<?x2x?x4xf32, ["batch", "past"]>, tensor<?x2x?x4xf32, ["batch", "seq"]>) -> tensor<?x2x?x4xf32, ["batch", "past + seq"]>
    %n = "onnx.Neg"(%v) : (tensor<?x2x?x4xf16, ["batch", "past"]>) -> tensor<?x2x?x4xf16, ["batch", "past"]>
    "llmpart.return"(%h, %k2, %v2, %n) : (tensor<?x?x8xf32, ["batch", "seq"]>, tensor<?x2x?x4xf32, ["batch", "rows + seq"]>, tensor<?x2x?x4xf32, ["batch", "past + seq"]>, tensor<?x2x?x4xf16, ["batch", "past"]>) -> ()
  }) {inputs = ["input_ids", "kept.0", "read.0"], outputs = ["logits", "present.0", "present.1", "negative"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t", "batch", "seq", "rows", "past"]} : () -> ()
