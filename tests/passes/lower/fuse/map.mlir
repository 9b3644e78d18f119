// RUN: llmpart opt %s -p fuse --verify-each | FileCheck %s
// RUN: llmpart opt %s -p fuse | mlir-opt --allow-unregistered-dialect -o /dev/null
// A tree of elementwise operators is one loop; operators that read only positions are not mixed with those that read inputs.

"builtin.module"() ({
  // CHECK: ^bb0(%[[X:.*]]: tensor<?x4xf32, ["s"]>, %[[Y:.*]]: tensor<?x4xf32, ["s"]>):
  // CHECK-NEXT: %[[F:.*]] = "op.fused"(%[[X]], %[[Y]]) ({
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<?x4xf32, ["s"]>, %[[B:.*]]: tensor<?x4xf32, ["s"]>):
  // CHECK-NEXT: %[[E:.*]] = "op.map"(%[[A]]) {fn = "exp"}
  // CHECK-NEXT: %[[T:.*]] = "op.map"(%[[B]]) {fn = "tanh"}
  // CHECK-NEXT: %[[M:.*]] = "op.map"(%[[E]], %[[T]]) {fn = "mul"}
  // CHECK-NEXT: "llmpart.yield"(%[[M]])
  // CHECK-NEXT: })
  // CHECK-NEXT: "llmpart.return"(%[[F]])
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>, %y: tensor<?x4xf32, ["s"]>):
    %e = "op.map"(%x) {fn = "exp"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %t = "op.map"(%y) {fn = "tanh"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %m = "op.map"(%e, %t) {fn = "mul"} : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%m) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "tree"} : () -> ()

  // CHECK: "op.iota"
  // CHECK-NEXT: "op.map"{{.*}}fn = "neg"
  // CHECK-NEXT: "op.map"{{.*}}fn = "add"
  "llmpart.func"() ({
  ^bb0(%x: tensor<?xi64, ["s"]>):
    %i = "op.iota"() {start = #llmpart.poly<"p">, step = #llmpart.poly<"1">} : () -> tensor<?xi64, ["s"]>
    %n = "op.map"(%i) {fn = "neg"} : (tensor<?xi64, ["s"]>) -> tensor<?xi64, ["s"]>
    %a = "op.map"(%n, %x) {fn = "add"} : (tensor<?xi64, ["s"]>, tensor<?xi64, ["s"]>) -> tensor<?xi64, ["s"]>
    "llmpart.return"(%a) : (tensor<?xi64, ["s"]>) -> ()
  }) {sym_name = "positions"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
