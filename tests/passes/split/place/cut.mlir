// RUN: llmpart opt %s -p 'place{scheduler=cut,cut=1}' --verify-each | FileCheck %s
// RUN: llmpart opt %s -p 'place{scheduler=cut,cut=1}' | mlir-opt --allow-unregistered-dialect -o /dev/null
// RUN: llmpart opt %s -p 'place{scheduler=cloud-only}' | FileCheck %s --check-prefix=CLOUD
// RUN: llmpart opt %s -p 'place{device=jetson-nano-p1,isl=4,osl=4}' | FileCheck %s --check-prefix=DEVICE
// @main becomes @prefill and @decode; every operator has a side and its times at the workload, positions have both.

// CHECK-NOT: sym_name = "main"
// CHECK: "op.iota"() {{.*}}side = "both"
// CHECK: "op.gather"{{.*}}name = "embed"{{.*}}side = "device"
// CHECK: "op.map"{{.*}}name = "layer0"{{.*}}side = "device"
// CHECK: "op.map"{{.*}}name = "layer1"{{.*}}side = "cloud"
// CHECK: "op.map"{{.*}}name = "head"{{.*}}side = "cloud"
// CHECK: stage = "prefill", sym_name = "prefill"
// CHECK: "op.map"{{.*}}name = "layer0"{{.*}}side = "device"
// CHECK: stage = "decode", sym_name = "decode"

// CLOUD-NOT: side = "device"
// CLOUD: side = "cloud"

// DEVICE-NOT: side = "cloud"
// The Nano's 25.6 GB/s: 4 tokens of 16 bytes in and out, and a row of 16 bytes.
// DEVICE: "op.map"{{.*}}cloud_ms = 0.0e+00 : f64, device_ms = 5.62{{[0-9]*}}e-06 : f64{{.*}}name = "layer0"

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%tokens: tensor<?xi64, ["s"]>):
    %table = "llmpart.weight"() {file = "w", length = 128 : i64, offset = 0 : i64} : () -> tensor<8x4xf32>
    %one = "llmpart.weight"() {file = "w", length = 16 : i64, offset = 128 : i64} : () -> tensor<4xf32>
    %p = "op.iota"() {layer = -1 : i64, layer_kind = "generic", name = "positions", start = #llmpart.poly<"p">, step = #llmpart.poly<"1">} : () -> tensor<?xi64, ["s"]>
    %pe = "op.gather"(%table, %p) {axis = 0 : i64, layer = -1 : i64, layer_kind = "generic", name = "position_rows"} : (tensor<8x4xf32>, tensor<?xi64, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %e = "op.gather"(%table, %tokens) {axis = 0 : i64, layer = -1 : i64, layer_kind = "embedding", name = "embed"} : (tensor<8x4xf32>, tensor<?xi64, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %a = "op.map"(%e, %one) {fn = "mul", layer = 0 : i64, layer_kind = "mlp", name = "layer0"} : (tensor<?x4xf32, ["s"]>, tensor<4xf32>) -> tensor<?x4xf32, ["s"]>
    %b = "op.map"(%a, %pe) {fn = "add", layer = 1 : i64, layer_kind = "mlp", name = "layer1"} : (tensor<?x4xf32, ["s"]>, tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    %c = "op.map"(%b) {fn = "exp", layer = -1 : i64, layer_kind = "lm_head", name = "head"} : (tensor<?x4xf32, ["s"]>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%c) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {inputs = ["tokens"], outputs = ["logits"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
