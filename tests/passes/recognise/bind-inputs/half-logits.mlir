// RUN: llmpart opt %s -p bind-inputs --verify-each | FileCheck %s
// Logits of f16 leave as f32, which sampling reads.

// CHECK: %[[WIDE:.*]] = "onnx.Cast"(%{{.*}}) {to = 1 : i64} : (tensor<?x?x8xf16, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
// CHECK-NEXT: "llmpart.return"(%[[WIDE]])
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["batch", "seq"]>):
    %table = "llmpart.weight"() {file = "w", length = 128 : i64, offset = 0 : i64} : () -> tensor<8x8xf16>
    %e = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<8x8xf16>, tensor<?x?xi64, ["batch", "seq"]>) -> tensor<?x?x8xf16, ["batch", "seq"]>
    "llmpart.return"(%e) : (tensor<?x?x8xf16, ["batch", "seq"]>) -> ()
  }) {inputs = ["input_ids"], outputs = ["logits"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t", "batch", "seq"]} : () -> ()
