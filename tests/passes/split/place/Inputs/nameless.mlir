"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?xf32, ["s"]>):
    %y = "op.map"(%x) {fn = "exp"} : (tensor<?xf32, ["s"]>) -> tensor<?xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?xf32, ["s"]>) -> ()
  }) {sym_name = "other"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
