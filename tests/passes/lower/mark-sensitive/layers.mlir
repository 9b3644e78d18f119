// RUN: llmpart opt %s -p 'mark-sensitive{budget=100%}' --verify-each | FileCheck %s
// RUN: llmpart opt %s -p 'mark-sensitive{budget=10%}' --verify-each | FileCheck %s --check-prefix=FEW
// RUN: llmpart opt %s -p mark-sensitive --verify-each | FileCheck %s --check-prefix=NONE
// The products of the values and those that end an MLP keep 8 bits, the values first. Queries, keys and the others do
// not.

// CHECK: "op.linear"{{.*}}name = "q", transpose_b
// CHECK: "op.linear"{{.*}}name = "k", transpose_b
// CHECK: "op.linear"{{.*}}name = "v", sensitive = true
// CHECK: "op.linear"{{.*}}name = "up", transpose_b
// CHECK: "op.linear"{{.*}}name = "down", sensitive = true
// CHECK: "op.linear"{{.*}}name = "head", transpose_b
// FEW: name = "v", sensitive = true
// FEW: name = "down", transpose_b
// NONE-NOT: sensitive = true

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x?x8xf32, ["b", "s"]>):
    %p = "llmpart.weight"() {file = "none", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %u = "llmpart.weight"() {file = "none", length = 1024 : i64, offset = 256 : i64} : () -> tensor<32x8xf32>
    %d = "llmpart.weight"() {file = "none", length = 1024 : i64, offset = 1280 : i64} : () -> tensor<8x32xf32>
    %q = "op.linear"(%x, %p) {layer = 0 : i64, layer_kind = "attention", name = "q", transpose_b = true} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %k = "op.linear"(%x, %p) {layer = 0 : i64, layer_kind = "attention", name = "k", transpose_b = true} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %v = "op.linear"(%x, %p) {layer = 0 : i64, layer_kind = "attention", name = "v", transpose_b = true} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %q4 = "op.reshape"(%q) {layer = 0 : i64, layer_kind = "attention"} : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x1x8xf32, ["b", "s"]>
    %k4 = "op.reshape"(%k) {layer = 0 : i64, layer_kind = "attention"} : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x1x8xf32, ["b", "s"]>
    %v4 = "op.reshape"(%v) {layer = 0 : i64, layer_kind = "attention"} : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x1x8xf32, ["b", "s"]>
    %kt = "op.transpose"(%k4) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x1x8xf32, ["b", "s"]>) -> tensor<?x1x?x8xf32, ["b", "s"]>
    %vt = "op.transpose"(%v4) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x1x8xf32, ["b", "s"]>) -> tensor<?x1x?x8xf32, ["b", "s"]>
    %a = "op.attention"(%q4, %kt, %vt) {causal = true, head_dim = 8 : i64, heads = 1 : i64, kv_heads = 1 : i64, layer = 0 : i64, layer_kind = "attention", layout = "bshd", scale = 1.0 : f64} : (tensor<?x?x1x8xf32, ["b", "s"]>, tensor<?x1x?x8xf32, ["b", "s"]>, tensor<?x1x?x8xf32, ["b", "s"]>) -> tensor<?x?x1x8xf32, ["b", "s"]>
    %y = "op.reshape"(%a) {layer = 0 : i64, layer_kind = "attention"} : (tensor<?x?x1x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %m = "op.linear"(%y, %u) {layer = 0 : i64, layer_kind = "mlp", name = "up", transpose_b = true} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<32x8xf32>) -> tensor<?x?x32xf32, ["b", "s"]>
    %n = "op.linear"(%m, %d) {layer = 0 : i64, layer_kind = "mlp", name = "down", transpose_b = true} : (tensor<?x?x32xf32, ["b", "s"]>, tensor<8x32xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %h = "op.linear"(%n, %u) {name = "head", transpose_b = true} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<32x8xf32>) -> tensor<?x?x32xf32, ["b", "s"]>
    "llmpart.return"(%h) : (tensor<?x?x32xf32, ["b", "s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
