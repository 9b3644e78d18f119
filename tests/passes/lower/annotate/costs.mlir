// RUN: llmpart opt %s -p annotate --verify-each | FileCheck %s
// Exact FLOPs and bytes, in the symbols; the verifier derives them again.

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x?x8xf32, ["b", "s"]>):
    %w = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x16xf16>
    // CHECK: "op.linear"
    // CHECK-SAME: bytes_read = #llmpart.poly<"32*b*s + 256">
    // CHECK-SAME: bytes_written = #llmpart.poly<"64*b*s">
    // CHECK-SAME: flops = #llmpart.poly<"256*b*s">
    %y = "op.linear"(%x, %w) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x16xf16>) -> tensor<?x?x16xf32, ["b", "s"]>
    // CHECK: "op.reshape"
    // CHECK-SAME: bytes_read = #llmpart.poly<"0">
    // CHECK-SAME: flops = #llmpart.poly<"0">
    %z = "op.reshape"(%y) : (tensor<?x?x16xf32, ["b", "s"]>) -> tensor<?x?x4x4xf32, ["b", "s"]>
    "llmpart.return"(%z) : (tensor<?x?x4x4xf32, ["b", "s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
