// RUN: llmpart opt %s -p insert-comm --verify-each | FileCheck %s
// RUN: llmpart opt %s -p insert-comm,insert-comm | FileCheck %s
// RUN: llmpart opt %s -p insert-comm | mlir-opt --allow-unregistered-dialect -o /dev/null
// A value crosses once for any number of readers; operators of both sides are copied to each; turns are maximal.

// CHECK: ^bb0(%[[T:.*]]: tensor<?xi64, ["s"]>):
// CHECK: %[[TABLE:.*]] = "llmpart.weight"
// The device's turn: everything that it can do.
// CHECK-NEXT: %[[E:.*]] = "op.gather"(%[[TABLE]], %[[T]]) {{.*}}side = "device"
// CHECK-NEXT: %[[DP:.*]] = "op.iota"() {{.*}}side = "device"
// CHECK-NEXT: %[[DR:.*]] = "op.gather"(%[[TABLE]], %[[DP]]) {{.*}}side = "device"
// CHECK-NEXT: %[[A:.*]] = "op.map"(%[[E]], %[[DR]]) {{.*}}name = "a"
// CHECK-NEXT: "comm.send"(%[[A]]) {from = "device", name = "a", tag = 0 : i64, to = "cloud"}
// CHECK-NEXT: %[[RA:.*]] = "comm.recv"() {from = "device", name = "a", tag = 0 : i64, to = "cloud"}
// CHECK-NEXT: %[[CP:.*]] = "op.iota"() {{.*}}side = "cloud"
// CHECK-NEXT: %[[CR:.*]] = "op.gather"(%[[TABLE]], %[[CP]]) {{.*}}side = "cloud"
// CHECK-NEXT: %[[B:.*]] = "op.map"(%[[RA]], %[[CR]]) {{.*}}name = "b"
// CHECK-NEXT: %[[C:.*]] = "op.map"(%[[RA]], %[[B]]) {{.*}}name = "c"
// CHECK-NEXT: "comm.send"(%[[C]]) {from = "cloud", name = "c", tag = 1 : i64, to = "device"}
// CHECK-NEXT: %[[RC:.*]] = "comm.recv"() {from = "cloud", name = "c", tag = 1 : i64, to = "device"}
// CHECK-NEXT: %[[D:.*]] = "op.map"(%[[RC]], %[[A]]) {{.*}}name = "d"
// CHECK-NEXT: "llmpart.return"(%[[D]])
// CHECK: communicating = true

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%t: tensor<?xi64, ["s"]>):
    %table = "llmpart.weight"() {file = "w", length = 128 : i64, offset = 0 : i64} : () -> tensor<8x4xf32>
    %p = "op.iota"() {name = "positions", side = "both", start = #llmpart.poly<"p">, step = #llmpart.poly<"1">} : () -> tensor<?xi64, ["s"]>
    %r = "op.gather"(%table, %p) {axis = 0 : i64, name = "rows", side = "both"} : (tensor<8x4xf32>, tensor<?xi64, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %e = "op.gather"(%table, %t) {axis = 0 : i64, name = "e", side = "device"} : (tensor<8x4xf32>, tensor<?xi64, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %a = "op.map"(%e, %r) {fn = "add", name = "a", side = "device"} : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %b = "op.map"(%a, %r) {fn = "mul", name = "b", side = "cloud"} : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %c = "op.map"(%a, %b) {fn = "add", name = "c", side = "cloud"} : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %d = "op.map"(%c, %a) {fn = "add", name = "d", side = "device"} : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%d) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "prefill"} : () -> ()
  "llmpart.func"() ({
  ^bb0(%t: tensor<?xi64, ["s"]>):
    "llmpart.return"(%t) : (tensor<?xi64, ["s"]>) -> ()
  }) {sym_name = "decode"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
