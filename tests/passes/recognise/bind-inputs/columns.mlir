// RUN: llmpart opt %s -p bind-inputs --split-input-file --verify-each | FileCheck %s
// The columns that a causal convolution keeps are paired with the output that continues them, wherever it stands.

// CHECK: input_roles = ["tokens", "conv_past", "past_key"]
// CHECK-SAME: output_roles = ["logits", "present_key", "conv_present"]
// CHECK-SAME: past_pair = array<i64: -1, 2, 1>
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["batch", "seq"]>, %cols: tensor<?x8x2xf32, ["batch"]>, %k: tensor<?x2x?x4xf32, ["batch", "rows"]>):
    %table = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %filter = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 256 : i64} : () -> tensor<8x1x3xf32>
    %h = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<8x8xf32>, tensor<?x?xi64, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["batch", "seq"]>
    %x = "onnx.Transpose"(%h) {perm = array<i64: 0, 2, 1>} : (tensor<?x?x8xf32, ["batch", "seq"]>) -> tensor<?x8x?xf32, ["batch", "seq"]>
    %conv:2 = "onnx.CausalConvWithState"(%x, %filter, %cols) {operand_mask = "1101"} : (tensor<?x8x?xf32, ["batch", "seq"]>, tensor<8x1x3xf32>, tensor<?x8x2xf32, ["batch"]>) -> (tensor<?x8x?xf32, ["batch", "seq"]>, tensor<?x8x2xf32, ["batch"]>)
    %y = "onnx.Transpose"(%conv#0) {perm = array<i64: 0, 2, 1>} : (tensor<?x8x?xf32, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["batch", "seq"]>
    %split = "llmpart.constant"() {value = dense<[0, 0, 2, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
    %r = "onnx.Reshape"(%y, %split) : (tensor<?x?x8xf32, ["batch", "seq"]>, tensor<4xi64>) -> tensor<?x?x2x4xf32, ["batch", "seq"]>
    %t = "onnx.Transpose"(%r) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["batch", "seq"]>) -> tensor<?x2x?x4xf32, ["batch", "seq"]>
    %k2 = "onnx.Concat"(%k, %t) {axis = 2 : i64} : (tensor<?x2x?x4xf32, ["batch", "rows"]>, tensor<?x2x?x4xf32, ["batch", "seq"]>) -> tensor<?x2x?x4xf32, ["batch", "rows + seq"]>
    "llmpart.return"(%y, %k2, %conv#1) : (tensor<?x?x8xf32, ["batch", "seq"]>, tensor<?x2x?x4xf32, ["batch", "rows + seq"]>, tensor<?x8x2xf32, ["batch"]>) -> ()
  }) {inputs = ["input_ids", "conv_past", "past_key_values.0.key"], outputs = ["logits", "present.0.key", "conv_present"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t", "batch", "seq", "rows"]} : () -> ()
// -----
// Caches have heads: an input of three axes is data.

// CHECK: input_roles = ["tokens", "data"]
// CHECK-SAME: output_roles = ["logits", "data"]
// CHECK-SAME: past_pair = array<i64: -1, -1>
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["batch", "seq"]>, %k: tensor<?x?x8xf32, ["batch", "rows"]>):
    %table = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %h = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<8x8xf32>, tensor<?x?xi64, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["batch", "seq"]>
    %k2 = "onnx.Concat"(%k, %h) {axis = 1 : i64} : (tensor<?x?x8xf32, ["batch", "rows"]>, tensor<?x?x8xf32, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["batch", "rows + seq"]>
    "llmpart.return"(%h, %k2) : (tensor<?x?x8xf32, ["batch", "seq"]>, tensor<?x?x8xf32, ["batch", "rows + seq"]>) -> ()
  }) {inputs = ["input_ids", "past_key_values.0.key"], outputs = ["logits", "present.0.key"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t", "batch", "seq", "rows"]} : () -> ()
// -----
// So is the state of a linear attention.

// CHECK: input_roles = ["tokens", "state_past", "past_key"]
// CHECK-SAME: output_roles = ["logits", "present_key", "state_present"]
// CHECK-SAME: past_pair = array<i64: -1, 2, 1>
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["batch", "seq"]>, %state: tensor<?x2x4x4xf32, ["batch"]>, %k: tensor<?x2x?x4xf32, ["batch", "rows"]>):
    %table = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %h = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<8x8xf32>, tensor<?x?xi64, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["batch", "seq"]>
    %lin:2 = "onnx.LinearAttention"(%h, %h, %h, %state) {kv_num_heads = 2 : i64, q_num_heads = 2 : i64, update_rule = "linear"} : (tensor<?x?x8xf32, ["batch", "seq"]>, tensor<?x?x8xf32, ["batch", "seq"]>, tensor<?x?x8xf32, ["batch", "seq"]>, tensor<?x2x4x4xf32, ["batch"]>) -> (tensor<?x?x8xf32, ["batch", "seq"]>, tensor<?x2x4x4xf32, ["batch"]>)
    %split = "llmpart.constant"() {value = dense<[0, 0, 2, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
    %r = "onnx.Reshape"(%lin#0, %split) : (tensor<?x?x8xf32, ["batch", "seq"]>, tensor<4xi64>) -> tensor<?x?x2x4xf32, ["batch", "seq"]>
    %t = "onnx.Transpose"(%r) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["batch", "seq"]>) -> tensor<?x2x?x4xf32, ["batch", "seq"]>
    %k2 = "onnx.Concat"(%k, %t) {axis = 2 : i64} : (tensor<?x2x?x4xf32, ["batch", "rows"]>, tensor<?x2x?x4xf32, ["batch", "seq"]>) -> tensor<?x2x?x4xf32, ["batch", "rows + seq"]>
    "llmpart.return"(%lin#0, %k2, %lin#1) : (tensor<?x?x8xf32, ["batch", "seq"]>, tensor<?x2x?x4xf32, ["batch", "rows + seq"]>, tensor<?x2x4x4xf32, ["batch"]>) -> ()
  }) {inputs = ["input_ids", "past_state.0", "past_key_values.0.key"], outputs = ["logits", "present.0.key", "present_state.0"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t", "batch", "seq", "rows"]} : () -> ()
