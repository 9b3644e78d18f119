// RUN: llmpart opt %s -p insert-comm --verify-each | FileCheck %s
// The stages keep the cache on different sides: its rows move when prefill is done. The token input goes up.

// CHECK: ^bb0(%[[X:.*]]: tensor<?x2x?x4xf32, ["b", "s"]>):
// CHECK-NEXT: "comm.send"(%[[X]]) {from = "device", tag = 0 : i64, to = "cloud"}
// CHECK-NEXT: %[[R:.*]] = "comm.recv"
// CHECK-NEXT: %[[K:.*]] = "op.kv_append"(%[[R]])
// CHECK-NEXT: %[[Y:.*]] = "op.attention"(%[[R]], %[[K]], %[[K]])
// CHECK-NEXT: "comm.kv_move"() {dtype = "f32", from = "cloud", shape = #llmpart.polys<"b, 2, s + p, 4">, state = 0 : i64, to = "device"}
// CHECK-NEXT: "llmpart.return"(%[[Y]])
// CHECK: sym_name = "prefill"
// CHECK-NOT: comm.
// CHECK: sym_name = "decode"

"builtin.module"() ({
  "llmpart.state"() {append_axis = 2 : i64, dtype = "f32", index = 0 : i64, name = "kv", shape = #llmpart.polys<"b, 2, c, 4">} : () -> ()
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x2x?x4xf32, ["b", "s"]>):
    %k = "op.kv_append"(%x) {layout = "bhsd", side = "cloud", state = 0 : i64} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s + p"]>
    %y = "op.attention"(%x, %k, %k) {head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 5.0e-01 : f64, side = "cloud"} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {sym_name = "prefill"} : () -> ()
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x2x?x4xf32, ["b", "s"]>):
    %k = "op.kv_append"(%x) {layout = "bhsd", side = "device", state = 0 : i64} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s + p"]>
    %y = "op.attention"(%x, %k, %k) {head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 5.0e-01 : f64, side = "device"} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {sym_name = "decode"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
