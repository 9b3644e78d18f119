// RUN: llmpart opt %s -p 'divide-experts{hot=2}' --verify-each | FileCheck %s
// RUN: llmpart opt %s -p 'divide-experts{hot=2},annotate' --verify-each | FileCheck %s --check-prefix=COST
// RUN: not llmpart opt %s -p 'divide-experts{hot=4}' 2>&1 | FileCheck %s --check-prefix=FEW
// The two experts that tokens choose most often, 1 and 3, are one half, 0 and 2 the other. Each half looks up the places
// of its experts, and their weighted sums are added. Of a token's 2 rows the first half computes 1.5.

// CHECK: %[[HOT:.*]] = "llmpart.constant"() {value = dense<[-1, 0, -1, 1]> : tensor<4xi64>}
// CHECK: %[[PLACE:.*]] = "op.gather"(%[[HOT]], %[[INDEX:.*]]) {{.*}}name = "up.hot"
// CHECK: %[[UP:.*]] = "llmpart.constant"() {value = dense<{{\[\[}}3.0e+00, 4.0e+00], [7.0e+00, 8.0e+00]]>
// CHECK: %[[X:.*]] = "op.experts"(%{{.*}}, %[[UP]], %[[PLACE]]) {{.*}}experts = 2{{.*}}shares = array<f64: 7.5e-01, 7.5e-01>
// CHECK: dense<[0, -1, 1, -1]>
// CHECK: %[[OTHER:.*]] = "op.gather"(%{{.*}}, %[[INDEX]]) {{.*}}name = "up.rest"
// CHECK: dense<{{\[\[}}1.0e+00, 2.0e+00], [5.0e+00, 6.0e+00]]>
// CHECK: "op.experts"({{.*}}, %[[OTHER]]) {{.*}}name = "up.rest"{{.*}}shares = array<f64: 2.5e-01, 2.5e-01>
// CHECK: %[[H:.*]] = "op.map"(%[[X]]) {{.*}}name = "silu.hot"
// CHECK: %[[DOWN:.*]] = "llmpart.weight"() {file = "none", {{.*}}offsets = array<i64: 16, 32>}
// CHECK: %[[D:.*]] = "op.experts"(%[[H]], %[[DOWN]], %[[PLACE]])
// CHECK: %[[W:.*]] = "op.map"(%[[D]], %{{.*}}) {{.*}}name = "weigh.hot"
// CHECK: %[[SUM:.*]] = "op.reduce"(%[[W]]) {{.*}}name = "sum.hot"
// CHECK: %[[REST:.*]] = "op.reduce"({{.*}}) {{.*}}name = "sum.rest"
// CHECK: %[[Y:.*]] = "op.map"(%[[SUM]], %[[REST]]) {{.*}}fn = "add", {{.*}}name = "sum"}
// CHECK-NEXT: "llmpart.return"(%[[Y]])
// COST: "op.experts"{{.*}}flops = #llmpart.poly<"8*s">{{.*}}name = "up.hot"
// COST: "op.experts"{{.*}}flops = #llmpart.poly<"4*s">{{.*}}name = "up.rest"
// COST: "op.experts"{{.*}}flops = #llmpart.poly<"6*s">{{.*}}name = "down.hot"
// COST: "op.experts"{{.*}}flops = #llmpart.poly<"2*s">{{.*}}name = "down.rest"
// FEW: error: no mixture has more than 4 experts and a form that divides

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x1x2xf32, ["s"]>, %index: tensor<?x2xi64, ["s"]>, %share: tensor<?x2x1xf32, ["s"]>):
    %u = "llmpart.constant"() {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>} : () -> tensor<4x2xf32>
    %d = "llmpart.weight"() {file = "none", length = 32 : i64, offset = 8 : i64} : () -> tensor<8x1xf32>
    %up = "op.experts"(%x, %u, %index) {experts = 4 : i64, layer = 0 : i64, layer_kind = "mlp", name = "up", operand_mask = "1101", shares = array<f64: 0.25, 0.75, 0.25, 0.75>, transpose_b = true} : (tensor<?x1x2xf32, ["s"]>, tensor<4x2xf32>, tensor<?x2xi64, ["s"]>) -> tensor<?x2x1xf32, ["s"]>
    %h = "op.map"(%up) {fn = "silu", layer = 0 : i64, layer_kind = "mlp", name = "silu"} : (tensor<?x2x1xf32, ["s"]>) -> tensor<?x2x1xf32, ["s"]>
    %down = "op.experts"(%h, %d, %index) {experts = 4 : i64, layer = 0 : i64, layer_kind = "mlp", name = "down", operand_mask = "1101", shares = array<f64: 0.25, 0.75, 0.25, 0.75>, transpose_b = true} : (tensor<?x2x1xf32, ["s"]>, tensor<8x1xf32>, tensor<?x2xi64, ["s"]>) -> tensor<?x2x2xf32, ["s"]>
    %m = "op.map"(%down, %share) {fn = "mul", layer = 0 : i64, layer_kind = "mlp", name = "weigh"} : (tensor<?x2x2xf32, ["s"]>, tensor<?x2x1xf32, ["s"]>) -> tensor<?x2x2xf32, ["s"]>
    %y = "op.reduce"(%m) {axes = array<i64: 1>, fn = "sum", keepdims = false, layer = 0 : i64, layer_kind = "mlp", name = "sum"} : (tensor<?x2x2xf32, ["s"]>) -> tensor<?x2xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?x2xf32, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
