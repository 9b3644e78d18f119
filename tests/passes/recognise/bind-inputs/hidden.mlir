// RUN: llmpart opt %s -p fold,bind-inputs --verify-each | FileCheck %s
// An output with the width of the token embedding, and not its number of rows, is hidden states, whatever its name; a pooled one has its own
// role, and half precision is widened.

// CHECK: %[[H:.*]] = "onnx.Gather"({{.*}}) {axis = 0 : i64} : {{.*}} -> tensor<?x?x8xf16, ["b", "s"]>
// CHECK: %[[P:.*]] = "onnx.ReduceMax"
// CHECK: %[[WH:.*]] = "onnx.Cast"(%[[H]]) {{.*}} -> tensor<?x?x8xf32, ["b", "s"]>
// CHECK: %[[WP:.*]] = "onnx.Cast"(%[[P]]) {{.*}} -> tensor<?x8xf32, ["b"]>
// CHECK: "llmpart.return"(%[[WH]], %[[WP]])
// CHECK: output_roles = ["hidden", "embedding"]
// CHECK-SAME: vocab = 16 : i64
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["batch", "seq"]>):
    %table = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<16x8xf16>
    %axis = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %h = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<16x8xf16>, tensor<?x?xi64, ["batch", "seq"]>) -> tensor<?x?x8xf16, ["batch", "seq"]>
    %p = "onnx.ReduceMax"(%h, %axis) {keepdims = 0 : i64} : (tensor<?x?x8xf16, ["batch", "seq"]>, tensor<1xi64>) -> tensor<?x8xf16, ["batch"]>
    "llmpart.return"(%h, %p) : (tensor<?x?x8xf16, ["batch", "seq"]>, tensor<?x8xf16, ["batch"]>) -> ()
  }) {inputs = ["input_ids"], outputs = ["output", "sentence_embedding"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t", "batch", "seq"]} : () -> ()
