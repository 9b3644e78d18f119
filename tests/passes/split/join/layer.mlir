// RUN: llmpart opt %s -p 'join{place=cloud}' --verify-each | FileCheck %s
// RUN: llmpart opt %s -p 'join{place=cloud}' --verify-each | mlir-opt --allow-unregistered-dialect -o /dev/null
// RUN: llmpart opt %s -p 'join{place=cloud},plan-memory' --verify-each | FileCheck %s --check-prefix=SLOTS
// RUN: llmpart opt %s -p 'join{place=device}' --verify-each | FileCheck %s --check-prefix=DEVICE
// RUN: llmpart opt %s -p join --verify-each | FileCheck %s --check-prefix=DEVICE
// The products of %x, the rotations and the appends of the cloud join; their weights and views move with them. %late reads
// a rotation, and %sum has a residual: neither joins. The product of the device stays where it is.

// CHECK: "op.linear"{{.*}}join = 0 : i64{{.*}}name = "q"
// CHECK-NEXT: "llmpart.weight"
// CHECK-NEXT: "op.linear"{{.*}}join = 0 : i64{{.*}}name = "k"
// CHECK-NEXT: "llmpart.weight"
// CHECK-NEXT: "op.linear"{{.*}}join = 0 : i64{{.*}}name = "v"
// CHECK-NEXT: name = "q_heads"
// CHECK-NEXT: "op.rotary"{{.*}}join = 1 : i64{{.*}}name = "q_turned"
// CHECK-NEXT: name = "k_heads"
// CHECK-NEXT: "op.rotary"{{.*}}join = 1 : i64{{.*}}name = "k_turned"
// CHECK-NOT: join = 1
// CHECK: name = "late"
// CHECK: "op.kv_append"{{.*}}join = 2 : i64{{.*}}name = "k_cache"
// CHECK-NEXT: name = "v_heads"
// CHECK-NEXT: "op.kv_append"{{.*}}join = 2 : i64{{.*}}name = "v_cache"
// CHECK: "op.linear"
// CHECK-NOT: join =
// CHECK: llmpart.return

// What one rotation reads lives until the other one has ended: their results do not lie where %q and %k are.
// SLOTS: "op.linear"{{.*}}buffer = array<i64: 2>{{.*}}name = "q"
// SLOTS: "op.linear"{{.*}}buffer = array<i64: 3>{{.*}}name = "k"
// SLOTS: "op.linear"{{.*}}buffer = array<i64: 4>{{.*}}name = "v"
// SLOTS: "op.rotary"{{.*}}buffer = array<i64: 5>{{.*}}name = "q_turned"
// SLOTS: "op.rotary"{{.*}}buffer = array<i64: 6>{{.*}}name = "k_turned"
// SLOTS: slot_cloud = array<i64: 0, 1, 2, 3, 4, 5, 6, 2, 3>

// DEVICE-NOT: join =

