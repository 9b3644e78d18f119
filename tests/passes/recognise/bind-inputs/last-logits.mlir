// RUN: llmpart opt %s -p fold,bind-inputs --verify-each | FileCheck %s
// Logits of the last position become those of all: the Gather of the position is removed, and the head has three axes.

// CHECK: %[[H:.*]] = "onnx.Gather"({{.*}}) {axis = 0 : i64} : {{.*}} -> tensor<?x?x8xf32, ["b", "s"]>
// CHECK-NOT: "onnx.Gather"
// CHECK: %[[T:.*]] = "onnx.Transpose"
// CHECK: %[[P:.*]] = "onnx.MatMul"(%[[H]], %[[T]])
// CHECK: %[[Y:.*]] = "onnx.Add"(%[[P]], %{{.*}}) {{.*}} -> tensor<?x?x16xf32, ["b", "s"]>
// CHECK-NOT: "onnx.Unsqueeze"
// CHECK: "llmpart.return"(%[[H]], %[[Y]])
// CHECK: output_roles = ["data", "logits"]
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["batch", "seq"]>):
    %table = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %head = "llmpart.weight"() {file = "w", length = 512 : i64, offset = 256 : i64} : () -> tensor<16x8xf32>
    %bias = "llmpart.weight"() {file = "w", length = 64 : i64, offset = 768 : i64} : () -> tensor<16xf32>
    %last = "llmpart.constant"() {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
    %one = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %h = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<8x8xf32>, tensor<?x?xi64, ["batch", "seq"]>) -> tensor<?x?x8xf32, ["batch", "seq"]>
    %x = "onnx.Gather"(%h, %last) {axis = 1 : i64} : (tensor<?x?x8xf32, ["batch", "seq"]>, tensor<i64>) -> tensor<?x8xf32, ["batch"]>
    %g = "onnx.Gemm"(%x, %head, %bias) {transB = 1 : i64} : (tensor<?x8xf32, ["batch"]>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<?x16xf32, ["batch"]>
    %y = "onnx.Unsqueeze"(%g, %one) : (tensor<?x16xf32, ["batch"]>, tensor<1xi64>) -> tensor<?x1x16xf32, ["batch"]>
    "llmpart.return"(%h, %y) : (tensor<?x?x8xf32, ["batch", "seq"]>, tensor<?x1x16xf32, ["batch"]>) -> ()
  }) {inputs = ["input_ids"], outputs = ["hidden_states", "logits"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t", "batch", "seq"]} : () -> ()
