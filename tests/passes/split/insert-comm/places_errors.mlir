// RUN: llmpart opt %s --split-input-file -p insert-comm --verify-diagnostics
"builtin.module"() ({
  // expected-error@+1 {{`places` has 'a' twice}}
  "llmpart.func"() ({
  ^bb0(%x: tensor<4xf32>):
    "llmpart.return"(%x) : (tensor<4xf32>) -> ()
  }) {places = ["a", "b", "a"], sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
"builtin.module"() ({
  // expected-error@+1 {{'../b' in `places` is no name of a place}}
  "llmpart.func"() ({
  ^bb0(%x: tensor<4xf32>):
    "llmpart.return"(%x) : (tensor<4xf32>) -> ()
  }) {places = ["a", "../b"], sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
"builtin.module"() ({
  // expected-error@+1 {{`places` should be a list of 1 to 8 names}}
  "llmpart.func"() ({
  ^bb0(%x: tensor<4xf32>):
    "llmpart.return"(%x) : (tensor<4xf32>) -> ()
  }) {places = ["1", "2", "3", "4", "5", "6", "7", "8", "9"], sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<4xf32>):
    "llmpart.return"(%x) : (tensor<4xf32>) -> ()
  }) {places = ["a", "b"], sym_name = "prefill"} : () -> ()
  // expected-error@+1 {{the functions have different `places`}}
  "llmpart.func"() ({
  ^bb0(%x: tensor<4xf32>):
    "llmpart.return"(%x) : (tensor<4xf32>) -> ()
  }) {sym_name = "decode"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<4xf32>):
    // expected-error@+1 {{'op.map' has side 'cloud', should be 'phone', 'edge', 'server' or 'both'}}
    %a = "op.map"(%x) {fn = "exp", name = "a", side = "cloud"} : (tensor<4xf32>) -> tensor<4xf32>
    "llmpart.return"(%a) : (tensor<4xf32>) -> ()
  }) {places = ["phone", "edge", "server"], sym_name = "prefill"} : () -> ()
  "llmpart.func"() ({
  ^bb0(%x: tensor<4xf32>):
    "llmpart.return"(%x) : (tensor<4xf32>) -> ()
  }) {places = ["phone", "edge", "server"], sym_name = "decode"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<4xf32>):
    // expected-error@+1 {{'comm.send': from and to are not two places of the function}}
    "comm.send"(%x) {from = "phone", tag = 0 : i64, to = "cloud"} : (tensor<4xf32>) -> ()
    "llmpart.return"(%x) : (tensor<4xf32>) -> ()
  }) {places = ["phone", "edge", "server"], sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
