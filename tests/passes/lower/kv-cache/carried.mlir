// RUN: llmpart opt %s -p kv-cache --verify-each | FileCheck %s
// The state of a linear attention becomes a cache that each step replaces, and then so do the columns of convolutions:
// neither grows with the text.

// CHECK: "llmpart.state"() {append_axis = -1 : i64, dtype = "f32", index = 2 : i64, name = "linear.0.s", shape = #llmpart.polys<"b, 2, 4, 4">}
// CHECK: "llmpart.state"() {append_axis = -1 : i64, dtype = "f32", index = 3 : i64, name = "conv.0.x", shape = #llmpart.polys<"b, 8, 2">}
// CHECK: ^bb0(%0: tensor<?x?xi64, ["b", "s"]>):
// CHECK: %[[ALL:.*]]:2 = "op.carry_columns"(%{{.*}}) {state = 3 : i64} : (tensor<?x8x?xf32, ["b", "s"]>) -> (tensor<?x8x?xf32, ["b", "s + 2"]>, tensor<?x8x2xf32, ["b"]>)
// CHECK: "op.slice"(%[[ALL]]#0)
// CHECK-NOT: "op.concat"
// CHECK: "op.linear_attention"(%{{.*}}, %{{.*}}, %{{.*}}) {{.*}}state = 2 : i64} : (tensor<?x?x8xf32, ["b", "s"]>
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>, %pk: tensor<?x2x?x4xf32, ["b", "p"]>, %pv: tensor<?x2x?x4xf32, ["b", "p"]>, %past: tensor<?x8x2xf32, ["b"]>, %state: tensor<?x2x4x4xf32, ["b"]>):
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %x = "op.gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %k = "op.concat"(%pk, %h) {axis = 2 : i64} : (tensor<?x2x?x4xf32, ["b", "p"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "p + s"]>
    %v = "op.concat"(%pv, %h) {axis = 2 : i64} : (tensor<?x2x?x4xf32, ["b", "p"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "p + s"]>
    %a = "op.attention"(%h, %k, %v) {causal = true, head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "p + s"]>, tensor<?x2x?x4xf32, ["b", "p + s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%a) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %c = "op.transpose"(%y) {perm = array<i64: 0, 2, 1>} : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x8x?xf32, ["b", "s"]>
    %j = "op.concat"(%past, %c) {axis = 2 : i64} : (tensor<?x8x2xf32, ["b"]>, tensor<?x8x?xf32, ["b", "s"]>) -> tensor<?x8x?xf32, ["b", "s + 2"]>
    %old = "op.slice"(%j) {starts = #llmpart.polys<"0, 0, 0">, steps = array<i64: 1, 1, 1>} : (tensor<?x8x?xf32, ["b", "s + 2"]>) -> tensor<?x8x?xf32, ["b", "s"]>
    %new = "op.slice"(%j) {starts = #llmpart.polys<"0, 0, 2">, steps = array<i64: 1, 1, 1>} : (tensor<?x8x?xf32, ["b", "s + 2"]>) -> tensor<?x8x?xf32, ["b", "s"]>
    %m = "op.map"(%old, %new) {fn = "add"} : (tensor<?x8x?xf32, ["b", "s"]>, tensor<?x8x?xf32, ["b", "s"]>) -> tensor<?x8x?xf32, ["b", "s"]>
    %z = "op.transpose"(%m) {perm = array<i64: 0, 2, 1>} : (tensor<?x8x?xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %l:2 = "op.linear_attention"(%z, %z, %z, %state) {heads = 2 : i64, kv_heads = 2 : i64, scale = 1.0 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>, tensor<?x2x4x4xf32, ["b"]>) -> (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x2x4x4xf32, ["b"]>)
    "llmpart.return"(%l#0) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens", "past_key", "past_value", "conv_past", "state_past"], inputs = ["ids", "pk", "pv", "past", "state"], output_roles = ["logits"], outputs = ["z"], past_pair = array<i64: -1, -1, -1, -1, -1>, sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
