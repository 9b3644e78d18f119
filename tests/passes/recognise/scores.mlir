// RUN: llmpart opt %s -p recognise --split-input-file --verify-each | FileCheck %s
// A soft cap between product and mask, a scale after the mask: both go into Attention, the mask is scaled with the scores.

// CHECK: %[[MASK:.*]] = "onnx.Mul"(%{{.*}}, %{{.*}})
// CHECK: "onnx.Attention"(%{{.*}}, %{{.*}}, %{{.*}}, %[[MASK]]) {is_causal = 0 : i64, scale = 2.5e-01 : f64, softcap = 2.0e+00 : f64}
// CHECK-NOT: "onnx.Softmax"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s"]>, %v: tensor<?x2x?x4xf32, ["b", "s"]>, %mask: tensor<?x1x?x?xf32, ["b", "s", "s"]>):
    %half = "llmpart.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %eighth = "llmpart.constant"() {value = dense<0.125> : tensor<f32>} : () -> tensor<f32>
    %four = "llmpart.constant"() {value = dense<4.0> : tensor<f32>} : () -> tensor<f32>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x4x?xf32, ["b", "s"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %a = "onnx.Mul"(%x, %eighth) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %t = "onnx.Tanh"(%a) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %c = "onnx.Mul"(%four, %t) : (tensor<f32>, tensor<?x2x?x?xf32, ["b", "s", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %m = "onnx.Add"(%c, %mask) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x1x?x?xf32, ["b", "s", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %h = "onnx.Mul"(%m, %half) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %p = "onnx.Softmax"(%h) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %y = "onnx.MatMul"(%p, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v", "mask"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// A cap after the mask lets masked keys in: that is no Attention.

// CHECK-NOT: "onnx.Attention"
// CHECK: "onnx.Softmax"
// CHECK-NOT: "onnx.Attention"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s"]>, %v: tensor<?x2x?x4xf32, ["b", "s"]>, %mask: tensor<?x1x?x?xf32, ["b", "s", "s"]>):
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x4x?xf32, ["b", "s"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %m = "onnx.Add"(%x, %mask) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x1x?x?xf32, ["b", "s", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %t = "onnx.Tanh"(%m) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %p = "onnx.Softmax"(%t) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %y = "onnx.MatMul"(%p, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v", "mask"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Batch and heads on one axis: Attention has four axes, the operators around it three.

// CHECK: %[[Q:.*]] = "onnx.Reshape"(%0, {{.*}} -> tensor<?x3x?x4xf32, ["b", "s"]>
// CHECK: %[[Y:.*]] = "onnx.Attention"(%[[Q]], {{.*}} -> tensor<?x3x?x4xf32, ["b", "s"]>
// CHECK: "onnx.Reshape"(%[[Y]], {{.*}} -> tensor<?x?x4xf32, ["3*b", "s"]>
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x?x4xf32, ["3*b", "s"]>, %k: tensor<?x?x4xf32, ["3*b", "s"]>, %v: tensor<?x?x4xf32, ["3*b", "s"]>):
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 2, 1>} : (tensor<?x?x4xf32, ["3*b", "s"]>) -> tensor<?x4x?xf32, ["3*b", "s"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x?x4xf32, ["3*b", "s"]>, tensor<?x4x?xf32, ["3*b", "s"]>) -> tensor<?x?x?xf32, ["3*b", "s", "s"]>
    %p = "onnx.Softmax"(%x) {axis = -1 : i64} : (tensor<?x?x?xf32, ["3*b", "s", "s"]>) -> tensor<?x?x?xf32, ["3*b", "s", "s"]>
    %y = "onnx.MatMul"(%p, %v) : (tensor<?x?x?xf32, ["3*b", "s", "s"]>, tensor<?x?x4xf32, ["3*b", "s"]>) -> tensor<?x?x4xf32, ["3*b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x4xf32, ["3*b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Attention is computed in f32, so attention in f64 stays a softmax between products.

// CHECK-NOT: "onnx.Attention"
// CHECK: "onnx.Softmax"
// CHECK-NOT: "onnx.Attention"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf64, ["b", "s"]>, %k: tensor<?x2x?x4xf64, ["b", "s"]>, %v: tensor<?x2x?x4xf64, ["b", "s"]>):
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf64, ["b", "s"]>) -> tensor<?x2x4x?xf64, ["b", "s"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf64, ["b", "s"]>, tensor<?x2x4x?xf64, ["b", "s"]>) -> tensor<?x2x?x?xf64, ["b", "s", "s"]>
    %p = "onnx.Softmax"(%x) {axis = -1 : i64} : (tensor<?x2x?x?xf64, ["b", "s", "s"]>) -> tensor<?x2x?x?xf64, ["b", "s", "s"]>
    %y = "onnx.MatMul"(%p, %v) : (tensor<?x2x?x?xf64, ["b", "s", "s"]>, tensor<?x2x?x4xf64, ["b", "s"]>) -> tensor<?x2x?x4xf64, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf64, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// One number added to every score is no mask.

// CHECK-NOT: "onnx.Attention"
// CHECK: "onnx.Softmax"
// CHECK-NOT: "onnx.Attention"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s"]>, %v: tensor<?x2x?x4xf32, ["b", "s"]>, %one: tensor<f32>):
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x4x?xf32, ["b", "s"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %m = "onnx.Add"(%x, %one) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %p = "onnx.Softmax"(%m) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %y = "onnx.MatMul"(%p, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v", "one"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----
// Queries, keys and values of f16 are cast to f32 for the scores and the product; the result is f32 as the graph has it.

// CHECK: %[[HALF:.*]] = "onnx.Attention"(%{{.*}}, %{{.*}}, %{{.*}}) {is_causal = 0 : i64, scale = 5.0e-01 : f64} : {{.*}} -> tensor<?x2x?x4xf16
// CHECK: %[[WIDE:.*]] = "onnx.Cast"(%[[HALF]]) {to = 1 : i64} : {{.*}} -> tensor<?x2x?x4xf32
// CHECK: "llmpart.return"(%[[WIDE]])
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf16, ["b", "s"]>, %k: tensor<?x2x?x4xf16, ["b", "s"]>, %v: tensor<?x2x?x4xf16, ["b", "s"]>):
    %half = "llmpart.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf16, ["b", "s"]>) -> tensor<?x2x4x?xf16, ["b", "s"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf16, ["b", "s"]>, tensor<?x2x4x?xf16, ["b", "s"]>) -> tensor<?x2x?x?xf16, ["b", "s", "s"]>
    %w = "onnx.Cast"(%x) {to = 1 : i64} : (tensor<?x2x?x?xf16, ["b", "s", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %h = "onnx.Mul"(%w, %half) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %p = "onnx.Softmax"(%h) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %wv = "onnx.Cast"(%v) {to = 1 : i64} : (tensor<?x2x?x4xf16, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %y = "onnx.MatMul"(%p, %wv) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Hidden keys all get the number: in a row that sees none they weigh the same, so it must absorb the scores.

// CHECK: %[[LOW:.*]] = "llmpart.constant"() {value = dense<-1.0e+30> : tensor<f32>}
// CHECK: %[[MASK:.*]] = "onnx.Where"(%{{.*}}, %[[LOW]], %{{.*}})
// CHECK: "onnx.Attention"(%{{.*}}, %{{.*}}, %{{.*}}, %[[MASK]])
// CHECK-NOT: "onnx.Softmax"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s"]>, %v: tensor<?x2x?x4xf32, ["b", "s"]>, %mask: tensor<?x1x?x?xi1, ["b", "s", "s"]>):
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x4x?xf32, ["b", "s"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %low = "llmpart.constant"() {value = dense<-6.5504e+04> : tensor<f32>} : () -> tensor<f32>
    %h = "onnx.Where"(%mask, %low, %x) : (tensor<?x1x?x?xi1, ["b", "s", "s"]>, tensor<f32>, tensor<?x2x?x?xf32, ["b", "s", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %p = "onnx.Softmax"(%h) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %y = "onnx.MatMul"(%p, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v", "mask"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// A lower bound in f16, as XGLM has it, is evaluated in f16.

// CHECK: "onnx.Attention"
// CHECK-NOT: "onnx.Softmax"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf16, ["b", "s"]>, %k: tensor<?x2x?x4xf16, ["b", "s"]>, %v: tensor<?x2x?x4xf16, ["b", "s"]>):
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf16, ["b", "s"]>) -> tensor<?x2x4x?xf16, ["b", "s"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf16, ["b", "s"]>, tensor<?x2x4x?xf16, ["b", "s"]>) -> tensor<?x2x?x?xf16, ["b", "s", "s"]>
    %low = "llmpart.constant"() {value = dense<-6.5504e+04> : tensor<f16>} : () -> tensor<f16>
    %h = "onnx.Max"(%x, %low) : (tensor<?x2x?x?xf16, ["b", "s", "s"]>, tensor<f16>) -> tensor<?x2x?x?xf16, ["b", "s", "s"]>
    %p = "onnx.Softmax"(%h) {axis = -1 : i64} : (tensor<?x2x?x?xf16, ["b", "s", "s"]>) -> tensor<?x2x?x?xf16, ["b", "s", "s"]>
    %y = "onnx.MatMul"(%p, %v) : (tensor<?x2x?x?xf16, ["b", "s", "s"]>, tensor<?x2x?x4xf16, ["b", "s"]>) -> tensor<?x2x?x4xf16, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf16, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
