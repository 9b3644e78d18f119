// RUN: llmpart opt %s -p kv-cache --split-input-file --verify-diagnostics
// New rows follow the past ones along the axis of positions, in one join of two.
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>, %pk: tensor<?x4x?x4xf32, ["b", "p"]>, %z: tensor<?x2x?x4xf32, ["b", "p"]>):
    %table = "llmpart.weight"() {file = "w", length = 2048 : i64, offset = 0 : i64} : () -> tensor<32x16xf32>
    %x = "op.gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x16xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x16xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x16xf32, ["b", "s"]>) -> tensor<?x?x4x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x4x4xf32, ["b", "s"]>) -> tensor<?x4x?x4xf32, ["b", "s"]>
    %k = "op.concat"(%pk, %h, %h) {axis = 2 : i64} : (tensor<?x4x?x4xf32, ["b", "p"]>, tensor<?x4x?x4xf32, ["b", "s"]>, tensor<?x4x?x4xf32, ["b", "s"]>) -> tensor<?x4x?x4xf32, ["b", "p + 2*s"]>
    // expected-error@+1 {{attention does not append to a past input, so it can keep no KV cache}}
    %a = "op.attention"(%h, %k, %k) {causal = true, head_dim = 4 : i64, heads = 4 : i64, kv_heads = 4 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x4x?x4xf32, ["b", "s"]>, tensor<?x4x?x4xf32, ["b", "p + 2*s"]>, tensor<?x4x?x4xf32, ["b", "p + 2*s"]>) -> tensor<?x4x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%a) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x4x?x4xf32, ["b", "s"]>) -> tensor<?x?x4x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x4x4xf32, ["b", "s"]>) -> tensor<?x?x16xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x16xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens", "past_key", "data"], inputs = ["ids", "pk", "z"], output_roles = ["logits"], outputs = ["y"], past_pair = array<i64: -1, -1, -1>, sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
