// RUN: llmpart opt %s -p kv-cache --verify-each 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAYS < %t
// An encoder keeps its attention as it is.

// SAYS: warning: tokens attend to later ones: the model encodes and does not generate
// CHECK-NOT: "llmpart.state"
// CHECK-NOT: "op.kv_append"
// CHECK: "op.attention"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %x = "op.gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %a = "op.attention"(%h, %h, %h) {causal = false, head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%a) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["logits"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
