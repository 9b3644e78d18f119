// RUN: llmpart opt %s -p kv-cache --split-input-file --verify-each | FileCheck %s
// A table of positions gives the model's context length: here 32 rows for positions from 2 on.

// CHECK: context = 30 : i64
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %words = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %places = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 1024 : i64} : () -> tensor<32x8xf32>
    %two = "llmpart.constant"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
    %x = "op.gather"(%words, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %i = "op.iota"() {start = #llmpart.poly<"0">, step = #llmpart.poly<"1">} : () -> tensor<?xi64, ["s"]>
    %j = "op.map"(%two, %i) {fn = "add"} : (tensor<i64>, tensor<?xi64, ["s"]>) -> tensor<?xi64, ["s"]>
    %at = "op.gather"(%places, %j) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?xi64, ["s"]>) -> tensor<?x8xf32, ["s"]>
    %y = "op.map"(%x, %at) {fn = "add"} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x8xf32, ["s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%y) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %a = "op.attention"(%h, %h, %h) {causal = true, head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%a) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %z = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    "llmpart.return"(%z) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["logits"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
