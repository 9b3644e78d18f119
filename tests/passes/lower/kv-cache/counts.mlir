// RUN: llmpart opt %s -p kv-cache | FileCheck %s
// A count of the tokens that meet a condition gets a cache of zeros and ones, and is taken over all positions.

// CHECK: "llmpart.state"() {append_axis = 2 : i64, {{.*}}name = "count.0", shape = #llmpart.polys<"b, 1, c, 1">}
// CHECK: %[[ALL:.*]] = "op.kv_append"({{.*}}) {layout = "bhsd", state = 2 : i64} : (tensor<?x1x?x1xf32, ["b", "s"]>) -> tensor<?x1x?x1xf32, ["b", "s + p"]>
// CHECK: "op.cumsum"(%{{.*}}) {axis = 1 : i64} : (tensor<?x?xi64, ["b", "s + p"]>)
// CHECK-NEXT: "op.slice"({{.*}}) {starts = #llmpart.polys<"0, p">, steps = array<i64: 1, 1>}
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %pad = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %same = "op.map"(%ids, %pad) {fn = "eq"} : (tensor<?x?xi64, ["b", "s"]>, tensor<1xi64>) -> tensor<?x?xi1, ["b", "s"]>
    %real = "op.map"(%same) {fn = "not"} : (tensor<?x?xi1, ["b", "s"]>) -> tensor<?x?xi1, ["b", "s"]>
    %one = "op.map"(%real) {fn = "cast"} : (tensor<?x?xi1, ["b", "s"]>) -> tensor<?x?xi64, ["b", "s"]>
    %places = "op.cumsum"(%one) {axis = 1 : i64} : (tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?xi64, ["b", "s"]>
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %x = "op.gather"(%table, %places) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %v = "op.map"(%h) {fn = "neg"} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %a = "op.attention"(%h, %h, %v) {causal = true, head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%a) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
