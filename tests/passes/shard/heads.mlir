// RUN: llmpart opt %s -p 'shard{ranks=2}' --verify-each | FileCheck %s
// RUN: llmpart opt %s -p 'shard{ranks=2}' | mlir-opt --allow-unregistered-dialect -o /dev/null
// RUN: llmpart opt %s -p 'shard{ranks=1}' | FileCheck %s --check-prefix=ONE
// RUN: llmpart opt %s -p 'shard{ranks=4}' --verify-each | FileCheck %s --check-prefix=SHARED
// RUN: llmpart opt %s -p 'shard{ranks=3}' --verify-each | FileCheck %s --check-prefix=ODD
// A rank keeps its columns of a product and its heads of the attention; what an operator needs whole is gathered once.

// CHECK: "llmpart.state"() {{.*}}shape = #llmpart.polys<"b, 1, c, 2">
// CHECK: %[[WQ:.*]] = "llmpart.weight"
// CHECK-NEXT: %[[PQ:.*]] = "llmpart.shard"(%[[WQ]]) {axis = 1 : i64, parts = 2 : i64, ranks = 2 : i64} : (tensor<8x8xf32>) -> tensor<8x4xf32>
// CHECK: %[[Q:.*]] = "op.linear"(%[[X:.*]], %[[PQ]]) {{.*}}-> tensor<?x?x4xf32, ["b", "s"]>
// CHECK-NEXT: %[[QH:.*]] = "op.reshape"(%[[Q]]) {{.*}}-> tensor<?x?x2x2xf32, ["b", "s"]>
// CHECK: %[[K:.*]] = "op.kv_append"({{.*}}-> tensor<?x1x?x2xf32, ["b", "s + p"]>
// CHECK: %[[V:.*]] = "op.kv_append"({{.*}}-> tensor<?x1x?x2xf32, ["b", "s + p"]>
// CHECK: "op.attention"(%[[QH]], %[[K]], %[[V]]) {{.*}}heads = 2 : i64, kv_heads = 1 : i64
// CHECK: %[[A:.*]] = "comm.all_gather"({{.*}}) {axis = 2 : i64, {{.*}}parts = 2 : i64, ranks = 2 : i64, side = "cloud"}{{.*}}-> tensor<?x?x8xf32, ["b", "s"]>
// CHECK-NEXT: %[[R:.*]] = "op.slice"(%[[X]]) {{.*}}starts = #llmpart.polys<"0, 0, 4*rank">
// CHECK-NEXT: %[[O:.*]] = "op.linear"(%[[A]], %{{.*}}, %[[R]]) {{.*}}-> tensor<?x?x4xf32, ["b", "s"]>
// CHECK-NEXT: %[[W:.*]] = "comm.all_gather"(%[[O]])
// CHECK-NEXT: %[[N:.*]] = "op.norm"(%[[W]]
// CHECK-NEXT: "op.map"(%[[N]], %[[W]])
// CHECK-NOT: comm.all_gather
// CHECK: llmpart.ranks = 2 : i64

// ONE-NOT: comm.all_gather
// ONE-NOT: llmpart.shard

// Two ranks share each of the two heads of keys and values.
// SHARED: shape = #llmpart.polys<"b, 1, c, 2">
// SHARED: "llmpart.shard"({{.*}}parts = 4 : i64
// SHARED: "llmpart.shard"({{.*}}parts = 2 : i64, ranks = 4 : i64
// SHARED: heads = 1 : i64, kv_heads = 1 : i64

// Nothing divides by three: every rank computes everything.
// ODD: shape = #llmpart.polys<"b, 2, c, 2">
// ODD-NOT: comm.all_gather
// ODD-NOT: llmpart.shard

"builtin.module"() ({
  "llmpart.state"() {append_axis = 2 : i64, dtype = "f32", index = 0 : i64, name = "k", shape = #llmpart.polys<"b, 2, c, 2">} : () -> ()
  "llmpart.state"() {append_axis = 2 : i64, dtype = "f32", index = 1 : i64, name = "v", shape = #llmpart.polys<"b, 2, c, 2">} : () -> ()
  "llmpart.func"() ({
  ^bb0(%t: tensor<?x?x8xf32, ["b", "s"]>):
    %wq = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %wk = "llmpart.weight"() {file = "w", length = 128 : i64, offset = 256 : i64} : () -> tensor<8x4xf32>
    %wv = "llmpart.weight"() {file = "w", length = 128 : i64, offset = 384 : i64} : () -> tensor<8x4xf32>
    %wo = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 512 : i64} : () -> tensor<8x8xf32>
    %wn = "llmpart.weight"() {file = "w", length = 32 : i64, offset = 768 : i64} : () -> tensor<8xf32>
    "comm.send"(%t) {from = "device", tag = 0 : i64, to = "cloud"} : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
    %x = "comm.recv"() {from = "device", tag = 0 : i64, to = "cloud"} : () -> tensor<?x?x8xf32, ["b", "s"]>
    %q = "op.linear"(%x, %wq) {side = "cloud"} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %qh = "op.reshape"(%q) {side = "cloud"} : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x4x2xf32, ["b", "s"]>
    %k = "op.linear"(%x, %wk) {side = "cloud"} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x4xf32>) -> tensor<?x?x4xf32, ["b", "s"]>
    %kh = "op.reshape"(%k) {side = "cloud"} : (tensor<?x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x2xf32, ["b", "s"]>
    %kc = "op.kv_append"(%kh) {layout = "bshd", side = "cloud", state = 0 : i64} : (tensor<?x?x2x2xf32, ["b", "s"]>) -> tensor<?x2x?x2xf32, ["b", "s + p"]>
    %v = "op.linear"(%x, %wv) {side = "cloud"} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x4xf32>) -> tensor<?x?x4xf32, ["b", "s"]>
    %vh = "op.reshape"(%v) {side = "cloud"} : (tensor<?x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x2xf32, ["b", "s"]>
    %vc = "op.kv_append"(%vh) {layout = "bshd", side = "cloud", state = 1 : i64} : (tensor<?x?x2x2xf32, ["b", "s"]>) -> tensor<?x2x?x2xf32, ["b", "s + p"]>
    %a = "op.attention"(%qh, %kc, %vc) {causal = true, head_dim = 2 : i64, heads = 4 : i64, kv_heads = 2 : i64, layout = "bshd", scale = 1.0e+00 : f64, side = "cloud"} : (tensor<?x?x4x2xf32, ["b", "s"]>, tensor<?x2x?x2xf32, ["b", "s + p"]>, tensor<?x2x?x2xf32, ["b", "s + p"]>) -> tensor<?x?x4x2xf32, ["b", "s"]>
    %f = "op.reshape"(%a) {side = "cloud"} : (tensor<?x?x4x2xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %o = "op.linear"(%f, %wo, %x) {operand_mask = "1101", side = "cloud"} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %n = "op.norm"(%o, %wn) {epsilon = 1.0e-05 : f64, side = "cloud", type = "rms"} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %m = "op.map"(%n, %o) {fn = "add", side = "cloud"} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    "comm.send"(%m) {from = "cloud", tag = 1 : i64, to = "device"} : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
    %r = "comm.recv"() {from = "cloud", tag = 1 : i64, to = "device"} : () -> tensor<?x?x8xf32, ["b", "s"]>
    "llmpart.return"(%r) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {communicating = true, sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
