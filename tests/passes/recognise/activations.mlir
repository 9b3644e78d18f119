// RUN: llmpart opt %s -p decompose --verify-diagnostics
// Products that allow int8 activations are computed with f32 activations, and the user is told so once.

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x32xf32, ["s"]>):
    %w = "llmpart.weight"() {file = "w", length = 512 : i64, offset = 0 : i64} : () -> tensor<32x1x16xui8>
    %scale = "llmpart.weight"() {file = "w", length = 128 : i64, offset = 512 : i64} : () -> tensor<32x1xf32>
    %u = "com.microsoft.MatMulNBits"(%x, %w, %scale) {K = 32 : i64, N = 32 : i64, accuracy_level = 1 : i64, bits = 4 : i64, block_size = 32 : i64} : (tensor<?x32xf32, ["s"]>, tensor<32x1x16xui8>, tensor<32x1xf32>) -> tensor<?x32xf32, ["s"]>
    // expected-note@+1 {{this and 1 further products allow int8 activations (accuracy_level = 4)}}
    %v = "com.microsoft.MatMulNBits"(%u, %w, %scale) {K = 32 : i64, N = 32 : i64, accuracy_level = 4 : i64, bits = 4 : i64, block_size = 32 : i64} : (tensor<?x32xf32, ["s"]>, tensor<32x1x16xui8>, tensor<32x1xf32>) -> tensor<?x32xf32, ["s"]>
    %y = "com.microsoft.MatMulNBits"(%v, %w, %scale) {K = 32 : i64, N = 32 : i64, accuracy_level = 4 : i64, bits = 4 : i64, block_size = 32 : i64} : (tensor<?x32xf32, ["s"]>, tensor<32x1x16xui8>, tensor<32x1xf32>) -> tensor<?x32xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?x32xf32, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
