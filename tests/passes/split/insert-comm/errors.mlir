// RUN: llmpart opt %s -p insert-comm --split-input-file --verify-diagnostics

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?xf32, ["s"]>):
    // expected-error@+1 {{'op.map' has side 'edge', should be 'device', 'cloud' or 'both'}}
    %y = "op.map"(%x) {fn = "exp", side = "edge"} : (tensor<?xf32, ["s"]>) -> tensor<?xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?xf32, ["s"]>) -> ()
  }) {sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?xf32, ["s"]>):
    // expected-error@+1 {{'op.map' has side 'both' but its operand 0 is not on both sides}}
    %y = "op.map"(%x) {fn = "exp", side = "both"} : (tensor<?xf32, ["s"]>) -> tensor<?xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?xf32, ["s"]>) -> ()
  }) {sym_name = "prefill"} : () -> ()
  "llmpart.func"() ({
  ^bb0(%x: tensor<?xf32, ["s"]>):
    "llmpart.return"(%x) : (tensor<?xf32, ["s"]>) -> ()
  }) {sym_name = "decode"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----

// expected-error@unknown {{a stage is missing: '@prefill' and '@decode' are needed}}
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?xf32, ["s"]>):
    "llmpart.return"(%x) : (tensor<?xf32, ["s"]>) -> ()
  }) {sym_name = "prefill"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
