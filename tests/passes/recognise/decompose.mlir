// RUN: llmpart opt %s -p decompose --split-input-file --verify-each | FileCheck %s
// Operators of com.microsoft become those of the standard.

// A product may read its operands transposed: only the last two axes change.
// CHECK: %[[A:.*]] = "onnx.Transpose"(%{{.*}}) {perm = array<i64: 0, 2, 1>}
// CHECK: %[[P:.*]] = "onnx.MatMul"(%[[A]], %{{.*}})
// CHECK: %[[HALF:.*]] = "llmpart.constant"() {value = dense<5.0e-01>
// CHECK: %[[Y:.*]] = "onnx.Mul"(%[[P]], %[[HALF]])
// CHECK: "llmpart.return"(%[[Y]])
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%a: tensor<?x4x?xf32, ["b", "s"]>, %b: tensor<?x4x6xf32, ["b"]>):
    %y = "com.microsoft.FusedMatMul"(%a, %b) {alpha = 0.5 : f64, transA = 1 : i64} : (tensor<?x4x?xf32, ["b", "s"]>, tensor<?x4x6xf32, ["b"]>) -> tensor<?x?x6xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x6xf32, ["b", "s"]>) -> ()
  }) {inputs = ["a", "b"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// A vector has nothing to transpose.
// CHECK: ^bb0(%[[A:.*]]: tensor<?x?x4xf32, ["b", "s"]>, %[[B:.*]]: tensor<6x4xf32>, %[[V:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[T:.*]] = "onnx.Transpose"(%[[B]]) {perm = array<i64: 1, 0>}
// CHECK-NEXT: %[[Y:.*]] = "onnx.MatMul"(%[[A]], %[[T]])
// CHECK-NEXT: %[[Z:.*]] = "onnx.MatMul"(%[[A]], %[[V]])
// CHECK-NEXT: "llmpart.return"(%[[Y]], %[[Z]])
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%a: tensor<?x?x4xf32, ["b", "s"]>, %b: tensor<6x4xf32>, %v: tensor<4xf32>):
    %y = "com.microsoft.FusedMatMul"(%a, %b) {transB = 1 : i64} : (tensor<?x?x4xf32, ["b", "s"]>, tensor<6x4xf32>) -> tensor<?x?x6xf32, ["b", "s"]>
    %z = "com.microsoft.FusedMatMul"(%a, %v) {transB = 1 : i64} : (tensor<?x?x4xf32, ["b", "s"]>, tensor<4xf32>) -> tensor<?x?xf32, ["b", "s"]>
    "llmpart.return"(%y, %z) : (tensor<?x?x6xf32, ["b", "s"]>, tensor<?x?xf32, ["b", "s"]>) -> ()
  }) {inputs = ["a", "b", "v"], outputs = ["y", "z"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Only the rows that are chosen are dequantised; two codes of 4 bits are in a byte.
// CHECK: ^bb0(%[[I:.*]]: tensor<?x?xi64, ["b", "s"]>):
// CHECK: %[[SCALE:.*]] = "llmpart.weight"() {{.*}} tensor<4x2xf32>
// CHECK: %[[DATA:.*]] = "llmpart.weight"() {{.*}} tensor<4x32xui4>
// CHECK: %[[ZERO:.*]] = "llmpart.constant"() {value = dense<8>
// CHECK: %[[S:.*]] = "onnx.Gather"(%[[SCALE]], %[[I]])
// CHECK: %[[D:.*]] = "onnx.Gather"(%[[DATA]], %[[I]])
// CHECK: "onnx.DequantizeLinear"(%[[D]], %[[S]], %[[ZERO]]) {axis = -1 : i64, block_size = 16 : i64}
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%i: tensor<?x?xi64, ["b", "s"]>):
    %data = "llmpart.weight"() {file = "w", length = 64 : i64, offset = 0 : i64} : () -> tensor<4x16xui8>
    %scale = "llmpart.weight"() {file = "w", length = 32 : i64, offset = 64 : i64} : () -> tensor<4x2xf32>
    %y = "com.microsoft.GatherBlockQuantized"(%data, %i, %scale) {bits = 4 : i64, block_size = 16 : i64, quantize_axis = 1 : i64} : (tensor<4x16xui8>, tensor<?x?xi64, ["b", "s"]>, tensor<4x2xf32>) -> tensor<?x?x32xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x32xf32, ["b", "s"]>) -> ()
  }) {inputs = ["i"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Attention over heads, with a past: its presents replace the operator's.
// CHECK: ^bb0(%{{.*}}, %[[PK:.*]]: tensor<?x2x?x4xf32, ["b", "p"]>, %[[PV:.*]]: tensor<?x2x?x4xf32, ["b", "p"]>):
// CHECK: %[[A:.*]]:3 = "onnx.Attention"(%{{.*}}, %{{.*}}, %{{.*}}, %[[PK]], %[[PV]]) {is_causal = 0 : i64, operand_mask = "111011"}
// CHECK: %[[T:.*]] = "onnx.Transpose"(%[[A]]#0) {perm = array<i64: 0, 2, 1, 3>}
// CHECK: %[[Y:.*]] = "onnx.Reshape"(%[[T]], %{{.*}})
// CHECK: "llmpart.return"(%[[Y]], %[[A]]#1, %[[A]]#2)
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x?x8xf32, ["b", "s"]>, %pk: tensor<?x2x?x4xf32, ["b", "p"]>, %pv: tensor<?x2x?x4xf32, ["b", "p"]>):
    %y:3 = "com.microsoft.MultiHeadAttention"(%q, %q, %q, %pk, %pv) {num_heads = 2 : i64, operand_mask = "11100011"} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "p"]>, tensor<?x2x?x4xf32, ["b", "p"]>) -> (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "p + s"]>, tensor<?x2x?x4xf32, ["b", "p + s"]>)
    "llmpart.return"(%y#0, %y#1, %y#2) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "p + s"]>, tensor<?x2x?x4xf32, ["b", "p + s"]>) -> ()
  }) {inputs = ["q", "pk", "pv"], outputs = ["y", "k", "v"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
