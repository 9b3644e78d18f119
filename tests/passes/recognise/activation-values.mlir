// RUN: llmpart opt %s -p recognise --split-input-file --verify-each | FileCheck %s
// Activations of 16 bits are recognised by their values and by the function that defines them: values of 16 bits are too
// coarse to tell the GELU of erf from that of tanh.
// SiLU in f16.

// CHECK-NOT: "onnx.Sigmoid"
// CHECK: "onnx.Swish"(%{{.*}}) {alpha = 1.0e+00
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf16, ["s"]>):
    %s = "onnx.Sigmoid"(%x) : (tensor<?x4xf16, ["s"]>) -> tensor<?x4xf16, ["s"]>
    %y = "onnx.Mul"(%x, %s) : (tensor<?x4xf16, ["s"]>, tensor<?x4xf16, ["s"]>) -> tensor<?x4xf16, ["s"]>
    "llmpart.return"(%y) : (tensor<?x4xf16, ["s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// SiLU in bf16.

// CHECK-NOT: "onnx.Sigmoid"
// CHECK: "onnx.Swish"(%{{.*}}) {alpha = 1.0e+00
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xbf16, ["s"]>):
    %s = "onnx.Sigmoid"(%x) : (tensor<?x4xbf16, ["s"]>) -> tensor<?x4xbf16, ["s"]>
    %y = "onnx.Mul"(%x, %s) : (tensor<?x4xbf16, ["s"]>, tensor<?x4xbf16, ["s"]>) -> tensor<?x4xbf16, ["s"]>
    "llmpart.return"(%y) : (tensor<?x4xbf16, ["s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// The sigmoid of 1.702 x, in f16.

// CHECK-NOT: "onnx.Sigmoid"
// CHECK: "onnx.Swish"(%{{.*}}) {alpha = 1.70
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf16, ["s"]>):
    %c = "llmpart.constant"() {value = dense<1.702> : tensor<f16>} : () -> tensor<f16>
    %a = "onnx.Mul"(%x, %c) : (tensor<?x4xf16, ["s"]>, tensor<f16>) -> tensor<?x4xf16, ["s"]>
    %s = "onnx.Sigmoid"(%a) : (tensor<?x4xf16, ["s"]>) -> tensor<?x4xf16, ["s"]>
    %y = "onnx.Mul"(%x, %s) : (tensor<?x4xf16, ["s"]>, tensor<?x4xf16, ["s"]>) -> tensor<?x4xf16, ["s"]>
    "llmpart.return"(%y) : (tensor<?x4xf16, ["s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Another factor stays what it is, in f16 and in bf16.

// CHECK-NOT: "onnx.Swish"
// CHECK: "onnx.Sigmoid"
// CHECK-NOT: "onnx.Swish"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf16, ["s"]>):
    %c = "llmpart.constant"() {value = dense<1.02> : tensor<f16>} : () -> tensor<f16>
    %a = "onnx.Mul"(%x, %c) : (tensor<?x4xf16, ["s"]>, tensor<f16>) -> tensor<?x4xf16, ["s"]>
    %s = "onnx.Sigmoid"(%a) : (tensor<?x4xf16, ["s"]>) -> tensor<?x4xf16, ["s"]>
    %y = "onnx.Mul"(%x, %s) : (tensor<?x4xf16, ["s"]>, tensor<?x4xf16, ["s"]>) -> tensor<?x4xf16, ["s"]>
    "llmpart.return"(%y) : (tensor<?x4xf16, ["s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// CHECK-NOT: "onnx.Swish"
// CHECK: "onnx.Sigmoid"
// CHECK-NOT: "onnx.Swish"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xbf16, ["s"]>):
    %c = "llmpart.constant"() {value = dense<1.2> : tensor<bf16>} : () -> tensor<bf16>
    %a = "onnx.Mul"(%x, %c) : (tensor<?x4xbf16, ["s"]>, tensor<bf16>) -> tensor<?x4xbf16, ["s"]>
    %s = "onnx.Sigmoid"(%a) : (tensor<?x4xbf16, ["s"]>) -> tensor<?x4xbf16, ["s"]>
    %y = "onnx.Mul"(%x, %s) : (tensor<?x4xbf16, ["s"]>, tensor<?x4xbf16, ["s"]>) -> tensor<?x4xbf16, ["s"]>
    "llmpart.return"(%y) : (tensor<?x4xbf16, ["s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Both GELUs, in f16.

// CHECK-NOT: "onnx.Erf"
// CHECK: "onnx.Gelu"(%{{.*}}) {approximate = "none"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf16, ["s"]>):
    %c = "llmpart.constant"() {value = dense<1.4142135> : tensor<f16>} : () -> tensor<f16>
    %one = "llmpart.constant"() {value = dense<1.0> : tensor<f16>} : () -> tensor<f16>
    %half = "llmpart.constant"() {value = dense<0.5> : tensor<f16>} : () -> tensor<f16>
    %d = "onnx.Div"(%x, %c) : (tensor<?x4xf16, ["s"]>, tensor<f16>) -> tensor<?x4xf16, ["s"]>
    %e = "onnx.Erf"(%d) : (tensor<?x4xf16, ["s"]>) -> tensor<?x4xf16, ["s"]>
    %p = "onnx.Add"(%e, %one) : (tensor<?x4xf16, ["s"]>, tensor<f16>) -> tensor<?x4xf16, ["s"]>
    %m = "onnx.Mul"(%x, %p) : (tensor<?x4xf16, ["s"]>, tensor<?x4xf16, ["s"]>) -> tensor<?x4xf16, ["s"]>
    %y = "onnx.Mul"(%m, %half) : (tensor<?x4xf16, ["s"]>, tensor<f16>) -> tensor<?x4xf16, ["s"]>
    "llmpart.return"(%y) : (tensor<?x4xf16, ["s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// CHECK-NOT: "onnx.Tanh"
// CHECK: "onnx.Gelu"(%{{.*}}) {approximate = "tanh"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf16, ["s"]>):
    %k = "llmpart.constant"() {value = dense<0.044715> : tensor<f16>} : () -> tensor<f16>
    %c = "llmpart.constant"() {value = dense<0.7978845> : tensor<f16>} : () -> tensor<f16>
    %one = "llmpart.constant"() {value = dense<1.0> : tensor<f16>} : () -> tensor<f16>
    %half = "llmpart.constant"() {value = dense<0.5> : tensor<f16>} : () -> tensor<f16>
    %x2 = "onnx.Mul"(%x, %x) : (tensor<?x4xf16, ["s"]>, tensor<?x4xf16, ["s"]>) -> tensor<?x4xf16, ["s"]>
    %x3 = "onnx.Mul"(%x2, %x) : (tensor<?x4xf16, ["s"]>, tensor<?x4xf16, ["s"]>) -> tensor<?x4xf16, ["s"]>
    %kx = "onnx.Mul"(%x3, %k) : (tensor<?x4xf16, ["s"]>, tensor<f16>) -> tensor<?x4xf16, ["s"]>
    %s = "onnx.Add"(%x, %kx) : (tensor<?x4xf16, ["s"]>, tensor<?x4xf16, ["s"]>) -> tensor<?x4xf16, ["s"]>
    %cs = "onnx.Mul"(%s, %c) : (tensor<?x4xf16, ["s"]>, tensor<f16>) -> tensor<?x4xf16, ["s"]>
    %t = "onnx.Tanh"(%cs) : (tensor<?x4xf16, ["s"]>) -> tensor<?x4xf16, ["s"]>
    %p = "onnx.Add"(%t, %one) : (tensor<?x4xf16, ["s"]>, tensor<f16>) -> tensor<?x4xf16, ["s"]>
    %m = "onnx.Mul"(%x, %p) : (tensor<?x4xf16, ["s"]>, tensor<?x4xf16, ["s"]>) -> tensor<?x4xf16, ["s"]>
    %y = "onnx.Mul"(%m, %half) : (tensor<?x4xf16, ["s"]>, tensor<f16>) -> tensor<?x4xf16, ["s"]>
    "llmpart.return"(%y) : (tensor<?x4xf16, ["s"]>) -> ()
  }) {inputs = ["x"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
