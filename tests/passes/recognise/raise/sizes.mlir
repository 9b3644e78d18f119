// RUN: llmpart opt %s -p fold,raise --verify-each | FileCheck %s
// Norms of queries and keys belong to the attention. Sizes that depend on the input are computed beside each user, and
// constants stay constants.

// CHECK-NOT: "layer.generic"
// CHECK: "layer.norm"
// CHECK: "layer.attention"
// CHECK: %[[FLAT:.*]] = "llmpart.constant"() {value = dense<[0, 0, 8]>
// CHECK: "op.dims"() {values = #llmpart.polys<"b, s, 2, 4">} : () -> tensor<4xi64>
// CHECK-NEXT: "onnx.Reshape"
// CHECK-NEXT: "onnx.RMSNormalization"
// CHECK-NEXT: "onnx.Reshape"(%{{.*}}, %[[FLAT]])
// CHECK: "op.dims"() {values = #llmpart.polys<"b, s, 2, 4">} : () -> tensor<4xi64>
// CHECK-NEXT: "onnx.Reshape"
// CHECK-NEXT: "onnx.RMSNormalization"
// CHECK-NEXT: "onnx.Reshape"
// CHECK: "onnx.Attention"
// CHECK: "layer.mlp"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %g = "llmpart.weight"() {file = "w", length = 32 : i64, offset = 0 : i64} : () -> tensor<8xf32>
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %square = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %square2 = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 256 : i64} : () -> tensor<8x8xf32>
    %wide = "llmpart.weight"() {file = "w", length = 768 : i64, offset = 0 : i64} : () -> tensor<8x24xf32>
    %narrow = "llmpart.weight"() {file = "w", length = 768 : i64, offset = 0 : i64} : () -> tensor<24x8xf32>
    %out = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<8x32xf32>
    %x = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %n = "onnx.RMSNormalization"(%x, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %q = "onnx.MatMul"(%n, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %k = "onnx.MatMul"(%n, %square2) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %v = "onnx.MatMul"(%n, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %g4 = "llmpart.weight"() {file = "w", length = 16 : i64, offset = 0 : i64} : () -> tensor<4xf32>
    %ids_shape = "onnx.Shape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<3xi64>
    %parts = "llmpart.constant"() {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
    %four = "llmpart.constant"() {value = dense<[4]> : tensor<1xi64>} : () -> tensor<1xi64>
    %zero = "llmpart.constant"() {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
    %flat = "llmpart.constant"() {value = dense<[0, 0, 8]> : tensor<3xi64>} : () -> tensor<3xi64>
    %rows = "onnx.Slice"(%ids_shape, %zero, %parts, %zero) : (tensor<3xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %heads = "onnx.Concat"(%rows, %parts, %four) {axis = 0 : i64} : (tensor<2xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xi64>
    %qh = "onnx.Reshape"(%q, %heads) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<4xi64>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %qn = "onnx.RMSNormalization"(%qh, %g4) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x2x4xf32, ["b", "s"]>, tensor<4xf32>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %qf = "onnx.Reshape"(%qn, %flat) : (tensor<?x?x2x4xf32, ["b", "s"]>, tensor<3xi64>) -> tensor<?x?x8xf32, ["b", "s"]>
    %kh = "onnx.Reshape"(%k, %heads) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<4xi64>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %kn = "onnx.RMSNormalization"(%kh, %g4) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x2x4xf32, ["b", "s"]>, tensor<4xf32>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %kf = "onnx.Reshape"(%kn, %flat) : (tensor<?x?x2x4xf32, ["b", "s"]>, tensor<3xi64>) -> tensor<?x?x8xf32, ["b", "s"]>
    %a = "onnx.Attention"(%qf, %kf, %v) {bottom_right = 1 : i64, is_causal = 1 : i64, kv_num_heads = 2 : i64, q_num_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %o = "onnx.MatMul"(%a, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %o1 = "onnx.RMSNormalization"(%o, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %h = "onnx.Add"(%o1, %x) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %n2 = "onnx.RMSNormalization"(%h, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %u = "onnx.MatMul"(%n2, %wide) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x24xf32>) -> tensor<?x?x24xf32, ["b", "s"]>
    %r = "onnx.Relu"(%u) : (tensor<?x?x24xf32, ["b", "s"]>) -> tensor<?x?x24xf32, ["b", "s"]>
    %d = "onnx.MatMul"(%r, %narrow) : (tensor<?x?x24xf32, ["b", "s"]>, tensor<24x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %d1 = "onnx.RMSNormalization"(%d, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %h2 = "onnx.Add"(%h, %d1) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "onnx.RMSNormalization"(%h2, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %logits = "onnx.MatMul"(%f, %out) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x32xf32>) -> tensor<?x?x32xf32, ["b", "s"]>
    "llmpart.return"(%logits) : (tensor<?x?x32xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["logits"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
