// RUN: llmpart opt %s -p kv-cache | FileCheck %s
// The columns that a causal convolution continues become a cache of all columns; a step reads from two before its own on.

// CHECK: "llmpart.state"() {append_axis = 2 : i64, {{.*}}name = "conv.0.x", shape = #llmpart.polys<"b, 1, c, 8">}
// CHECK: ^bb0(%0: tensor<?x?xi64, ["b", "s"]>):
// CHECK: %[[ALL:.*]] = "op.kv_append"({{.*}}) {layout = "bhsd", state = 2 : i64} : (tensor<?x1x?x8xf32, ["b", "s"]>) -> tensor<?x1x?x8xf32, ["b", "s + p"]>
// CHECK: %[[AT:.*]] = "op.iota"() {start = #llmpart.poly<"p - 2">, step = #llmpart.poly<"1">} : () -> tensor<?xi64, ["s + 2"]>
// CHECK: %[[FROM:.*]] = "op.map"(%[[AT]], {{.*}}) {fn = "max"}
// CHECK: %[[READ:.*]] = "op.gather"(%[[ALL]], %[[FROM]]) {axis = 2 : i64} : {{.*}} -> tensor<?x1x?x8xf32, ["b", "s + 2"]>
// CHECK: "op.map"(%{{.*}}, %[[READ]], %{{.*}}) {fn = "where"}
// CHECK-NOT: "op.concat"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>, %pk: tensor<?x2x?x4xf32, ["b", "p"]>, %pv: tensor<?x2x?x4xf32, ["b", "p"]>, %past: tensor<?x8x2xf32, ["b"]>):
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
    "llmpart.return"(%z) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens", "past_key", "past_value", "conv_past"], inputs = ["ids", "pk", "pv", "past"], output_roles = ["logits"], outputs = ["z"], past_pair = array<i64: -1, -1, -1, -1>, sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
