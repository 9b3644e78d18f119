// RUN: llmpart opt %s -p tie-weights --verify-each | FileCheck %s
// A head that is the transpose of the embedding's table, and one that is a copy of it, read the table. Other weights
// stay, and so does one whose file is absent.

"builtin.module"() ({
  // CHECK: ^bb0(%[[T:.*]]: tensor<?xi64, ["s"]>):
  // CHECK: %[[TABLE:.*]] = "llmpart.constant"() {value = dense<{{\[\[}}1.0{{.*}} : tensor<3x2xf32>
  // CHECK-NEXT: %[[OTHER:.*]] = "llmpart.constant"() {{.*}} : () -> tensor<2x3xf32>
  // CHECK-NEXT: %[[ABSENT:.*]] = "llmpart.weight"
  // CHECK: %[[X:.*]] = "op.gather"(%[[TABLE]], %[[T]])
  // CHECK: "op.linear"(%[[X]], %[[TABLE]]) {name = "transpose", transpose_b = true}
  // CHECK: "op.linear"(%[[X]], %[[TABLE]]) {name = "copy", transpose_b = true}
  // CHECK: "op.linear"(%[[X]], %[[OTHER]]) {name = "other"}
  // CHECK: "op.linear"(%[[X]], %[[ABSENT]]) {name = "absent"}
  "llmpart.func"() ({
  ^bb0(%t: tensor<?xi64, ["s"]>):
    %table = "llmpart.constant"() {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
    %w = "llmpart.constant"() {value = dense<[[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
    %copy = "llmpart.constant"() {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
    %other = "llmpart.constant"() {value = dense<[[1.0, 3.0, 5.0], [2.0, 4.0, 7.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
    %absent = "llmpart.weight"() {file = "no-such-file", length = 24 : i64, offset = 0 : i64} : () -> tensor<2x3xf32>
    %x = "op.gather"(%table, %t) {axis = 0 : i64} : (tensor<3x2xf32>, tensor<?xi64, ["s"]>) -> tensor<?x2xf32, ["s"]>
    %a = "op.linear"(%x, %w) {name = "transpose"} : (tensor<?x2xf32, ["s"]>, tensor<2x3xf32>) -> tensor<?x3xf32, ["s"]>
    %b = "op.linear"(%x, %copy) {name = "copy", transpose_b = true} : (tensor<?x2xf32, ["s"]>, tensor<3x2xf32>) -> tensor<?x3xf32, ["s"]>
    %c = "op.linear"(%x, %other) {name = "other"} : (tensor<?x2xf32, ["s"]>, tensor<2x3xf32>) -> tensor<?x3xf32, ["s"]>
    %d = "op.linear"(%x, %absent) {name = "absent"} : (tensor<?x2xf32, ["s"]>, tensor<2x3xf32>) -> tensor<?x3xf32, ["s"]>
    "llmpart.return"(%a, %b, %c, %d) : (tensor<?x3xf32, ["s"]>, tensor<?x3xf32, ["s"]>, tensor<?x3xf32, ["s"]>, tensor<?x3xf32, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