"builtin.module"() ({
  "llmpart.state"() {append_axis = 2 : i64, dtype = "f32", index = 0 : i64, name = "k", shape = #llmpart.polys<"1, 2, c, 16">} : () -> ()
  "llmpart.state"() {append_axis = 2 : i64, dtype = "f32", index = 1 : i64, name = "v", shape = #llmpart.polys<"1, 2, c, 16">} : () -> ()
  "llmpart.func"() ({
  ^bb0(%none: tensor<?xi64, ["s"]>):
    %x = "comm.recv"() {from = "device", tag = 0 : i64, to = "cloud"} : () -> tensor<1x?x32xf32, ["s"]>
    %cos = "comm.recv"() {from = "device", tag = 1 : i64, to = "cloud"} : () -> tensor<1x?x8xf32, ["s"]>
    %wq = "llmpart.weight"() {file = "w", length = 4096 : i64, offset = 0 : i64} : () -> tensor<32x32xf32>
    %q = "op.linear"(%x, %wq) {name = "q", side = "cloud", transpose_b = true} : (tensor<1x?x32xf32, ["s"]>, tensor<32x32xf32>) -> tensor<1x?x32xf32, ["s"]>
    %qh = "op.reshape"(%q) {name = "q_heads", side = "cloud"} : (tensor<1x?x32xf32, ["s"]>) -> tensor<1x?x2x16xf32, ["s"]>
    %qt = "op.rotary"(%qh, %cos, %cos) {layout = "bshd", name = "q_turned", rotary_dim = 16 : i64, side = "cloud"} : (tensor<1x?x2x16xf32, ["s"]>, tensor<1x?x8xf32, ["s"]>, tensor<1x?x8xf32, ["s"]>) -> tensor<1x?x2x16xf32, ["s"]>
    %late = "op.rotary"(%qt, %cos, %cos) {layout = "bshd", name = "late", rotary_dim = 16 : i64, side = "cloud"} : (tensor<1x?x2x16xf32, ["s"]>, tensor<1x?x8xf32, ["s"]>, tensor<1x?x8xf32, ["s"]>) -> tensor<1x?x2x16xf32, ["s"]>
    %wk = "llmpart.weight"() {file = "w", length = 4096 : i64, offset = 4096 : i64} : () -> tensor<32x32xf32>
    %k = "op.linear"(%x, %wk) {name = "k", side = "cloud", transpose_b = true} : (tensor<1x?x32xf32, ["s"]>, tensor<32x32xf32>) -> tensor<1x?x32xf32, ["s"]>
    %kh = "op.reshape"(%k) {name = "k_heads", side = "cloud"} : (tensor<1x?x32xf32, ["s"]>) -> tensor<1x?x2x16xf32, ["s"]>
    %kt = "op.rotary"(%kh, %cos, %cos) {layout = "bshd", name = "k_turned", rotary_dim = 16 : i64, side = "cloud"} : (tensor<1x?x2x16xf32, ["s"]>, tensor<1x?x8xf32, ["s"]>, tensor<1x?x8xf32, ["s"]>) -> tensor<1x?x2x16xf32, ["s"]>
    %kc = "op.kv_append"(%kt) {layout = "bshd", name = "k_cache", side = "cloud", state = 0 : i64} : (tensor<1x?x2x16xf32, ["s"]>) -> tensor<1x2x?x16xf32, ["p + s"]>
    %wv = "llmpart.weight"() {file = "w", length = 4096 : i64, offset = 8192 : i64} : () -> tensor<32x32xf32>
    %v = "op.linear"(%x, %wv) {name = "v", side = "cloud", transpose_b = true} : (tensor<1x?x32xf32, ["s"]>, tensor<32x32xf32>) -> tensor<1x?x32xf32, ["s"]>
    %vh = "op.reshape"(%v) {name = "v_heads", side = "cloud"} : (tensor<1x?x32xf32, ["s"]>) -> tensor<1x?x2x16xf32, ["s"]>
    %vc = "op.kv_append"(%vh) {layout = "bshd", name = "v_cache", side = "cloud", state = 1 : i64} : (tensor<1x?x2x16xf32, ["s"]>) -> tensor<1x2x?x16xf32, ["p + s"]>
    %sum = "op.linear"(%x, %wv, %v) {name = "residual", operand_mask = "1101", side = "cloud", transpose_b = true} : (tensor<1x?x32xf32, ["s"]>, tensor<32x32xf32>, tensor<1x?x32xf32, ["s"]>) -> tensor<1x?x32xf32, ["s"]>
    "comm.send"(%sum) {from = "cloud", tag = 2 : i64, to = "device"} : (tensor<1x?x32xf32, ["s"]>) -> ()
    %back = "comm.recv"() {from = "cloud", tag = 2 : i64, to = "device"} : () -> tensor<1x?x32xf32, ["s"]>
    %own = "op.linear"(%back, %wq) {name = "own", side = "device", transpose_b = true} : (tensor<1x?x32xf32, ["s"]>, tensor<32x32xf32>) -> tensor<1x?x32xf32, ["s"]>
    "llmpart.return"(%own) : (tensor<1x?x32xf32, ["s"]>) -> ()
  }) {communicating = true, sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
