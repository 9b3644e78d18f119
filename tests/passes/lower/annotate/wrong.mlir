// RUN: llmpart opt %s --verify-diagnostics
// Costs that differ from those of the types are an error in any input.

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x8xf32, ["s"]>):
    // expected-error@+1 {{'flops' of 'op.map' differs from what its types give}}
    %y = "op.map"(%x) {bytes_read = #llmpart.poly<"32*s">, bytes_written = #llmpart.poly<"32*s">, flops = #llmpart.poly<"9*s">, fn = "exp"} : (tensor<?x8xf32, ["s"]>) -> tensor<?x8xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?x8xf32, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
