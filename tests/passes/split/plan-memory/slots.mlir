// RUN: llmpart opt %s -p plan-memory --verify-each | FileCheck %s
// Buffers are numbered from 0 on each side. %b takes the slot of %x, which is dead when %b is made, and %c that of %a;
// no operator writes over what it reads. A reshape has its operand's buffer; what is received has one where it arrives.

// CHECK: "op.map"{{.*}}buffer = array<i64: 1>{{.*}}name = "a"
// CHECK: "op.map"{{.*}}buffer = array<i64: 2>{{.*}}name = "b"
// CHECK: "op.reshape"{{.*}}buffer = array<i64: 2>
// CHECK: "op.map"{{.*}}buffer = array<i64: 3>{{.*}}name = "c"
// CHECK: "comm.send"
// CHECK: "comm.recv"() {buffer = array<i64: 0>
// CHECK: "op.map"{{.*}}buffer = array<i64: 1>{{.*}}name = "d"
// CHECK: arg_buffer_cloud = array<i64: -1, -1>, arg_buffer_device = array<i64: 0, -1>
// CHECK-SAME: slot_cloud = array<i64: 0, 1>, slot_device = array<i64: 0, 1, 0, 1>

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>, %unused: tensor<?xi64, ["s"]>):
    %a = "op.map"(%x) {fn = "exp", name = "a", side = "device"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %b = "op.map"(%a) {fn = "neg", name = "b", side = "device"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %v = "op.reshape"(%b) {name = "view", side = "device"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4x1xf32, ["s"]>
    %c = "op.map"(%v) {fn = "exp", name = "c", side = "device"} : (tensor<?x4x1xf32, ["s"]>) -> tensor<?x4x1xf32, ["s"]>
    "comm.send"(%c) {from = "device", tag = 0 : i64, to = "cloud"} : (tensor<?x4x1xf32, ["s"]>) -> ()
    %r = "comm.recv"() {from = "device", tag = 0 : i64, to = "cloud"} : () -> tensor<?x4x1xf32, ["s"]>
    %d = "op.map"(%r) {fn = "neg", name = "d", side = "cloud"} : (tensor<?x4x1xf32, ["s"]>) -> tensor<?x4x1xf32, ["s"]>
    "llmpart.return"(%d) : (tensor<?x4x1xf32, ["s"]>) -> ()
  }) {communicating = true, sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
