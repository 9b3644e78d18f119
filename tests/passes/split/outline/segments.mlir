// RUN: llmpart opt %s -p plan-memory,outline --verify-each | FileCheck %s
// RUN: llmpart opt %s -p 'plan-memory,outline{profile=true}' --verify-each | FileCheck %s --check-prefixes=CHECK,PROFILE
// Each side's runs between communications are numbered from 0; constants belong to none.

// CHECK-NOT: "llmpart.weight"{{.*}}segment
// CHECK: name = "a"{{.*}}segment = 0{{.*}}side = "device"
// CHECK: name = "b"{{.*}}segment = 0{{.*}}side = "device"
// CHECK: name = "c"{{.*}}segment = 0{{.*}}side = "cloud"
// CHECK: name = "d"{{.*}}segment = 1{{.*}}side = "device"

// PROFILE: profiled = true

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    %w = "llmpart.weight"() {file = "w", length = 16 : i64, offset = 0 : i64} : () -> tensor<4xf32>
    %a = "op.map"(%x, %w) {fn = "mul", name = "a", side = "device"} : (tensor<?x4xf32, ["s"]>, tensor<4xf32>) -> tensor<?x4xf32, ["s"]>
    %b = "op.map"(%a) {fn = "neg", name = "b", side = "device"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    "comm.send"(%b) {from = "device", tag = 0 : i64, to = "cloud"} : (tensor<?x4xf32, ["s"]>) -> ()
    %r = "comm.recv"() {from = "device", tag = 0 : i64, to = "cloud"} : () -> tensor<?x4xf32, ["s"]>
    %c = "op.map"(%r) {fn = "exp", name = "c", side = "cloud"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    "comm.send"(%c) {from = "cloud", tag = 1 : i64, to = "device"} : (tensor<?x4xf32, ["s"]>) -> ()
    %q = "comm.recv"() {from = "cloud", tag = 1 : i64, to = "device"} : () -> tensor<?x4xf32, ["s"]>
    %d = "op.map"(%q, %a) {fn = "add", name = "d", side = "device"} : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%d) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {communicating = true, sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
