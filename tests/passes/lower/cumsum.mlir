// RUN: llmpart opt %s -p 'fold,lower' --verify-each | FileCheck %s
// Running sums keep their axis, counted from the first one, and their options.

// CHECK: "op.cumsum"(%{{.*}}) {axis = 1 : i64, exclusive = false, {{.*}}reverse = false}
// CHECK: "op.cumsum"(%{{.*}}) {axis = 0 : i64, exclusive = false, {{.*}}reverse = true}
// CHECK: "op.cumsum"(%{{.*}}) {axis = 1 : i64, exclusive = true, {{.*}}reverse = false}
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x?xf32, ["b", "s"]>):
    %last = "llmpart.constant"() {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
    %first = "llmpart.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %a = "onnx.CumSum"(%x, %last) : (tensor<?x?xf32, ["b", "s"]>, tensor<i64>) -> tensor<?x?xf32, ["b", "s"]>
    %b = "onnx.CumSum"(%a, %first) {exclusive = 0 : i64, reverse = 1 : i64} : (tensor<?x?xf32, ["b", "s"]>, tensor<i64>) -> tensor<?x?xf32, ["b", "s"]>
    %c = "onnx.CumSum"(%b, %last) {exclusive = 1 : i64, reverse = 0 : i64} : (tensor<?x?xf32, ["b", "s"]>, tensor<i64>) -> tensor<?x?xf32, ["b", "s"]>
    "llmpart.return"(%c) : (tensor<?x?xf32, ["b", "s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
