// RUN: llmpart opt %s -p recognise --split-input-file --verify-each | FileCheck %s
// A mask that multiplies, x * m - 10000 * (1 - m), is causal: no operand is left.

// CHECK-LABEL: "builtin.module"
// CHECK: "onnx.Attention"(%0, %1, %2) {bottom_right = 1 : i64, is_causal = 1 : i64,
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s + p"]>, %v: tensor<?x2x?x4xf32, ["b", "s + p"]>):
    %zero = "llmpart.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %one = "llmpart.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %low = "llmpart.constant"() {value = dense<-30000.0> : tensor<f32>} : () -> tensor<f32>
    %none = "llmpart.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %ax1 = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %past = "op.dims"() {values = #llmpart.polys<"p">} : () -> tensor<i64>
    %total = "op.dims"() {values = #llmpart.polys<"p + s">} : () -> tensor<i64>
    %keys = "onnx.Range"(%zero, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s + p"]>
    %queries = "onnx.Range"(%past, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s"]>
    %column = "onnx.Unsqueeze"(%queries, %ax1) : (tensor<?xi64, ["s"]>, tensor<1xi64>) -> tensor<?x1xi64, ["s"]>
    %seen = "onnx.LessOrEqual"(%keys, %column) : (tensor<?xi64, ["s + p"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x4x?xf32, ["b", "s + p"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %ones = "llmpart.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %big = "llmpart.constant"() {value = dense<10000.0> : tensor<f32>} : () -> tensor<f32>
    %m = "onnx.Cast"(%seen) {to = 1 : i64} : (tensor<?x?xi1, ["s", "s + p"]>) -> tensor<?x?xf32, ["s", "s + p"]>
    %i = "onnx.Sub"(%ones, %m) : (tensor<f32>, tensor<?x?xf32, ["s", "s + p"]>) -> tensor<?x?xf32, ["s", "s + p"]>
    %j = "onnx.Mul"(%i, %big) : (tensor<?x?xf32, ["s", "s + p"]>, tensor<f32>) -> tensor<?x?xf32, ["s", "s + p"]>
    %xm = "onnx.Mul"(%x, %m) : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<?x?xf32, ["s", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %h = "onnx.Sub"(%xm, %j) : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<?x?xf32, ["s", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %pr = "onnx.Softmax"(%h) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %y = "onnx.MatMul"(%pr, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// ALiBi under a causal mask: slopes times the distance to the last key.

// CHECK-LABEL: "builtin.module"
// CHECK: %[[FROM:.*]] = "op.dims"() {values = #llmpart.polys<"-s - p + 1">}
// CHECK: %[[FAR:.*]] = "onnx.Range"(%[[FROM]],
// CHECK: %[[SLOPES:.*]] = "llmpart.constant"() {value = dense<{{.*}}5.0e-01{{.*}}6.25e-02
// CHECK: %[[CAST:.*]] = "onnx.Cast"(%[[FAR]])
// CHECK: %[[BIAS:.*]] = "onnx.Mul"(%[[SLOPES]], %[[CAST]])
// CHECK: "onnx.Attention"(%0, %1, %2, %[[BIAS]]) {bottom_right = 1 : i64, is_causal = 1 : i64,
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s + p"]>, %v: tensor<?x2x?x4xf32, ["b", "s + p"]>):
    %zero = "llmpart.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %one = "llmpart.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %low = "llmpart.constant"() {value = dense<-30000.0> : tensor<f32>} : () -> tensor<f32>
    %none = "llmpart.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %ax1 = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %past = "op.dims"() {values = #llmpart.polys<"p">} : () -> tensor<i64>
    %total = "op.dims"() {values = #llmpart.polys<"p + s">} : () -> tensor<i64>
    %keys = "onnx.Range"(%zero, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s + p"]>
    %queries = "onnx.Range"(%past, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s"]>
    %column = "onnx.Unsqueeze"(%queries, %ax1) : (tensor<?xi64, ["s"]>, tensor<1xi64>) -> tensor<?x1xi64, ["s"]>
    %seen = "onnx.LessOrEqual"(%keys, %column) : (tensor<?xi64, ["s + p"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x4x?xf32, ["b", "s + p"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %slopes = "llmpart.constant"() {value = dense<[[[0.5]], [[0.0625]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
    %f = "onnx.Cast"(%keys) {to = 1 : i64} : (tensor<?xi64, ["s + p"]>) -> tensor<?xf32, ["s + p"]>
    %bias = "onnx.Mul"(%slopes, %f) : (tensor<2x1x1xf32>, tensor<?xf32, ["s + p"]>) -> tensor<2x1x?xf32, ["s + p"]>
    %g = "onnx.Add"(%x, %bias) : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<2x1x?xf32, ["s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %h = "onnx.Where"(%seen, %g, %low) : (tensor<?x?xi1, ["s", "s + p"]>, tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %pr = "onnx.Softmax"(%h) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %y = "onnx.MatMul"(%pr, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Another bias that depends on positions stays as it is. It hides later keys, so the attention is causal.

// CHECK-LABEL: "builtin.module"
// CHECK: %[[HIDDEN:.*]] = "onnx.Where"
// CHECK: "onnx.Attention"(%0, %1, %2, %[[HIDDEN]]) {bottom_right = 1 : i64, is_causal = 1 : i64,
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s + p"]>, %v: tensor<?x2x?x4xf32, ["b", "s + p"]>):
    %zero = "llmpart.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %one = "llmpart.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %low = "llmpart.constant"() {value = dense<-30000.0> : tensor<f32>} : () -> tensor<f32>
    %none = "llmpart.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %ax1 = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %past = "op.dims"() {values = #llmpart.polys<"p">} : () -> tensor<i64>
    %total = "op.dims"() {values = #llmpart.polys<"p + s">} : () -> tensor<i64>
    %keys = "onnx.Range"(%zero, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s + p"]>
    %queries = "onnx.Range"(%past, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s"]>
    %column = "onnx.Unsqueeze"(%queries, %ax1) : (tensor<?xi64, ["s"]>, tensor<1xi64>) -> tensor<?x1xi64, ["s"]>
    %seen = "onnx.LessOrEqual"(%keys, %column) : (tensor<?xi64, ["s + p"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x4x?xf32, ["b", "s + p"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %f = "onnx.Cast"(%keys) {to = 1 : i64} : (tensor<?xi64, ["s + p"]>) -> tensor<?xf32, ["s + p"]>
    %bias = "onnx.Mul"(%f, %f) : (tensor<?xf32, ["s + p"]>, tensor<?xf32, ["s + p"]>) -> tensor<?xf32, ["s + p"]>
    %g = "onnx.Add"(%x, %bias) : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<?xf32, ["s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %h = "onnx.Where"(%seen, %g, %low) : (tensor<?x?xi1, ["s", "s + p"]>, tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %pr = "onnx.Softmax"(%h) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %y = "onnx.MatMul"(%pr, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// One that changes with the length does not: rows computed earlier would be wrong later.

// CHECK-LABEL: "builtin.module"
// CHECK: "onnx.Attention"(%0, %1, %2, %{{.*}}) {is_causal = 0 : i64,
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s + p"]>, %v: tensor<?x2x?x4xf32, ["b", "s + p"]>):
    %zero = "llmpart.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %one = "llmpart.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %low = "llmpart.constant"() {value = dense<-30000.0> : tensor<f32>} : () -> tensor<f32>
    %none = "llmpart.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %ax1 = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %past = "op.dims"() {values = #llmpart.polys<"p">} : () -> tensor<i64>
    %total = "op.dims"() {values = #llmpart.polys<"p + s">} : () -> tensor<i64>
    %keys = "onnx.Range"(%zero, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s + p"]>
    %queries = "onnx.Range"(%past, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s"]>
    %column = "onnx.Unsqueeze"(%queries, %ax1) : (tensor<?xi64, ["s"]>, tensor<1xi64>) -> tensor<?x1xi64, ["s"]>
    %seen = "onnx.LessOrEqual"(%keys, %column) : (tensor<?xi64, ["s + p"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x4x?xf32, ["b", "s + p"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %f = "onnx.Cast"(%total) {to = 1 : i64} : (tensor<i64>) -> tensor<f32>
    %e = "onnx.Cast"(%keys) {to = 1 : i64} : (tensor<?xi64, ["s + p"]>) -> tensor<?xf32, ["s + p"]>
    %l = "onnx.Sub"(%e, %f) : (tensor<?xf32, ["s + p"]>, tensor<f32>) -> tensor<?xf32, ["s + p"]>
    %bias = "onnx.Mul"(%l, %l) : (tensor<?xf32, ["s + p"]>, tensor<?xf32, ["s + p"]>) -> tensor<?xf32, ["s + p"]>
    %g = "onnx.Add"(%x, %bias) : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<?xf32, ["s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %h = "onnx.Where"(%seen, %g, %low) : (tensor<?x?xi1, ["s", "s + p"]>, tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %pr = "onnx.Softmax"(%h) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %y = "onnx.MatMul"(%pr, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// A window of three positions, the own one among them.

// CHECK-LABEL: "builtin.module"
// CHECK: "onnx.Attention"(%0, %1, %2) {bottom_right = 1 : i64, is_causal = 1 : i64, {{.*}}window = 3 : i64
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s + p"]>, %v: tensor<?x2x?x4xf32, ["b", "s + p"]>):
    %zero = "llmpart.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %one = "llmpart.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %low = "llmpart.constant"() {value = dense<-30000.0> : tensor<f32>} : () -> tensor<f32>
    %none = "llmpart.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %ax1 = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %past = "op.dims"() {values = #llmpart.polys<"p">} : () -> tensor<i64>
    %total = "op.dims"() {values = #llmpart.polys<"p + s">} : () -> tensor<i64>
    %keys = "onnx.Range"(%zero, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s + p"]>
    %queries = "onnx.Range"(%past, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s"]>
    %column = "onnx.Unsqueeze"(%queries, %ax1) : (tensor<?xi64, ["s"]>, tensor<1xi64>) -> tensor<?x1xi64, ["s"]>
    %seen = "onnx.LessOrEqual"(%keys, %column) : (tensor<?xi64, ["s + p"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x4x?xf32, ["b", "s + p"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %width = "llmpart.constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
    %begin = "onnx.Sub"(%column, %width) : (tensor<?x1xi64, ["s"]>, tensor<i64>) -> tensor<?x1xi64, ["s"]>
    %near = "onnx.Greater"(%keys, %begin) : (tensor<?xi64, ["s + p"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %both = "onnx.And"(%seen, %near) : (tensor<?x?xi1, ["s", "s + p"]>, tensor<?x?xi1, ["s", "s + p"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %h = "onnx.Where"(%both, %x, %low) : (tensor<?x?xi1, ["s", "s + p"]>, tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %pr = "onnx.Softmax"(%h) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %y = "onnx.MatMul"(%pr, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Key 2 is hidden from all later positions: no causal mask.

// CHECK-LABEL: "builtin.module"
// CHECK: "onnx.Attention"(%0, %1, %2, %{{.*}}) {is_causal = 0 : i64,
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s + p"]>, %v: tensor<?x2x?x4xf32, ["b", "s + p"]>):
    %zero = "llmpart.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %one = "llmpart.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %low = "llmpart.constant"() {value = dense<-30000.0> : tensor<f32>} : () -> tensor<f32>
    %none = "llmpart.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %ax1 = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %past = "op.dims"() {values = #llmpart.polys<"p">} : () -> tensor<i64>
    %total = "op.dims"() {values = #llmpart.polys<"p + s">} : () -> tensor<i64>
    %keys = "onnx.Range"(%zero, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s + p"]>
    %queries = "onnx.Range"(%past, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s"]>
    %column = "onnx.Unsqueeze"(%queries, %ax1) : (tensor<?xi64, ["s"]>, tensor<1xi64>) -> tensor<?x1xi64, ["s"]>
    %seen = "onnx.LessOrEqual"(%keys, %column) : (tensor<?xi64, ["s + p"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x4x?xf32, ["b", "s + p"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %two = "llmpart.constant"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
    %is = "onnx.Equal"(%keys, %two) : (tensor<?xi64, ["s + p"]>, tensor<i64>) -> tensor<?xi1, ["s + p"]>
    %other = "onnx.Not"(%is) : (tensor<?xi1, ["s + p"]>) -> tensor<?xi1, ["s + p"]>
    %own = "onnx.Equal"(%keys, %column) : (tensor<?xi64, ["s + p"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %some = "onnx.Or"(%other, %own) : (tensor<?xi1, ["s + p"]>, tensor<?x?xi1, ["s", "s + p"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %both = "onnx.And"(%seen, %some) : (tensor<?x?xi1, ["s", "s + p"]>, tensor<?x?xi1, ["s", "s + p"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %h = "onnx.Where"(%both, %x, %low) : (tensor<?x?xi1, ["s", "s + p"]>, tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %pr = "onnx.Softmax"(%h) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %y = "onnx.MatMul"(%pr, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Position 3 sees one key more than the window of the later ones.

// CHECK-LABEL: "builtin.module"
// CHECK: "onnx.Attention"(%0, %1, %2, %{{.*}}) {is_causal = 0 : i64,
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s + p"]>, %v: tensor<?x2x?x4xf32, ["b", "s + p"]>):
    %zero = "llmpart.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %one = "llmpart.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %low = "llmpart.constant"() {value = dense<-30000.0> : tensor<f32>} : () -> tensor<f32>
    %none = "llmpart.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %ax1 = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %past = "op.dims"() {values = #llmpart.polys<"p">} : () -> tensor<i64>
    %total = "op.dims"() {values = #llmpart.polys<"p + s">} : () -> tensor<i64>
    %keys = "onnx.Range"(%zero, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s + p"]>
    %queries = "onnx.Range"(%past, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s"]>
    %column = "onnx.Unsqueeze"(%queries, %ax1) : (tensor<?xi64, ["s"]>, tensor<1xi64>) -> tensor<?x1xi64, ["s"]>
    %seen = "onnx.LessOrEqual"(%keys, %column) : (tensor<?xi64, ["s + p"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x4x?xf32, ["b", "s + p"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %three = "llmpart.constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
    %begin = "onnx.Sub"(%column, %three) : (tensor<?x1xi64, ["s"]>, tensor<i64>) -> tensor<?x1xi64, ["s"]>
    %near = "onnx.Greater"(%keys, %begin) : (tensor<?xi64, ["s + p"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %early = "onnx.LessOrEqual"(%column, %three) : (tensor<?x1xi64, ["s"]>, tensor<i64>) -> tensor<?x1xi1, ["s"]>
    %some = "onnx.Or"(%near, %early) : (tensor<?x?xi1, ["s", "s + p"]>, tensor<?x1xi1, ["s"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %both = "onnx.And"(%seen, %some) : (tensor<?x?xi1, ["s", "s + p"]>, tensor<?x?xi1, ["s", "s + p"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %h = "onnx.Where"(%both, %x, %low) : (tensor<?x?xi1, ["s", "s + p"]>, tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %pr = "onnx.Softmax"(%h) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %y = "onnx.MatMul"(%pr, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// The window shrinks from four positions to three.

// CHECK-LABEL: "builtin.module"
// CHECK: "onnx.Attention"(%0, %1, %2, %{{.*}}) {is_causal = 0 : i64,
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s + p"]>, %v: tensor<?x2x?x4xf32, ["b", "s + p"]>):
    %zero = "llmpart.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %one = "llmpart.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %low = "llmpart.constant"() {value = dense<-30000.0> : tensor<f32>} : () -> tensor<f32>
    %none = "llmpart.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %ax1 = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %past = "op.dims"() {values = #llmpart.polys<"p">} : () -> tensor<i64>
    %total = "op.dims"() {values = #llmpart.polys<"p + s">} : () -> tensor<i64>
    %keys = "onnx.Range"(%zero, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s + p"]>
    %queries = "onnx.Range"(%past, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s"]>
    %column = "onnx.Unsqueeze"(%queries, %ax1) : (tensor<?xi64, ["s"]>, tensor<1xi64>) -> tensor<?x1xi64, ["s"]>
    %seen = "onnx.LessOrEqual"(%keys, %column) : (tensor<?xi64, ["s + p"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x4x?xf32, ["b", "s + p"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %three = "llmpart.constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
    %four = "llmpart.constant"() {value = dense<4> : tensor<i64>} : () -> tensor<i64>
    %ten = "llmpart.constant"() {value = dense<10> : tensor<i64>} : () -> tensor<i64>
    %early = "onnx.Less"(%column, %ten) : (tensor<?x1xi64, ["s"]>, tensor<i64>) -> tensor<?x1xi1, ["s"]>
    %width = "onnx.Where"(%early, %four, %three) : (tensor<?x1xi1, ["s"]>, tensor<i64>, tensor<i64>) -> tensor<?x1xi64, ["s"]>
    %begin = "onnx.Sub"(%column, %width) : (tensor<?x1xi64, ["s"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x1xi64, ["s"]>
    %near = "onnx.Greater"(%keys, %begin) : (tensor<?xi64, ["s + p"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %both = "onnx.And"(%seen, %near) : (tensor<?x?xi1, ["s", "s + p"]>, tensor<?x?xi1, ["s", "s + p"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %h = "onnx.Where"(%both, %x, %low) : (tensor<?x?xi1, ["s", "s + p"]>, tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %pr = "onnx.Softmax"(%h) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %y = "onnx.MatMul"(%pr, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Every position sees all keys.

// CHECK-LABEL: "builtin.module"
// CHECK: "onnx.Attention"(%0, %1, %2) {is_causal = 0 : i64,
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s + p"]>, %v: tensor<?x2x?x4xf32, ["b", "s + p"]>):
    %zero = "llmpart.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %one = "llmpart.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %low = "llmpart.constant"() {value = dense<-30000.0> : tensor<f32>} : () -> tensor<f32>
    %none = "llmpart.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %ax1 = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %past = "op.dims"() {values = #llmpart.polys<"p">} : () -> tensor<i64>
    %total = "op.dims"() {values = #llmpart.polys<"p + s">} : () -> tensor<i64>
    %keys = "onnx.Range"(%zero, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s + p"]>
    %queries = "onnx.Range"(%past, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s"]>
    %column = "onnx.Unsqueeze"(%queries, %ax1) : (tensor<?xi64, ["s"]>, tensor<1xi64>) -> tensor<?x1xi64, ["s"]>
    %seen = "onnx.LessOrEqual"(%keys, %column) : (tensor<?xi64, ["s + p"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x4x?xf32, ["b", "s + p"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %any = "onnx.GreaterOrEqual"(%keys, %zero) : (tensor<?xi64, ["s + p"]>, tensor<i64>) -> tensor<?xi1, ["s + p"]>
    %either = "onnx.Or"(%seen, %any) : (tensor<?x?xi1, ["s", "s + p"]>, tensor<?xi1, ["s + p"]>) -> tensor<?x?xi1, ["s", "s + p"]>
    %h = "onnx.Where"(%either, %x, %low) : (tensor<?x?xi1, ["s", "s + p"]>, tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %pr = "onnx.Softmax"(%h) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s + p"]>
    %y = "onnx.MatMul"(%pr, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s + p"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
