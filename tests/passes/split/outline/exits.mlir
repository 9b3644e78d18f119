// RUN: llmpart opt %s -p plan-memory,outline --verify-each | FileCheck %s
// Operators that only one exit needs are a segment of their own; those that others need too are not in it.

// CHECK: name = "stream"{{.*}}segment = 0
// CHECK: exit = 0 : i64{{.*}}name = "early"{{.*}}segment = 1
// CHECK-NOT: exit = {{.*}}name = "rest"
// CHECK: name = "rest"{{.*}}segment = 2
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    %a = "op.map"(%x) {fn = "neg", name = "stream", side = "device"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %e = "op.map"(%a) {fn = "exp", name = "early", side = "device"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %b = "op.map"(%a) {fn = "abs", name = "rest", side = "device"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%b, %e) : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> ()
  }) {communicating = true, exits = array<i64: 1>, output_roles = ["logits", "exit_logits"], outputs = ["y", "e"], sym_name = "prefill"} : () -> ()
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    "llmpart.return"(%x) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {communicating = true, sym_name = "decode"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
