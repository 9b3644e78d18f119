// RUN: llmpart opt %s -p insert-comm --verify-each | FileCheck %s
// RUN: llmpart opt %s -p insert-comm,plan-memory,outline --verify-each | FileCheck %s --check-prefix=MEMORY
// RUN: llmpart opt %s -p insert-comm,plan-memory,outline | mlir-opt --allow-unregistered-dialect -o /dev/null
// A value goes straight from the place that makes it to each place that reads it, once to each. Within a turn the
// places follow each other by number, each with its messages after its operators.

// CHECK: %[[A:.*]] = "op.map"(%{{.*}}) {{.*}}name = "a"{{.*}}side = "phone"
// CHECK-NEXT: "comm.send"(%[[A]]) {from = "phone", name = "a", tag = 0 : i64, to = "edge.1"}
// CHECK-NEXT: %[[A1:.*]] = "comm.recv"() {from = "phone", name = "a", tag = 0 : i64, to = "edge.1"}
// CHECK-NEXT: "comm.send"(%[[A]]) {from = "phone", name = "a", tag = 1 : i64, to = "server"}
// CHECK-NEXT: %[[A3:.*]] = "comm.recv"() {from = "phone", name = "a", tag = 1 : i64, to = "server"}
// CHECK-NEXT: %[[B:.*]] = "op.map"(%[[A1]]) {{.*}}name = "b"{{.*}}side = "edge.1"
// CHECK-NEXT: "comm.send"(%[[B]]) {from = "edge.1", name = "b", tag = 2 : i64, to = "server"}
// CHECK-NEXT: %[[B3:.*]] = "comm.recv"() {from = "edge.1", name = "b", tag = 2 : i64, to = "server"}
// CHECK-NEXT: %[[C:.*]] = "op.map"(%[[A3]]) {{.*}}name = "c"{{.*}}side = "server"
// CHECK-NEXT: "comm.send"(%[[C]]) {from = "server", name = "c", tag = 3 : i64, to = "phone"}
// CHECK-NEXT: %[[C0:.*]] = "comm.recv"()
// CHECK-NEXT: %[[E:.*]] = "op.map"(%[[C0]], %[[A]]) {{.*}}name = "e"{{.*}}side = "phone"
// CHECK-NEXT: %[[D:.*]] = "op.map"(%[[B3]], %[[A3]]) {{.*}}name = "d"{{.*}}side = "server"
// CHECK-NEXT: "llmpart.return"(%[[E]], %[[D]])
// MEMORY: arg_buffer.edge.1 = array<i64: -1>, arg_buffer.edge.2 = array<i64: -1>, arg_buffer.phone = array<i64: 0>, arg_buffer.server = array<i64: -1>
// MEMORY-SAME: slot.edge.1 = array<i64: 0, 1>, slot.edge.2 = array<i64>, slot.phone = array<i64: {{.*}}>, slot.server

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    %a = "op.map"(%x) {fn = "exp", name = "a", side = "phone"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %c = "op.map"(%a) {fn = "exp", name = "c", side = "server"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %b = "op.map"(%a) {fn = "exp", name = "b", side = "edge.1"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %d = "op.map"(%b, %a) {fn = "add", name = "d", side = "server"} : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %e = "op.map"(%c, %a) {fn = "add", name = "e", side = "phone"} : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%e, %d) : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> ()
  }) {places = ["phone", "edge.1", "edge.2", "server"], sym_name = "prefill"} : () -> ()
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    "llmpart.return"(%x) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {places = ["phone", "edge.1", "edge.2", "server"], sym_name = "decode"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
