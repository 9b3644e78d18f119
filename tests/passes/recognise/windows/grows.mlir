// RUN: llmpart opt %s -p recognise --verify-each | FileCheck %s
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
