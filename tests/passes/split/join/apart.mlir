// RUN: llmpart opt %s -p 'join{place=cloud}' --verify-each | FileCheck %s
// What must not join, or not yet: %q and %k join, and so do the rotations of both and the appends of both caches.

// CHECK: "op.linear"{{.*}}join = 0 : i64{{.*}}name = "q"
// CHECK-NEXT: "llmpart.weight"
// CHECK-NEXT: "op.linear"{{.*}}join = 0 : i64{{.*}}name = "k"
// CHECK-NOT: join =
// CHECK: name = "of_another_operand"
// CHECK-NOT: join =
// CHECK: name = "with_an_epilogue"
// CHECK-NOT: join =
// CHECK: name = "of_another_type"
// CHECK-NOT: join =
// CHECK: name = "with_a_residual"
// CHECK: "op.rotary"{{.*}}join = 1 : i64{{.*}}name = "q_turned"
// CHECK-NEXT: name = "k_heads"
// CHECK-NEXT: "op.rotary"{{.*}}join = 1 : i64{{.*}}name = "k_turned"
// CHECK-NOT: join =
// CHECK: name = "of_a_member"
// CHECK-NOT: join =
// CHECK: name = "doubled"
// CHECK-NOT: join =
// CHECK: name = "of_what_reads_a_member"
// CHECK: "op.kv_append"{{.*}}join = 2 : i64{{.*}}name = "k_cache"
// CHECK-NEXT: "op.kv_append"{{.*}}join = 2 : i64{{.*}}name = "v_cache"
// CHECK-NOT: join =
// CHECK: name = "to_the_same_cache"
// CHECK: "comm.send"
// CHECK-NOT: join =
// CHECK: name = "after_a_message"
// CHECK-NOT: join =
// CHECK: llmpart.return

