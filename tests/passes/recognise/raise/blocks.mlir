// RUN: llmpart opt %s -p raise --split-input-file --verify-each | FileCheck %s
// Attention in parallel with the mlp: one norm feeds both, and the mlp takes the adds that join them to the stream.

// CHECK-LABEL: "builtin.module"
// CHECK-NOT: "layer.generic"
// CHECK: "layer.embedding"
// CHECK: %[[NORM:.*]] = "layer.norm"
// CHECK: %[[ATTENTION:.*]] = "layer.attention"(%[[NORM]]
// CHECK-NOT: "onnx.Add"
// CHECK: "layer.mlp"({{.*}}%[[NORM]], {{.*}}%[[ATTENTION]]
// CHECK-COUNT-2: "onnx.Add"
// CHECK: activation = "relu", ffn = 24 : i64, gated = false, hidden = 8 : i64, index = 0 : i64
// CHECK: "layer.norm"
// CHECK: "layer.lm_head"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %g = "llmpart.weight"() {file = "w", length = 32 : i64, offset = 0 : i64} : () -> tensor<8xf32>
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %square = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %wide = "llmpart.weight"() {file = "w", length = 768 : i64, offset = 0 : i64} : () -> tensor<8x24xf32>
    %narrow = "llmpart.weight"() {file = "w", length = 768 : i64, offset = 0 : i64} : () -> tensor<24x8xf32>
    %out = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<8x32xf32>
    %x = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %n = "onnx.RMSNormalization"(%x, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %q = "onnx.MatMul"(%n, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %k = "onnx.MatMul"(%n, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %v = "onnx.MatMul"(%n, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %a = "onnx.Attention"(%q, %k, %v) {bottom_right = 1 : i64, is_causal = 1 : i64, kv_num_heads = 2 : i64, q_num_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %o = "onnx.MatMul"(%a, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %u = "onnx.MatMul"(%n, %wide) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x24xf32>) -> tensor<?x?x24xf32, ["b", "s"]>
    %r = "onnx.Relu"(%u) : (tensor<?x?x24xf32, ["b", "s"]>) -> tensor<?x?x24xf32, ["b", "s"]>
    %d = "onnx.MatMul"(%r, %narrow) : (tensor<?x?x24xf32, ["b", "s"]>, tensor<24x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %j = "onnx.Add"(%d, %o) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %h = "onnx.Add"(%j, %x) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "onnx.RMSNormalization"(%h, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %logits = "onnx.MatMul"(%f, %out) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x32xf32>) -> tensor<?x?x32xf32, ["b", "s"]>
    "llmpart.return"(%logits) : (tensor<?x?x32xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["logits"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Norms after attention and mlp belong to them.

// CHECK-LABEL: "builtin.module"
// CHECK-NOT: "layer.generic"
// CHECK: "layer.norm"
// CHECK: "layer.attention"
// CHECK: "onnx.RMSNormalization"
// CHECK: "onnx.Add"
// CHECK: heads = 2 : i64
// CHECK: "layer.norm"
// CHECK: "layer.mlp"
// CHECK: "onnx.RMSNormalization"
// CHECK: "onnx.Add"
// CHECK: "layer.norm"
// CHECK: "layer.lm_head"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %g = "llmpart.weight"() {file = "w", length = 32 : i64, offset = 0 : i64} : () -> tensor<8xf32>
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %square = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %wide = "llmpart.weight"() {file = "w", length = 768 : i64, offset = 0 : i64} : () -> tensor<8x24xf32>
    %narrow = "llmpart.weight"() {file = "w", length = 768 : i64, offset = 0 : i64} : () -> tensor<24x8xf32>
    %out = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<8x32xf32>
    %x = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %n = "onnx.RMSNormalization"(%x, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %q = "onnx.MatMul"(%n, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %k = "onnx.MatMul"(%n, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %v = "onnx.MatMul"(%n, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %a = "onnx.Attention"(%q, %k, %v) {bottom_right = 1 : i64, is_causal = 1 : i64, kv_num_heads = 2 : i64, q_num_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
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
// -----
// Norms after the adds, no norm before the first attention, and a head that transforms before it projects.

// CHECK-LABEL: "builtin.module"
// CHECK-NOT: "layer.generic"
// CHECK: "layer.embedding"
// CHECK: "layer.attention"
// CHECK: "layer.norm"
// CHECK: "layer.mlp"
// CHECK: "layer.norm"
// CHECK: "layer.lm_head"
// CHECK: "onnx.Relu"
// CHECK: "onnx.RMSNormalization"
// CHECK: vocab = 32 : i64
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %g = "llmpart.weight"() {file = "w", length = 32 : i64, offset = 0 : i64} : () -> tensor<8xf32>
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %square = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %wide = "llmpart.weight"() {file = "w", length = 768 : i64, offset = 0 : i64} : () -> tensor<8x24xf32>
    %narrow = "llmpart.weight"() {file = "w", length = 768 : i64, offset = 0 : i64} : () -> tensor<24x8xf32>
    %out = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<8x32xf32>
    %x = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %q = "onnx.MatMul"(%x, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %k = "onnx.MatMul"(%x, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %v = "onnx.MatMul"(%x, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %a = "onnx.Attention"(%q, %k, %v) {bottom_right = 1 : i64, is_causal = 1 : i64, kv_num_heads = 2 : i64, q_num_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %o = "onnx.MatMul"(%a, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %h0 = "onnx.Add"(%o, %x) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %h = "onnx.RMSNormalization"(%h0, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %u = "onnx.MatMul"(%h, %wide) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x24xf32>) -> tensor<?x?x24xf32, ["b", "s"]>
    %r = "onnx.Relu"(%u) : (tensor<?x?x24xf32, ["b", "s"]>) -> tensor<?x?x24xf32, ["b", "s"]>
    %d = "onnx.MatMul"(%r, %narrow) : (tensor<?x?x24xf32, ["b", "s"]>, tensor<24x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %h1 = "onnx.Add"(%d, %h) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %h2 = "onnx.RMSNormalization"(%h1, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %t = "onnx.MatMul"(%h2, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %tr = "onnx.Relu"(%t) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "onnx.RMSNormalization"(%tr, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %logits = "onnx.MatMul"(%f, %out) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x32xf32>) -> tensor<?x?x32xf32, ["b", "s"]>
    "llmpart.return"(%logits) : (tensor<?x?x32xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["logits"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
