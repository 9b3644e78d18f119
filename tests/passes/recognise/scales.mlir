// RUN: llmpart opt %s -p decompose --split-input-file --verify-diagnostics
// A scale that is infinite or NaN is refused: runtimes differ in what they compute with it.

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x32xf32, ["s"]>):
    %scale = "llmpart.constant"() {value = dense<[0x7F800000]> : tensor<1xf32>} : () -> tensor<1xf32>
    // expected-error@+1 {{'onnx.QuantizeLinear' has a scale that is not finite}}
    %y = "onnx.QuantizeLinear"(%x, %scale) : (tensor<?x32xf32, ["s"]>, tensor<1xf32>) -> tensor<?x32xui8, ["s"]>
    "llmpart.return"(%y) : (tensor<?x32xui8, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x16xf32, ["s"]>):
    %w = "llmpart.weight"() {file = "w", length = 16 : i64, offset = 0 : i64} : () -> tensor<16xui8>
    %scale = "llmpart.constant"() {value = dense<[1.0e+00, 0x7FC00000]> : tensor<2xf32>} : () -> tensor<2xf32>
    // expected-error@+1 {{'com.microsoft.MatMulBnb4' has a scale that is not finite}}
    %y = "com.microsoft.MatMulBnb4"(%x, %w, %scale) {K = 16 : i64, N = 2 : i64, block_size = 16 : i64, quant_type = 1 : i64} : (tensor<?x16xf32, ["s"]>, tensor<16xui8>, tensor<2xf32>) -> tensor<?x2xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?x2xf32, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
