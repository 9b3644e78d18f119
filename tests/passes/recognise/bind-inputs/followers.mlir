// RUN: llmpart opt %s -p bind-inputs --verify-each | FileCheck %s
// Inputs that follow from the sizes in their other forms: positions without a batch or with a batch of one, a float mask,
// token types, the switch of merged decoders. A model without past inputs counts from 0.

"builtin.module"() ({
  // CHECK: ^bb0(%[[IDS:.*]]: tensor<?x?xi64, ["b", "s"]>, %[[MORE:.*]]: tensor<3xf32>):
  // CHECK-DAG: %[[YES:.*]] = "llmpart.constant"() {value = dense<[true]> : tensor<1xi1>}
  // CHECK-DAG: %[[ONE:.*]] = "onnx.Expand"({{.*}}) {{.*}} -> tensor<1x?xi64, ["s"]>
  // CHECK-DAG: %[[ZEROS:.*]] = "onnx.ConstantOfShape"({{.*}}) {value = dense<[0]> {{.*}} -> tensor<?x?xi64, ["b", "s"]>
  // CHECK-DAG: %[[MASK:.*]] = "onnx.Cast"({{.*}}) {to = 1 : i64} {{.*}} -> tensor<?x?xf32, ["b", "s"]>
  // CHECK: %[[ROW:.*]] = "onnx.Range"({{.*}}) {{.*}} -> tensor<?xi64, ["s"]>
  // CHECK-NEXT: = "llmpart.weight"
  // CHECK: "llmpart.return"({{.*}}, %[[ROW]], %[[ONE]], %[[ZEROS]], %[[MASK]], %[[YES]], %[[MORE]])
  // CHECK: input_roles = ["tokens", "data"]
  // CHECK-SAME: inputs = ["input_ids", "more"]
  "llmpart.func"() ({
  ^bb0(%row: tensor<?xi64, ["m"]>, %ids: tensor<?x?xi64, ["n", "m"]>, %one: tensor<1x?xi64, ["q"]>, %more: tensor<3xf32>, %types: tensor<?x?xi64, ["n", "m"]>, %mask: tensor<?x?xf32, ["n", "l"]>, %switch: tensor<1xi1>):
    %w = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %y = "onnx.Gather"(%w, %ids) {axis = 0 : i64} : (tensor<8x8xf32>, tensor<?x?xi64, ["n", "m"]>) -> tensor<?x?x8xf32, ["n", "m"]>
    "llmpart.return"(%y, %row, %one, %types, %mask, %switch, %more) : (tensor<?x?x8xf32, ["n", "m"]>, tensor<?xi64, ["m"]>, tensor<1x?xi64, ["q"]>, tensor<?x?xi64, ["n", "m"]>, tensor<?x?xf32, ["n", "l"]>, tensor<1xi1>, tensor<3xf32>) -> ()
  }) {inputs = ["cache_position", "input_ids", "position_ids", "more", "token_type_ids", "attention_mask", "use_cache_branch"], outputs = ["logits", "a", "b", "c", "d", "e", "f"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t", "n", "m", "q", "l"]} : () -> ()
