// RUN: llmpart opt %s -p 'raise,exits{layers=1}' --verify-each | FileCheck %s
// The model has an exit head of its own after the first layer. Its norm shares operators with the next layer's. The
// pass keeps the head and its name, separates it from the next layer, and moves it to the end.

// CHECK: %[[STREAM:.*]] = "layer.mlp"
// CHECK: index = 0 : i64
// CHECK-DAG: %[[NEXT:.*]] = "layer.norm"(%[[STREAM]],
// CHECK-DAG: %[[EXIT:.*]] = "layer.exit_head"({{.*}}%[[STREAM]]
// CHECK: output_roles = ["logits", "exit_logits"], outputs = ["logits", "early"]
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %g2 = "llmpart.weight"() {file = "w", length = 32 : i64, offset = 3872 : i64} : () -> tensor<8xf32>
    %g = "llmpart.weight"() {file = "w", length = 32 : i64, offset = 0 : i64} : () -> tensor<8xf32>
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 32 : i64} : () -> tensor<32x8xf32>
    %square = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 1056 : i64} : () -> tensor<8x8xf32>
    %wide = "llmpart.weight"() {file = "w", length = 768 : i64, offset = 1312 : i64} : () -> tensor<8x24xf32>
    %narrow = "llmpart.weight"() {file = "w", length = 768 : i64, offset = 2080 : i64} : () -> tensor<24x8xf32>
    %out = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 2848 : i64} : () -> tensor<8x32xf32>
    %x0 = "onnx.Gather"(%table, %ids) : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %n0 = "onnx.RMSNormalization"(%x0, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %q0 = "onnx.MatMul"(%n0, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %k0 = "onnx.MatMul"(%n0, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %v0 = "onnx.MatMul"(%n0, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %a0 = "onnx.Attention"(%q0, %k0, %v0) {bottom_right = 1 : i64, is_causal = 1 : i64, kv_num_heads = 2 : i64, q_num_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %o0 = "onnx.MatMul"(%a0, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %h0 = "onnx.Add"(%x0, %o0) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %m0 = "onnx.RMSNormalization"(%h0, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %u0 = "onnx.MatMul"(%m0, %wide) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x24xf32>) -> tensor<?x?x24xf32, ["b", "s"]>
    %r0 = "onnx.Relu"(%u0) : (tensor<?x?x24xf32, ["b", "s"]>) -> tensor<?x?x24xf32, ["b", "s"]>
    %d0 = "onnx.MatMul"(%r0, %narrow) : (tensor<?x?x24xf32, ["b", "s"]>, tensor<24x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %x1 = "onnx.Add"(%h0, %d0) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %one = "llmpart.constant"() {value = dense<1.0e+00> : tensor<8xf32>} : () -> tensor<8xf32>
    %shared = "onnx.RMSNormalization"(%x1, %one) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %n1 = "onnx.Mul"(%shared, %g) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %e = "onnx.Mul"(%shared, %g2) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %early = "onnx.MatMul"(%e, %out) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x32xf32>) -> tensor<?x?x32xf32, ["b", "s"]>
    %q1 = "onnx.MatMul"(%n1, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %k1 = "onnx.MatMul"(%n1, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %v1 = "onnx.MatMul"(%n1, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %a1 = "onnx.Attention"(%q1, %k1, %v1) {bottom_right = 1 : i64, is_causal = 1 : i64, kv_num_heads = 2 : i64, q_num_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %o1 = "onnx.MatMul"(%a1, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %h1 = "onnx.Add"(%x1, %o1) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %m1 = "onnx.RMSNormalization"(%h1, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %u1 = "onnx.MatMul"(%m1, %wide) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x24xf32>) -> tensor<?x?x24xf32, ["b", "s"]>
    %r1 = "onnx.Relu"(%u1) : (tensor<?x?x24xf32, ["b", "s"]>) -> tensor<?x?x24xf32, ["b", "s"]>
    %d1 = "onnx.MatMul"(%r1, %narrow) : (tensor<?x?x24xf32, ["b", "s"]>, tensor<24x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %x2 = "onnx.Add"(%h1, %d1) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "onnx.RMSNormalization"(%x2, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %logits = "onnx.MatMul"(%f, %out) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x32xf32>) -> tensor<?x?x32xf32, ["b", "s"]>
    "llmpart.return"(%early, %logits) : (tensor<?x?x32xf32, ["b", "s"]>, tensor<?x?x32xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["exit_logits", "logits"], outputs = ["early", "logits"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
