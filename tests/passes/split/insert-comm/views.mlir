// RUN: llmpart opt %s -p insert-comm --split-input-file | FileCheck %s
// A view has no code, so it goes where its operand's memory is: no side receives a value only to send it back. Where only
// the other side reads a view it stays there, and its operand crosses once for all views.

// CHECK: sym_name = "decode"
// CHECK: ^bb0(%[[X:.*]]: tensor<?x4xf32, ["s"]>):
// CHECK-NEXT: %[[A:.*]] = "op.map"(%[[X]]) {{.*}}side = "device"
// CHECK-NEXT: %[[V:.*]] = "op.reshape"(%[[A]]) {{.*}}side = "device"
// CHECK-NEXT: %[[W:.*]] = "op.reshape"(%[[V]]) {{.*}}side = "device"
// CHECK-NEXT: %[[B:.*]] = "op.map"(%[[W]]) {{.*}}side = "device"
// CHECK-NEXT: "comm.send"(%[[B]])
// CHECK-NEXT: %[[R:.*]] = "comm.recv"()
// CHECK-NEXT: %[[U:.*]] = "op.reshape"(%[[R]]) {{.*}}side = "cloud"
// CHECK-NEXT: %[[C:.*]] = "op.map"(%[[U]], %[[U]]) {{.*}}side = "cloud"
// CHECK-NEXT: "llmpart.return"(%[[C]])
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    "llmpart.return"(%x) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "decode"} : () -> ()
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    %a = "op.map"(%x) {fn = "exp", side = "device"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %v = "op.reshape"(%a) {side = "cloud"} : (tensor<?x4xf32, ["s"]>) -> tensor<?xf32, ["4*s"]>
    %w = "op.reshape"(%v) {side = "cloud"} : (tensor<?xf32, ["4*s"]>) -> tensor<?x2xf32, ["2*s"]>
    %b = "op.map"(%w) {fn = "exp", side = "device"} : (tensor<?x2xf32, ["2*s"]>) -> tensor<?x2xf32, ["2*s"]>
    %u = "op.reshape"(%b) {side = "cloud"} : (tensor<?x2xf32, ["2*s"]>) -> tensor<?x4xf32, ["s"]>
    %c = "op.map"(%u, %u) {fn = "add", side = "cloud"} : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%c) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----

// Only the caller reads the view, so it stays on its operand's side.
// CHECK: ^bb0(%[[X:.*]]: tensor<?x4xf32, ["s"]>):
// CHECK-NEXT: %[[A:.*]] = "op.map"(%[[X]]) {{.*}}side = "device"
// CHECK-NEXT: %[[V:.*]] = "op.reshape"(%[[A]]) {{.*}}side = "device"
// CHECK-NEXT: "llmpart.return"(%[[V]])
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    %a = "op.map"(%x) {fn = "exp", side = "device"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %v = "op.reshape"(%a) {side = "cloud"} : (tensor<?x4xf32, ["s"]>) -> tensor<?xf32, ["4*s"]>
    "llmpart.return"(%v) : (tensor<?xf32, ["4*s"]>) -> ()
  }) {sym_name = "prefill"} : () -> ()
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    "llmpart.return"(%x) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "decode"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
