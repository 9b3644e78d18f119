// RUN: llmpart opt %s -p kv-cache --split-input-file --verify-each | FileCheck %s
// A model without past inputs makes a bias for s queries over s keys. With its cache there are p + s keys, so the operators
// of the bias are copied at that length, and its last s rows are taken. Attention to an encoder's states has no cache.

// CHECK-DAG: "llmpart.state"() {append_axis = 2 : i64, dtype = "f32", index = 0 : i64, name = "layer.0.k"
// CHECK-DAG: "llmpart.state"() {append_axis = 2 : i64, dtype = "f32", index = 1 : i64, name = "layer.0.v"
// CHECK-NOT: "llmpart.state"()
// CHECK: %[[KEYS:.*]] = "op.iota"() {start = #llmpart.poly<"0">, step = #llmpart.poly<"1">} : () -> tensor<?xf32, ["s + p"]>
// CHECK: %[[COLUMN:.*]] = "op.reshape"(%[[KEYS]]) : (tensor<?xf32, ["s + p"]>) -> tensor<?x1xf32, ["s + p"]>
// CHECK: %[[SQUARE:.*]] = "op.map"(%[[COLUMN]], %[[KEYS]]) {{.*}} -> tensor<?x?xf32, ["s + p", "s + p"]>
// CHECK: %[[LAST:.*]] = "op.slice"(%[[SQUARE]]) {starts = #llmpart.polys<"p, 0">, steps = array<i64: 1, 1>} : {{.*}} -> tensor<?x?xf32, ["s", "s + p"]>
// CHECK: %[[K:.*]] = "op.kv_append"
// CHECK: %[[V:.*]] = "op.kv_append"
// Operators that only the logits need are computed for the last r rows: here all but keys and values.
// CHECK: %[[Q:.*]] = "op.slice"(%[[ALL:.*]]) {starts = #llmpart.polys<"0, 0, s - r, 0">
// CHECK: %[[ROWS:.*]] = "op.slice"(%[[LAST]]) {starts = #llmpart.polys<"s - r, 0">
// CHECK: "op.attention"(%[[Q]], %[[K]], %[[V]], %[[ROWS]])
// CHECK: "op.attention"(%{{.*}}, %1, %1)
// CHECK: "llmpart.return"(%{{.*}}) : (tensor<?x?x8xf32, ["b", "r"]>)
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>, %states: tensor<?x2x7x4xf32, ["b"]>):
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %x = "op.gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %v = "op.map"(%h) {fn = "neg"} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %keys = "op.iota"() {start = #llmpart.poly<"0">, step = #llmpart.poly<"1">} : () -> tensor<?xf32, ["s"]>
    %column = "op.reshape"(%keys) : (tensor<?xf32, ["s"]>) -> tensor<?x1xf32, ["s"]>
    %bias = "op.map"(%column, %keys) {fn = "mul"} : (tensor<?x1xf32, ["s"]>, tensor<?xf32, ["s"]>) -> tensor<?x?xf32, ["s", "s"]>
    %a = "op.attention"(%h, %h, %v, %bias) {causal = true, head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x?xf32, ["s", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %c = "op.attention"(%a, %states, %states) {causal = false, head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x7x4xf32, ["b"]>, tensor<?x2x7x4xf32, ["b"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%c) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens", "data"], inputs = ["ids", "states"], output_roles = ["logits"], outputs = ["logits"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// One row for all queries is only longer; none of it is cut. Keys that are the values too have one cache.

// CHECK: %[[KEYS:.*]] = "op.iota"() {{.*}} -> tensor<?xf32, ["s + p"]>
// CHECK: %[[ROW:.*]] = "op.reshape"(%[[KEYS]]) : (tensor<?xf32, ["s + p"]>) -> tensor<1x?xf32, ["s + p"]>
// CHECK-NOT: "op.slice"(%[[ROW]])
// CHECK: "op.attention"(%{{.*}}, %[[KV:.*]], %[[KV]], %[[ROW]])
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %x = "op.gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %keys = "op.iota"() {start = #llmpart.poly<"0">, step = #llmpart.poly<"1">} : () -> tensor<?xf32, ["s"]>
    %bias = "op.reshape"(%keys) : (tensor<?xf32, ["s"]>) -> tensor<1x?xf32, ["s"]>
    %a = "op.attention"(%h, %h, %h, %bias) {causal = true, head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1x?xf32, ["s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%a) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["logits"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