"builtin.module"() ({
  "llmpart.state"() {append_axis = 2 : i64, dtype = "f32", index = 0 : i64, name = "k", shape = #llmpart.polys<"1, 2, c, 16">} : () -> ()
  "llmpart.state"() {append_axis = 2 : i64, dtype = "f32", index = 1 : i64, name = "v", shape = #llmpart.polys<"1, 2, c, 16">} : () -> ()
  "llmpart.func"() ({
  ^bb0(%none: tensor<?xi64, ["s"]>):
    %x = "comm.recv"() {from = "device", tag = 0 : i64, to = "cloud"} : () -> tensor<1x?x32xf32, ["s"]>
    %y = "comm.recv"() {from = "device", tag = 1 : i64, to = "cloud"} : () -> tensor<1x?x32xf32, ["s"]>
    %cos = "comm.recv"() {from = "device", tag = 2 : i64, to = "cloud"} : () -> tensor<1x?x8xf32, ["s"]>
    %w = "llmpart.weight"() {file = "w", length = 4096 : i64, offset = 0 : i64} : () -> tensor<32x32xf32>
    %q = "op.linear"(%x, %w) {name = "q", side = "cloud", transpose_b = true} : (tensor<1x?x32xf32, ["s"]>, tensor<32x32xf32>) -> tensor<1x?x32xf32, ["s"]>
    %other = "op.linear"(%y, %w) {name = "of_another_operand", side = "cloud", transpose_b = true} : (tensor<1x?x32xf32, ["s"]>, tensor<32x32xf32>) -> tensor<1x?x32xf32, ["s"]>
    %relu = "op.linear"(%x, %w) {epilogue = "relu", name = "with_an_epilogue", side = "cloud", transpose_b = true} : (tensor<1x?x32xf32, ["s"]>, tensor<32x32xf32>) -> tensor<1x?x32xf32, ["s"]>
    %w16 = "llmpart.weight"() {file = "w", length = 2048 : i64, offset = 8192 : i64} : () -> tensor<32x32xf16>
    %half = "op.linear"(%x, %w16) {name = "of_another_type", side = "cloud", transpose_b = true} : (tensor<1x?x32xf32, ["s"]>, tensor<32x32xf16>) -> tensor<1x?x32xf32, ["s"]>
    %sum = "op.linear"(%x, %w, %y) {name = "with_a_residual", operand_mask = "1101", side = "cloud", transpose_b = true} : (tensor<1x?x32xf32, ["s"]>, tensor<32x32xf32>, tensor<1x?x32xf32, ["s"]>) -> tensor<1x?x32xf32, ["s"]>
    %wk = "llmpart.weight"() {file = "w", length = 4096 : i64, offset = 4096 : i64} : () -> tensor<32x32xf32>
    %k = "op.linear"(%x, %wk) {name = "k", side = "cloud", transpose_b = true} : (tensor<1x?x32xf32, ["s"]>, tensor<32x32xf32>) -> tensor<1x?x32xf32, ["s"]>
    %qh = "op.reshape"(%q) {name = "q_heads", side = "cloud"} : (tensor<1x?x32xf32, ["s"]>) -> tensor<1x?x2x16xf32, ["s"]>
    %qt = "op.rotary"(%qh, %cos, %cos) {layout = "bshd", name = "q_turned", rotary_dim = 16 : i64, side = "cloud"} : (tensor<1x?x2x16xf32, ["s"]>, tensor<1x?x8xf32, ["s"]>, tensor<1x?x8xf32, ["s"]>) -> tensor<1x?x2x16xf32, ["s"]>
    %kh = "op.reshape"(%k) {name = "k_heads", side = "cloud"} : (tensor<1x?x32xf32, ["s"]>) -> tensor<1x?x2x16xf32, ["s"]>
    %kt = "op.rotary"(%kh, %cos, %cos) {layout = "bshd", name = "k_turned", rotary_dim = 16 : i64, side = "cloud"} : (tensor<1x?x2x16xf32, ["s"]>, tensor<1x?x8xf32, ["s"]>, tensor<1x?x8xf32, ["s"]>) -> tensor<1x?x2x16xf32, ["s"]>
    %late = "op.rotary"(%qt, %cos, %cos) {layout = "bshd", name = "of_a_member", rotary_dim = 16 : i64, side = "cloud"} : (tensor<1x?x2x16xf32, ["s"]>, tensor<1x?x8xf32, ["s"]>, tensor<1x?x8xf32, ["s"]>) -> tensor<1x?x2x16xf32, ["s"]>
    %twice = "op.map"(%qt, %qt) {fn = "add", name = "doubled", side = "cloud"} : (tensor<1x?x2x16xf32, ["s"]>, tensor<1x?x2x16xf32, ["s"]>) -> tensor<1x?x2x16xf32, ["s"]>
    %later = "op.rotary"(%twice, %cos, %cos) {layout = "bshd", name = "of_what_reads_a_member", rotary_dim = 16 : i64, side = "cloud"} : (tensor<1x?x2x16xf32, ["s"]>, tensor<1x?x8xf32, ["s"]>, tensor<1x?x8xf32, ["s"]>) -> tensor<1x?x2x16xf32, ["s"]>
    %kc = "op.kv_append"(%kt) {layout = "bshd", name = "k_cache", side = "cloud", state = 0 : i64} : (tensor<1x?x2x16xf32, ["s"]>) -> tensor<1x2x?x16xf32, ["p + s"]>
    %vc = "op.kv_append"(%late) {layout = "bshd", name = "v_cache", side = "cloud", state = 1 : i64} : (tensor<1x?x2x16xf32, ["s"]>) -> tensor<1x2x?x16xf32, ["p + s"]>
    %again = "op.kv_append"(%later) {layout = "bshd", name = "to_the_same_cache", side = "cloud", state = 0 : i64} : (tensor<1x?x2x16xf32, ["s"]>) -> tensor<1x2x?x16xf32, ["p + s"]>
    "comm.send"(%sum) {from = "cloud", tag = 3 : i64, to = "device"} : (tensor<1x?x32xf32, ["s"]>) -> ()
    %after = "op.linear"(%x, %wk) {name = "after_a_message", side = "cloud", transpose_b = true} : (tensor<1x?x32xf32, ["s"]>, tensor<32x32xf32>) -> tensor<1x?x32xf32, ["s"]>
    %back = "comm.recv"() {from = "cloud", tag = 3 : i64, to = "device"} : () -> tensor<1x?x32xf32, ["s"]>
    "llmpart.return"(%back) : (tensor<1x?x32xf32, ["s"]>) -> ()
  }) {communicating = true, sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
