// RUN: llmpart opt %s -p lower --split-input-file --verify-each | FileCheck %s
// A head that is the embedding: quantizers transpose its codes, and the product reads them as they are stored.

// CHECK: %[[W:.*]] = "llmpart.weight"
// CHECK-NOT: op.matmul
// CHECK: "op.linear"(%{{.*}}, %[[W]], {{.*}}transpose_b = true
// CHECK-NOT: op.dequantize
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x8xf32, ["s"]>):
    %w = "llmpart.weight"() {file = "w", length = 48 : i64, offset = 0 : i64} : () -> tensor<6x8xui8>
    %scale = "llmpart.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %zero = "llmpart.constant"() {value = dense<128> : tensor<ui8>} : () -> tensor<ui8>
    %t = "onnx.Transpose"(%w) {perm = array<i64: 1, 0>} : (tensor<6x8xui8>) -> tensor<8x6xui8>
    %d = "onnx.DequantizeLinear"(%t, %scale, %zero) {axis = 1 : i64} : (tensor<8x6xui8>, tensor<f32>, tensor<ui8>) -> tensor<8x6xf32>
    %y = "onnx.MatMul"(%x, %d) : (tensor<?x8xf32, ["s"]>, tensor<8x6xf32>) -> tensor<?x6xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?x6xf32, ["s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Codes of 32 bits are no packed weight: they are dequantised before the product.

// CHECK: %[[W:.*]] = "op.dequantize"
// CHECK: "op.matmul"(%{{.*}}, %[[W]])
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x8xf32, ["s"]>):
    %w = "llmpart.weight"() {file = "w", length = 192 : i64, offset = 0 : i64} : () -> tensor<8x6xi32>
    %scale = "llmpart.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %d = "onnx.DequantizeLinear"(%w, %scale) {axis = 1 : i64} : (tensor<8x6xi32>, tensor<f32>) -> tensor<8x6xf32>
    %y = "onnx.MatMul"(%x, %d) : (tensor<?x8xf32, ["s"]>, tensor<8x6xf32>) -> tensor<?x6xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?x6xf32, ["s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
