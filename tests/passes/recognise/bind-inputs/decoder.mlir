// RUN: llmpart opt %s -p bind-inputs --verify-each | FileCheck %s
// The sizes take their names b, s and p; mask and positions are computed and no longer inputs; the past is paired with
// its present output, also where names and order differ; a further output like the logits is an exit's.

"builtin.module"() ({
  // CHECK: ^bb0(%[[IDS:.*]]: tensor<?x?xi64, ["b", "s"]>, %[[V:.*]]: tensor<?x2x?x4xf32, ["b", "p"]>, %[[K:.*]]: tensor<?x2x?x4xf32, ["b", "p"]>):
  // CHECK: %[[RANGE:.*]] = "onnx.Range"({{.*}}) {{.*}} -> tensor<?xi64, ["s"]>
  // CHECK: %[[AT:.*]] = "onnx.Expand"(%[[RANGE]], {{.*}} -> tensor<?x?xi64, ["b", "s"]>
  // CHECK: %[[ONES:.*]] = "onnx.ConstantOfShape"({{.*}}) {value = dense<[1]> {{.*}} -> tensor<?x?xi64, ["b", "s + p"]>
  // CHECK: "onnx.Gather"({{.*}}, %[[AT]])
  // CHECK: "llmpart.return"({{.*}}, %[[ONES]])
  // CHECK: input_roles = ["tokens", "past_value", "past_key"]
  // CHECK-SAME: inputs = ["input_ids", "past_key_values.0.value", "past_key_values.0.key"]
  // CHECK-SAME: output_roles = ["exit_logits", "logits", "present_key", "present_value", "data"]
  // CHECK-SAME: past_pair = array<i64: -1, 3, 2>
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["batch", "seq"]>, %mask: tensor<?x?xi64, ["batch2", "total"]>, %v: tensor<?x2x?x4xf32, ["batch", "past"]>, %pos: tensor<?x?xi64, ["batch", "seq"]>, %k: tensor<?x2x?x4xf32, ["batch", "past"]>):
    %table = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %e = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<8x8xf32>, tensor<?x?xi64, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["batch", "seq"]>
    %places = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 256 : i64} : () -> tensor<8x8xf32>
    %p = "onnx.Gather"(%places, %pos) {axis = 0 : i64} : (tensor<8x8xf32>, tensor<?x?xi64, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["batch", "seq"]>
    %h = "onnx.Add"(%e, %p) : (tensor<?x?x8xf32, ["batch", "seq"]>, tensor<?x?x8xf32, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["batch", "seq"]>
    %split = "llmpart.constant"() {value = dense<[0, 0, 2, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
    %r = "onnx.Reshape"(%h, %split) : (tensor<?x?x8xf32, ["batch", "seq"]>, tensor<4xi64>) -> tensor<?x?x2x4xf32, ["batch", "seq"]>
    %t = "onnx.Transpose"(%r) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["batch", "seq"]>) -> tensor<?x2x?x4xf32, ["batch", "seq"]>
    %k2 = "onnx.Concat"(%k, %t) {axis = 2 : i64} : (tensor<?x2x?x4xf32, ["batch", "past"]>, tensor<?x2x?x4xf32, ["batch", "seq"]>) -> tensor<?x2x?x4xf32, ["batch", "past + seq"]>
    %v2 = "onnx.Concat"(%v, %t) {axis = 2 : i64} : (tensor<?x2x?x4xf32, ["batch", "past"]>, tensor<?x2x?x4xf32, ["batch", "seq"]>) -> tensor<?x2x?x4xf32, ["batch", "past + seq"]>
    %exit = "onnx.Relu"(%h) : (tensor<?x?x8xf32, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["batch", "seq"]>
    "llmpart.return"(%exit, %h, %k2, %v2, %mask) : (tensor<?x?x8xf32, ["batch", "seq"]>, tensor<?x?x8xf32, ["batch", "seq"]>, tensor<?x2x?x4xf32, ["batch", "past + seq"]>, tensor<?x2x?x4xf32, ["batch", "past + seq"]>, tensor<?x?xi64, ["batch2", "total"]>) -> ()
  }) {inputs = ["input_ids", "attention_mask", "past_key_values.0.value", "position_ids", "past_key_values.0.key"], outputs = ["exit", "logits", "present.0.key", "present.0.value", "mask_again"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t", "batch", "seq", "batch2", "total", "past"]} : () -> ()
