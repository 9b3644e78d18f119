// RUN: llmpart opt %s -p fuse --verify-each | FileCheck %s
// RUN: llmpart opt %s -p fuse | mlir-opt --allow-unregistered-dialect -o /dev/null
// Bias, activation, gate and residual go into the linear they follow.

"builtin.module"() ({
  // CHECK: ^bb0(%[[X:.*]]: tensor<?x8xf32, ["s"]>):
  // CHECK: %[[W:.*]] = "llmpart.weight"() {{.*}}offset = 0
  // CHECK: %[[B:.*]] = "llmpart.weight"() {{.*}}offset = 256
  // CHECK-NEXT: %[[Y:.*]] = "op.linear"(%[[X]], %[[W]], %[[B]]) {epilogue = "gelu", name = "dense"}
  // CHECK-NEXT: "llmpart.return"(%[[Y]])
  // CHECK: sym_name = "activation"
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x8xf32, ["s"]>):
    %w = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %b = "llmpart.weight"() {file = "w", length = 32 : i64, offset = 256 : i64} : () -> tensor<8xf32>
    %y = "op.linear"(%x, %w) {name = "dense"} : (tensor<?x8xf32, ["s"]>, tensor<8x8xf32>) -> tensor<?x8xf32, ["s"]>
    %z = "op.map"(%b, %y) {fn = "add"} : (tensor<8xf32>, tensor<?x8xf32, ["s"]>) -> tensor<?x8xf32, ["s"]>
    %a = "op.map"(%z) {fn = "gelu"} : (tensor<?x8xf32, ["s"]>) -> tensor<?x8xf32, ["s"]>
    "llmpart.return"(%a) : (tensor<?x8xf32, ["s"]>) -> ()
  }) {sym_name = "activation"} : () -> ()

  // The residual is the fourth operand: x and w, no bias, then it.
  // CHECK: ^bb0(%[[X:.*]]: tensor<?x8xf32, ["s"]>):
  // CHECK: %[[W:.*]] = "llmpart.weight"
  // CHECK-NEXT: %[[Y:.*]] = "op.linear"(%[[X]], %[[W]], %[[X]]) {operand_mask = "1101"}
  // CHECK-NEXT: "llmpart.return"(%[[Y]])
  // CHECK: sym_name = "residual"
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x8xf32, ["s"]>):
    %w = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %y = "op.linear"(%x, %w) : (tensor<?x8xf32, ["s"]>, tensor<8x8xf32>) -> tensor<?x8xf32, ["s"]>
    %r = "op.map"(%x, %y) {fn = "add"} : (tensor<?x8xf32, ["s"]>, tensor<?x8xf32, ["s"]>) -> tensor<?x8xf32, ["s"]>
    "llmpart.return"(%r) : (tensor<?x8xf32, ["s"]>) -> ()
  }) {sym_name = "residual"} : () -> ()

  // CHECK: %[[GATE:.*]] = "llmpart.weight"() {{.*}}offset = 0
  // CHECK: %[[UP:.*]] = "llmpart.weight"() {{.*}}offset = 256
  // CHECK-NEXT: %[[Y:.*]] = "op.linear"(%{{.*}}, %[[UP]], %[[GATE]]) {epilogue = "silu", operand_mask = "11001"}
  // CHECK-NEXT: "llmpart.return"(%[[Y]])
  // CHECK: sym_name = "gate"
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x8xf32, ["s"]>):
    %g = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %u = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 256 : i64} : () -> tensor<8x8xf32>
    %a = "op.linear"(%x, %g) : (tensor<?x8xf32, ["s"]>, tensor<8x8xf32>) -> tensor<?x8xf32, ["s"]>
    %s = "op.map"(%a) {fn = "silu"} : (tensor<?x8xf32, ["s"]>) -> tensor<?x8xf32, ["s"]>
    %b = "op.linear"(%x, %u) : (tensor<?x8xf32, ["s"]>, tensor<8x8xf32>) -> tensor<?x8xf32, ["s"]>
    %m = "op.map"(%s, %b) {fn = "mul"} : (tensor<?x8xf32, ["s"]>, tensor<?x8xf32, ["s"]>) -> tensor<?x8xf32, ["s"]>
    "llmpart.return"(%m) : (tensor<?x8xf32, ["s"]>) -> ()
  }) {sym_name = "gate"} : () -> ()

  // Weights of two types are not read together.
  // CHECK: "op.linear"{{.*}}epilogue = "silu"
  // CHECK-NEXT: "op.linear"
  // CHECK-NEXT: "op.map"{{.*}}fn = "mul"
  // CHECK: sym_name = "unlike"
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x8xf32, ["s"]>):
    %g = "llmpart.weight"() {file = "w", length = 128 : i64, offset = 0 : i64} : () -> tensor<8x8xbf16>
    %u = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 256 : i64} : () -> tensor<8x8xf32>
    %a = "op.linear"(%x, %g) : (tensor<?x8xf32, ["s"]>, tensor<8x8xbf16>) -> tensor<?x8xf32, ["s"]>
    %s = "op.map"(%a) {fn = "silu"} : (tensor<?x8xf32, ["s"]>) -> tensor<?x8xf32, ["s"]>
    %b = "op.linear"(%x, %u) : (tensor<?x8xf32, ["s"]>, tensor<8x8xf32>) -> tensor<?x8xf32, ["s"]>
    %m = "op.map"(%s, %b) {fn = "mul"} : (tensor<?x8xf32, ["s"]>, tensor<?x8xf32, ["s"]>) -> tensor<?x8xf32, ["s"]>
    "llmpart.return"(%m) : (tensor<?x8xf32, ["s"]>) -> ()
  }) {sym_name = "unlike"} : () -> ()

  // A result that another operator also reads stays, so the activation is not fused.
  // CHECK: "op.linear"
  // CHECK-NEXT: "op.map"
  // CHECK-NEXT: "llmpart.return"
  // CHECK: sym_name = "shared"
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x8xf32, ["s"]>):
    %w = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %y = "op.linear"(%x, %w) : (tensor<?x8xf32, ["s"]>, tensor<8x8xf32>) -> tensor<?x8xf32, ["s"]>
    %a = "op.map"(%y) {fn = "relu"} : (tensor<?x8xf32, ["s"]>) -> tensor<?x8xf32, ["s"]>
    "llmpart.return"(%y, %a) : (tensor<?x8xf32, ["s"]>, tensor<?x8xf32, ["s"]>) -> ()
  }) {sym_name = "shared"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
