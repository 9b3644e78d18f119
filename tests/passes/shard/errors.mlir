// RUN: llmpart opt %s -p 'shard{ranks=2}' --split-input-file --verify-diagnostics

// expected-error@+1 {{the model names a size 'rank', which sharded halves use}}
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%t: tensor<?xf32, ["rank"]>):
    %a = "op.map"(%t) {fn = "exp", side = "device"} : (tensor<?xf32, ["rank"]>) -> tensor<?xf32, ["rank"]>
    "llmpart.return"(%a) : (tensor<?xf32, ["rank"]>) -> ()
  }) {communicating = true, sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t", "rank"]} : () -> ()

// -----

"builtin.module"() ({
  // expected-error@+1 {{a half with early exits cannot be divided among 2 ranks}}
  "llmpart.func"() ({
  ^bb0(%t: tensor<?xf32, ["s"]>):
    %a = "op.map"(%t) {fn = "exp", side = "device"} : (tensor<?xf32, ["s"]>) -> tensor<?xf32, ["s"]>
    "llmpart.return"(%a) : (tensor<?xf32, ["s"]>) -> ()
  }) {communicating = true, exits = array<i64: 1>, sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%t: tensor<?x3xf32, ["s"]>):
    // expected-error@+1 {{'comm.all_gather': joined axis is 8, should be 6}}
    %a = "comm.all_gather"(%t) {axis = 1 : i64, parts = 2 : i64, ranks = 2 : i64, side = "cloud"} : (tensor<?x3xf32, ["s"]>) -> tensor<?x8xf32, ["s"]>
    "llmpart.return"(%a) : (tensor<?x8xf32, ["s"]>) -> ()
  }) {communicating = true, sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%t: tensor<?x3xf32, ["s"]>):
    %w = "llmpart.weight"() {file = "w", length = 12 : i64, offset = 0 : i64} : () -> tensor<3xf32>
    // expected-error@+1 {{'llmpart.shard': its operand has no equal parts along the axis}}
    %p = "llmpart.shard"(%w) {axis = 0 : i64, parts = 2 : i64, ranks = 2 : i64} : (tensor<3xf32>) -> tensor<2xf32>
    "llmpart.return"(%t) : (tensor<?x3xf32, ["s"]>) -> ()
  }) {communicating = true, sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----

"builtin.module"() ({
  "llmpart.state"() {append_axis = 2 : i64, dtype = "f32", index = 0 : i64, name = "k", shape = #llmpart.polys<"b, 2, c, 2">} : () -> ()
  "llmpart.func"() ({
  ^bb0(%t: tensor<?xf32, ["s"]>):
    // expected-error@+1 {{a KV cache that moves between the sides cannot be divided among 2 ranks}}
    "comm.kv_move"() {dtype = "f32", from = "device", shape = #llmpart.polys<"b, 2, s + p, 2">, state = 0 : i64, to = "cloud"} : () -> ()
    "llmpart.return"(%t) : (tensor<?xf32, ["s"]>) -> ()
  }) {communicating = true, sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
