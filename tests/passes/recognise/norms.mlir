// RUN: llmpart opt %s -p fold,recognise --split-input-file --verify-each | FileCheck %s
// The centred input by the inverse root, then a weight.

// CHECK: "onnx.LayerNormalization"(%{{.*}}, %{{.*}}) {axis = -1 : i64
// CHECK-NOT: "onnx.Reciprocal"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x?x4xf32, ["b", "s"]>):
    %w = "llmpart.constant"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
    %a = "llmpart.constant"() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %two = "llmpart.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
    %e = "llmpart.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
    %m = "onnx.ReduceMean"(%x, %a) {keepdims = 1 : i64} : (tensor<?x?x4xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x?x1xf32, ["b", "s"]>
    %d = "onnx.Sub"(%x, %m) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<?x?x1xf32, ["b", "s"]>) -> tensor<?x?x4xf32, ["b", "s"]>
    %q = "onnx.Pow"(%d, %two) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<f32>) -> tensor<?x?x4xf32, ["b", "s"]>
    %v = "onnx.ReduceMean"(%q, %a) {keepdims = 1 : i64} : (tensor<?x?x4xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x?x1xf32, ["b", "s"]>
    %s = "onnx.Add"(%v, %e) : (tensor<?x?x1xf32, ["b", "s"]>, tensor<f32>) -> tensor<?x?x1xf32, ["b", "s"]>
    %r = "onnx.Sqrt"(%s) : (tensor<?x?x1xf32, ["b", "s"]>) -> tensor<?x?x1xf32, ["b", "s"]>
    %i = "onnx.Reciprocal"(%r) : (tensor<?x?x1xf32, ["b", "s"]>) -> tensor<?x?x1xf32, ["b", "s"]>
    %n = "onnx.Mul"(%i, %d) : (tensor<?x?x1xf32, ["b", "s"]>, tensor<?x?x4xf32, ["b", "s"]>) -> tensor<?x?x4xf32, ["b", "s"]>
    %y = "onnx.Mul"(%n, %w) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<4xf32>) -> tensor<?x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Exported from TensorFlow: the inverse root by the weight, then the input, which is not centred. The first product is no norm.

// CHECK-NOT: Normalization
// CHECK: "onnx.Reciprocal"
// CHECK-NOT: Normalization
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x?x4xf32, ["b", "s"]>):
    %w = "llmpart.constant"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
    %a = "llmpart.constant"() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %two = "llmpart.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
    %e = "llmpart.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
    %m = "onnx.ReduceMean"(%x, %a) {keepdims = 1 : i64} : (tensor<?x?x4xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x?x1xf32, ["b", "s"]>
    %d = "onnx.Sub"(%x, %m) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<?x?x1xf32, ["b", "s"]>) -> tensor<?x?x4xf32, ["b", "s"]>
    %q = "onnx.Pow"(%d, %two) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<f32>) -> tensor<?x?x4xf32, ["b", "s"]>
    %v = "onnx.ReduceMean"(%q, %a) {keepdims = 1 : i64} : (tensor<?x?x4xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x?x1xf32, ["b", "s"]>
    %s = "onnx.Add"(%v, %e) : (tensor<?x?x1xf32, ["b", "s"]>, tensor<f32>) -> tensor<?x?x1xf32, ["b", "s"]>
    %r = "onnx.Sqrt"(%s) : (tensor<?x?x1xf32, ["b", "s"]>) -> tensor<?x?x1xf32, ["b", "s"]>
    %i = "onnx.Reciprocal"(%r) : (tensor<?x?x1xf32, ["b", "s"]>) -> tensor<?x?x1xf32, ["b", "s"]>
    %n = "onnx.Mul"(%i, %w) : (tensor<?x?x1xf32, ["b", "s"]>, tensor<4xf32>) -> tensor<?x?x4xf32, ["b", "s"]>
    %y = "onnx.Mul"(%x, %n) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<?x?x4xf32, ["b", "s"]>) -> tensor<?x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// The input by the power of -0.5.

