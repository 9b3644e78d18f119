// RUN: not llmpart opt %s --split-input-file --verify-diagnostics 2>%t
// RUN: FileCheck %s < %t
// The messages of --verify-diagnostics itself when expectation and message differ.

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?xf32, ["s"]>):
    %y = "op.map"(%x) {fn = "exp", nonsense = 1 : i64} : (tensor<?xf32, ["s"]>) -> tensor<?xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?xf32, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// CHECK: expected.mlir:8:{{[0-9]+}}: error: unexpected: 'op.map' has no attribute 'nonsense'

// -----

// expected-error@+1 {{what never comes}}
"builtin.module"() ({
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// CHECK: expected.mlir:16:1: error: expected 'what never comes' was not reported
