// RUN: llmpart opt %s -p fold,recognise --split-input-file --verify-each | FileCheck %s
// A logit of each head that joins the softmax and has no value is an operand of Attention.

// CHECK: %[[SINKS:.*]] = "onnx.Reshape"(%{{.*}}, %{{.*}}) {{.*}} -> tensor<2xf32>
// CHECK: "onnx.Attention"(%{{.*}}, %{{.*}}, %{{.*}}, %[[SINKS]]) {is_causal = 0 : i64, operand_mask = "11100001", scale = 1.0e+00 : f64}
// CHECK-NOT: "onnx.Softmax"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s"]>, %v: tensor<?x2x?x4xf32, ["b", "s"]>):
    %logits = "llmpart.constant"() {value = dense<[[[[0.5]], [[-2.0]]]]> : tensor<1x2x1x1xf32>} : () -> tensor<1x2x1x1xf32>
    %start = "llmpart.constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
    %end = "llmpart.constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
    %axis = "llmpart.constant"() {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x4x?xf32, ["b", "s"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %rows = "onnx.ReduceMax"(%x, %axis) {keepdims = 1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<1xi64>) -> tensor<?x2x?x1xf32, ["b", "s"]>
    %sizes = "onnx.Shape"(%rows) : (tensor<?x2x?x1xf32, ["b", "s"]>) -> tensor<4xi64>
    %sinks = "onnx.Expand"(%logits, %sizes) : (tensor<1x2x1x1xf32>, tensor<4xi64>) -> tensor<?x2x?x1xf32, ["b", "s"]>
    %both = "onnx.Concat"(%x, %sinks) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x2x?x1xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "1+s"]>
    %max = "onnx.ReduceMax"(%both, %axis) {keepdims = 1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>, tensor<1xi64>) -> tensor<?x2x?x1xf32, ["b", "s"]>
    %less = "onnx.Sub"(%both, %max) : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>, tensor<?x2x?x1xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "1+s"]>
    %p = "onnx.Softmax"(%less) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "1+s"]>
    %w = "onnx.Slice"(%p, %start, %end, %axis) : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %y = "onnx.MatMul"(%w, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// The weights without the first key's are not those of the keys.

// CHECK-NOT: "onnx.Attention"
// CHECK: "onnx.Softmax"
// CHECK-NOT: "onnx.Attention"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s"]>, %v: tensor<?x2x?x4xf32, ["b", "s"]>):
    %logits = "llmpart.constant"() {value = dense<[[[[0.5]], [[-2.0]]]]> : tensor<1x2x1x1xf32>} : () -> tensor<1x2x1x1xf32>
    %start = "llmpart.constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
    %end = "llmpart.constant"() {value = dense<9223372036854775807> : tensor<1xi64>} : () -> tensor<1xi64>
    %axis = "llmpart.constant"() {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x4x?xf32, ["b", "s"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %rows = "onnx.ReduceMax"(%x, %axis) {keepdims = 1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<1xi64>) -> tensor<?x2x?x1xf32, ["b", "s"]>
    %sizes = "onnx.Shape"(%rows) : (tensor<?x2x?x1xf32, ["b", "s"]>) -> tensor<4xi64>
    %sinks = "onnx.Expand"(%logits, %sizes) : (tensor<1x2x1x1xf32>, tensor<4xi64>) -> tensor<?x2x?x1xf32, ["b", "s"]>
    %both = "onnx.Concat"(%x, %sinks) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x2x?x1xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "1+s"]>
    %max = "onnx.ReduceMax"(%both, %axis) {keepdims = 1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>, tensor<1xi64>) -> tensor<?x2x?x1xf32, ["b", "s"]>
    %less = "onnx.Sub"(%both, %max) : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>, tensor<?x2x?x1xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "1+s"]>
    %p = "onnx.Softmax"(%less) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "1+s"]>
    %w = "onnx.Slice"(%p, %start, %end, %axis) : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %y = "onnx.MatMul"(%w, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// A logit of all heads is no sink of each.

// CHECK-NOT: "onnx.Attention"
// CHECK: "onnx.Softmax"
// CHECK-NOT: "onnx.Attention"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s"]>, %v: tensor<?x2x?x4xf32, ["b", "s"]>):
    %logits = "llmpart.constant"() {value = dense<0.5> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
    %start = "llmpart.constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
    %end = "llmpart.constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
    %axis = "llmpart.constant"() {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x4x?xf32, ["b", "s"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %rows = "onnx.ReduceMax"(%x, %axis) {keepdims = 1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<1xi64>) -> tensor<?x2x?x1xf32, ["b", "s"]>
    %sizes = "onnx.Shape"(%rows) : (tensor<?x2x?x1xf32, ["b", "s"]>) -> tensor<4xi64>
    %sinks = "onnx.Expand"(%logits, %sizes) : (tensor<1x1x1x1xf32>, tensor<4xi64>) -> tensor<?x2x?x1xf32, ["b", "s"]>
    %both = "onnx.Concat"(%x, %sinks) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x2x?x1xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "1+s"]>
    %max = "onnx.ReduceMax"(%both, %axis) {keepdims = 1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>, tensor<1xi64>) -> tensor<?x2x?x1xf32, ["b", "s"]>
    %less = "onnx.Sub"(%both, %max) : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>, tensor<?x2x?x1xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "1+s"]>
    %p = "onnx.Softmax"(%less) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "1+s"]>
    %w = "onnx.Slice"(%p, %start, %end, %axis) : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %y = "onnx.MatMul"(%w, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// What a row adds to all its keys changes their share beside a sink, so the mask stays.

// CHECK: %[[HIDDEN:.*]] = "onnx.Where"
// CHECK: "onnx.Attention"(%{{.*}}, %{{.*}}, %{{.*}}, %[[HIDDEN]], %{{.*}}) {bottom_right = 1 : i64, is_causal = 1 : i64,
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s"]>, %v: tensor<?x2x?x4xf32, ["b", "s"]>):
    %logits = "llmpart.constant"() {value = dense<[[[[0.5]], [[-2.0]]]]> : tensor<1x2x1x1xf32>} : () -> tensor<1x2x1x1xf32>
    %start = "llmpart.constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
    %end = "llmpart.constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
    %axis = "llmpart.constant"() {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
    %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x4x?xf32, ["b", "s"]>
    %x = "onnx.MatMul"(%q, %kt) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x4x?xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %zero = "llmpart.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %one = "llmpart.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %low = "llmpart.constant"() {value = dense<-30000.0> : tensor<f32>} : () -> tensor<f32>
    %more = "llmpart.constant"() {value = dense<1.5> : tensor<f32>} : () -> tensor<f32>
    %ax1 = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %total = "op.dims"() {values = #llmpart.polys<"s">} : () -> tensor<i64>
    %keys = "onnx.Range"(%zero, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, ["s"]>
    %column = "onnx.Unsqueeze"(%keys, %ax1) : (tensor<?xi64, ["s"]>, tensor<1xi64>) -> tensor<?x1xi64, ["s"]>
    %seen = "onnx.LessOrEqual"(%keys, %column) : (tensor<?xi64, ["s"]>, tensor<?x1xi64, ["s"]>) -> tensor<?x?xi1, ["s", "s"]>
    %g = "onnx.Add"(%x, %more) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %h = "onnx.Where"(%seen, %g, %low) : (tensor<?x?xi1, ["s", "s"]>, tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %rows = "onnx.ReduceMax"(%h, %axis) {keepdims = 1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<1xi64>) -> tensor<?x2x?x1xf32, ["b", "s"]>
    %sizes = "onnx.Shape"(%rows) : (tensor<?x2x?x1xf32, ["b", "s"]>) -> tensor<4xi64>
    %sinks = "onnx.Expand"(%logits, %sizes) : (tensor<1x2x1x1xf32>, tensor<4xi64>) -> tensor<?x2x?x1xf32, ["b", "s"]>
    %both = "onnx.Concat"(%h, %sinks) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x2x?x1xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "1+s"]>
    %max = "onnx.ReduceMax"(%both, %axis) {keepdims = 1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>, tensor<1xi64>) -> tensor<?x2x?x1xf32, ["b", "s"]>
    %less = "onnx.Sub"(%both, %max) : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>, tensor<?x2x?x1xf32, ["b", "s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "1+s"]>
    %p = "onnx.Softmax"(%less) {axis = -1 : i64} : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>) -> tensor<?x2x?x?xf32, ["b", "s", "1+s"]>
    %w = "onnx.Slice"(%p, %start, %end, %axis) : (tensor<?x2x?x?xf32, ["b", "s", "1+s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x?xf32, ["b", "s", "s"]>
    %y = "onnx.MatMul"(%w, %v) : (tensor<?x2x?x?xf32, ["b", "s", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["q", "k", "v"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