// CHECK: "onnx.RMSNormalization"
// CHECK-NOT: "onnx.Pow"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x?x4xf32, ["b", "s"]>):
    %w = "llmpart.constant"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
    %a = "llmpart.constant"() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %two = "llmpart.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
    %e = "llmpart.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
    %q = "onnx.Pow"(%x, %two) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<f32>) -> tensor<?x?x4xf32, ["b", "s"]>
    %v = "onnx.ReduceMean"(%q, %a) {keepdims = 1 : i64} : (tensor<?x?x4xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x?x1xf32, ["b", "s"]>
    %s = "onnx.Add"(%v, %e) : (tensor<?x?x1xf32, ["b", "s"]>, tensor<f32>) -> tensor<?x?x1xf32, ["b", "s"]>
    %h = "llmpart.constant"() {value = dense<-0.5> : tensor<f32>} : () -> tensor<f32>
    %i = "onnx.Pow"(%s, %h) : (tensor<?x?x1xf32, ["b", "s"]>, tensor<f32>) -> tensor<?x?x1xf32, ["b", "s"]>
    %n = "onnx.Mul"(%x, %i) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<?x?x1xf32, ["b", "s"]>) -> tensor<?x?x4xf32, ["b", "s"]>
    %y = "onnx.Mul"(%n, %w) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<4xf32>) -> tensor<?x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// The weight by the power of -0.5 is no norm.

// CHECK-NOT: Normalization
// CHECK: "onnx.Pow"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x?x4xf32, ["b", "s"]>):
    %w = "llmpart.constant"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
    %a = "llmpart.constant"() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %two = "llmpart.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
    %e = "llmpart.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
    %q = "onnx.Pow"(%x, %two) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<f32>) -> tensor<?x?x4xf32, ["b", "s"]>
    %v = "onnx.ReduceMean"(%q, %a) {keepdims = 1 : i64} : (tensor<?x?x4xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x?x1xf32, ["b", "s"]>
    %s = "onnx.Add"(%v, %e) : (tensor<?x?x1xf32, ["b", "s"]>, tensor<f32>) -> tensor<?x?x1xf32, ["b", "s"]>
    %h = "llmpart.constant"() {value = dense<-0.5> : tensor<f32>} : () -> tensor<f32>
    %i = "onnx.Pow"(%s, %h) : (tensor<?x?x1xf32, ["b", "s"]>, tensor<f32>) -> tensor<?x?x1xf32, ["b", "s"]>
    %n = "onnx.Mul"(%w, %i) : (tensor<4xf32>, tensor<?x?x1xf32, ["b", "s"]>) -> tensor<?x?x4xf32, ["b", "s"]>
    %y = "onnx.Mul"(%n, %x) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<?x?x4xf32, ["b", "s"]>) -> tensor<?x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----
// A row of f16 that is normalised in f32, and stays so.

// CHECK: %[[WIDE:.*]] = "onnx.Cast"(%{{.*}}) {to = 1 : i64}
// CHECK: "onnx.RMSNormalization"(%{{.*}}, %{{.*}}) {axis = -1 : i64{{.*}} -> tensor<?x?x4xf32
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%half: tensor<?x?x4xf16, ["b", "s"]>):
    %w = "llmpart.constant"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
    %a = "llmpart.constant"() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %e = "llmpart.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
    %x = "onnx.Cast"(%half) {to = 1 : i64} : (tensor<?x?x4xf16, ["b", "s"]>) -> tensor<?x?x4xf32, ["b", "s"]>
    %p = "onnx.Mul"(%x, %x) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<?x?x4xf32, ["b", "s"]>) -> tensor<?x?x4xf32, ["b", "s"]>
    %m = "onnx.ReduceMean"(%p, %a) {keepdims = 1 : i64} : (tensor<?x?x4xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x?x1xf32, ["b", "s"]>
    %n = "onnx.Add"(%m, %e) : (tensor<?x?x1xf32, ["b", "s"]>, tensor<f32>) -> tensor<?x?x1xf32, ["b", "s"]>
    %r = "onnx.Sqrt"(%n) : (tensor<?x?x1xf32, ["b", "s"]>) -> tensor<?x?x1xf32, ["b", "s"]>
    %q = "onnx.Div"(%x, %r) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<?x?x1xf32, ["b", "s"]>) -> tensor<?x?x4xf32, ["b", "s"]>
    %y = "onnx.Mul"(%q, %w) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<4xf32>) -> tensor<?x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
