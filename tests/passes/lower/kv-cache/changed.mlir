// RUN: llmpart opt %s -p kv-cache --split-input-file --verify-diagnostics
// A past that the graph changes at every step, as a quantiser in the format QDQ makes it, is no cache.
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>, %pk: tensor<?x2x?x4xf32, ["b", "p"]>):
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %x = "op.gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    // expected-error@+1 {{past input 'pk' is changed before new rows are appended to it}}
    %more = "op.map"(%pk) {fn = "tanh"} : (tensor<?x2x?x4xf32, ["b", "p"]>) -> tensor<?x2x?x4xf32, ["b", "p"]>
    %j = "op.concat"(%more, %h) {axis = 2 : i64} : (tensor<?x2x?x4xf32, ["b", "p"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "p + s"]>
    %n = "op.slice"(%j) {starts = #llmpart.polys<"0, 0, p, 0">, steps = array<i64: 1, 1, 1, 1>} : (tensor<?x2x?x4xf32, ["b", "p + s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%n) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens", "past_key"], inputs = ["ids", "pk"], output_roles = ["logits"], outputs = ["y"], past_pair = array<i64: -1, -1>, sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// The other reason: two operators read it.
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>, %pk: tensor<?x2x?x4xf32, ["b", "p"]>):
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %x = "op.gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %half = "op.map"(%pk) {fn = "tanh"} : (tensor<?x2x?x4xf32, ["b", "p"]>) -> tensor<?x2x?x4xf32, ["b", "p"]>
    // expected-error@+1 {{past input 'pk' is used by more than the attention that appends to it}}
    %more = "op.map"(%pk, %half) {fn = "add"} : (tensor<?x2x?x4xf32, ["b", "p"]>, tensor<?x2x?x4xf32, ["b", "p"]>) -> tensor<?x2x?x4xf32, ["b", "p"]>
    %j = "op.concat"(%more, %h) {axis = 2 : i64} : (tensor<?x2x?x4xf32, ["b", "p"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "p + s"]>
    %n = "op.slice"(%j) {starts = #llmpart.polys<"0, 0, p, 0">, steps = array<i64: 1, 1, 1, 1>} : (tensor<?x2x?x4xf32, ["b", "p + s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%n) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens", "past_key"], inputs = ["ids", "pk"], output_roles = ["logits"], outputs = ["y"], past_pair = array<i64: -1, -1>, sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
