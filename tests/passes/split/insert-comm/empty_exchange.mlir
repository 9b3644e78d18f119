// RUN: llmpart opt %s --verify-diagnostics
// A side that answers must have computed something since it received; a view is no computation.

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>):
    "comm.send"(%x) {from = "device", tag = 0 : i64, to = "cloud"} : (tensor<?x4xf32, ["s"]>) -> ()
    %r = "comm.recv"() {from = "device", tag = 0 : i64, to = "cloud"} : () -> tensor<?x4xf32, ["s"]>
    %a = "op.map"(%r) {fn = "exp", side = "cloud"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    "comm.send"(%a) {from = "cloud", tag = 1 : i64, to = "device"} : (tensor<?x4xf32, ["s"]>) -> ()
    %b = "comm.recv"() {from = "cloud", tag = 1 : i64, to = "device"} : () -> tensor<?x4xf32, ["s"]>
    %v = "op.reshape"(%b) {side = "device"} : (tensor<?x4xf32, ["s"]>) -> tensor<?xf32, ["4*s"]>
    // expected-error@+1 {{'comm.send': an empty exchange: the side that sends has computed nothing since it received}}
    "comm.send"(%v) {from = "device", tag = 2 : i64, to = "cloud"} : (tensor<?xf32, ["4*s"]>) -> ()
    %c = "comm.recv"() {from = "device", tag = 2 : i64, to = "cloud"} : () -> tensor<?xf32, ["4*s"]>
    %d = "op.map"(%c) {fn = "exp", side = "cloud"} : (tensor<?xf32, ["4*s"]>) -> tensor<?xf32, ["4*s"]>
    "llmpart.return"(%d) : (tensor<?xf32, ["4*s"]>) -> ()
  }) {communicating = true, sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
