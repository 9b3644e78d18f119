// RUN: llmpart opt %s -p 'fold,recognise' --split-input-file --verify-each | FileCheck %s
// Pairs of neighbours are turned, by a table of which each element was repeated before the cosine.

// CHECK: %[[COS:.*]] = "onnx.Slice"
// CHECK: %[[SIN:.*]] = "onnx.Slice"
// CHECK: "onnx.RotaryEmbedding"(%{{.*}}, %[[COS]], %[[SIN]]) {interleaved = 1 : i64}
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x2x?x4xf32, ["b", "s"]>, %angle: tensor<1x?x2xf32, ["s"]>):
    %zero = "llmpart.constant"() {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
    %one = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %two = "llmpart.constant"() {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
    %four = "llmpart.constant"() {value = dense<[4]> : tensor<1xi64>} : () -> tensor<1xi64>
    %three = "llmpart.constant"() {value = dense<[3]> : tensor<1xi64>} : () -> tensor<1xi64>
    %last = "llmpart.constant"() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %end = "llmpart.constant"() {value = dense<[9223372036854775807]> : tensor<1xi64>} : () -> tensor<1xi64>
    %shape = "llmpart.constant"() {value = dense<[0, 2, -1, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
    %wide = "llmpart.constant"() {value = dense<[1, 1, 1, 2]> : tensor<4xi64>} : () -> tensor<4xi64>
    %flat = "llmpart.constant"() {value = dense<[1, -1, 4]> : tensor<3xi64>} : () -> tensor<3xi64>
    %new = "onnx.Unsqueeze"(%angle, %last) : (tensor<1x?x2xf32, ["s"]>, tensor<1xi64>) -> tensor<1x?x2x1xf32, ["s"]>
    %both = "onnx.Tile"(%new, %wide) : (tensor<1x?x2x1xf32, ["s"]>, tensor<4xi64>) -> tensor<1x?x2x2xf32, ["s"]>
    %twice = "onnx.Reshape"(%both, %flat) : (tensor<1x?x2x2xf32, ["s"]>, tensor<3xi64>) -> tensor<1x?x4xf32, ["s"]>
    %cos = "onnx.Cos"(%twice) : (tensor<1x?x4xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %sin = "onnx.Sin"(%twice) : (tensor<1x?x4xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %even = "onnx.Slice"(%x, %zero, %end, %last, %two) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %odd = "onnx.Slice"(%x, %one, %end, %last, %two) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %minus = "onnx.Neg"(%odd) : (tensor<?x2x?x2xf32, ["b", "s"]>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %a = "onnx.Unsqueeze"(%minus, %last) : (tensor<?x2x?x2xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x2x?x2x1xf32, ["b", "s"]>
    %c = "onnx.Unsqueeze"(%even, %last) : (tensor<?x2x?x2xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x2x?x2x1xf32, ["b", "s"]>
    %pairs = "onnx.Concat"(%a, %c) {axis = -1 : i64} : (tensor<?x2x?x2x1xf32, ["b", "s"]>, tensor<?x2x?x2x1xf32, ["b", "s"]>) -> tensor<?x2x?x2x2xf32, ["b", "s"]>
    %turned = "onnx.Reshape"(%pairs, %shape) : (tensor<?x2x?x2x2xf32, ["b", "s"]>, tensor<4xi64>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %p = "onnx.Mul"(%x, %cos) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1x?x4xf32, ["s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %q = "onnx.Mul"(%turned, %sin) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1x?x4xf32, ["s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %y = "onnx.Add"(%p, %q) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["x", "angle"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Positions before heads, and only a part is turned: swapped around the operator.

// CHECK: %[[X:.*]] = "onnx.Transpose"(%{{.*}}) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x6xf32, ["b", "s"]>)
// CHECK: %[[Y:.*]] = "onnx.RotaryEmbedding"(%[[X]], %{{.*}}, %{{.*}}) {interleaved = 1 : i64, rotary_embedding_dim = 4 : i64}
// CHECK: %[[R:.*]] = "onnx.Transpose"(%[[Y]])
// CHECK: "llmpart.return"(%[[R]])
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x?x2x6xf32, ["b", "s"]>, %angle: tensor<?x?x2xf32, ["b", "s"]>):
    %zero = "llmpart.constant"() {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
    %one = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %two = "llmpart.constant"() {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
    %four = "llmpart.constant"() {value = dense<[4]> : tensor<1xi64>} : () -> tensor<1xi64>
    %three = "llmpart.constant"() {value = dense<[3]> : tensor<1xi64>} : () -> tensor<1xi64>
    %last = "llmpart.constant"() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %end = "llmpart.constant"() {value = dense<[9223372036854775807]> : tensor<1xi64>} : () -> tensor<1xi64>
    %shape = "llmpart.constant"() {value = dense<[0, 0, 2, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
    %wide = "llmpart.constant"() {value = dense<[1, 1, 1, 1, 2]> : tensor<5xi64>} : () -> tensor<5xi64>
    %flat = "llmpart.constant"() {value = dense<[0, 0, 1, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
    %cos0 = "onnx.Cos"(%angle) : (tensor<?x?x2xf32, ["b", "s"]>) -> tensor<?x?x2xf32, ["b", "s"]>
    %cos1 = "onnx.Unsqueeze"(%cos0, %two) : (tensor<?x?x2xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x?x1x2xf32, ["b", "s"]>
    %cos2 = "onnx.Unsqueeze"(%cos1, %last) : (tensor<?x?x1x2xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x?x1x2x1xf32, ["b", "s"]>
    %cos3 = "onnx.Tile"(%cos2, %wide) : (tensor<?x?x1x2x1xf32, ["b", "s"]>, tensor<5xi64>) -> tensor<?x?x1x2x2xf32, ["b", "s"]>
    %cos = "onnx.Reshape"(%cos3, %flat) : (tensor<?x?x1x2x2xf32, ["b", "s"]>, tensor<4xi64>) -> tensor<?x?x1x4xf32, ["b", "s"]>
    %sin0 = "onnx.Sin"(%angle) : (tensor<?x?x2xf32, ["b", "s"]>) -> tensor<?x?x2xf32, ["b", "s"]>
    %sin1 = "onnx.Unsqueeze"(%sin0, %two) : (tensor<?x?x2xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x?x1x2xf32, ["b", "s"]>
    %sin2 = "onnx.Unsqueeze"(%sin1, %last) : (tensor<?x?x1x2xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x?x1x2x1xf32, ["b", "s"]>
    %sin3 = "onnx.Tile"(%sin2, %wide) : (tensor<?x?x1x2x1xf32, ["b", "s"]>, tensor<5xi64>) -> tensor<?x?x1x2x2xf32, ["b", "s"]>
    %sin = "onnx.Reshape"(%sin3, %flat) : (tensor<?x?x1x2x2xf32, ["b", "s"]>, tensor<4xi64>) -> tensor<?x?x1x4xf32, ["b", "s"]>
    %part = "onnx.Slice"(%x, %zero, %four, %three, %one) : (tensor<?x?x2x6xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %rest = "onnx.Slice"(%x, %four, %end, %three, %one) : (tensor<?x?x2x6xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?x2x2xf32, ["b", "s"]>
    %even = "onnx.Slice"(%part, %zero, %end, %last, %two) : (tensor<?x?x2x4xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?x2x2xf32, ["b", "s"]>
    %odd = "onnx.Slice"(%part, %one, %end, %last, %two) : (tensor<?x?x2x4xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?x2x2xf32, ["b", "s"]>
    %minus = "onnx.Neg"(%odd) : (tensor<?x?x2x2xf32, ["b", "s"]>) -> tensor<?x?x2x2xf32, ["b", "s"]>
    %a = "onnx.Unsqueeze"(%minus, %last) : (tensor<?x?x2x2xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x?x2x2x1xf32, ["b", "s"]>
    %c = "onnx.Unsqueeze"(%even, %last) : (tensor<?x?x2x2xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x?x2x2x1xf32, ["b", "s"]>
    %pairs = "onnx.Concat"(%a, %c) {axis = -1 : i64} : (tensor<?x?x2x2x1xf32, ["b", "s"]>, tensor<?x?x2x2x1xf32, ["b", "s"]>) -> tensor<?x?x2x2x2xf32, ["b", "s"]>
    %turned = "onnx.Reshape"(%pairs, %shape) : (tensor<?x?x2x2x2xf32, ["b", "s"]>, tensor<4xi64>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %p = "onnx.Mul"(%part, %cos) : (tensor<?x?x2x4xf32, ["b", "s"]>, tensor<?x?x1x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %q = "onnx.Mul"(%turned, %sin) : (tensor<?x?x2x4xf32, ["b", "s"]>, tensor<?x?x1x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %sum = "onnx.Add"(%p, %q) : (tensor<?x?x2x4xf32, ["b", "s"]>, tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "onnx.Concat"(%sum, %rest) {axis = -1 : i64} : (tensor<?x?x2x4xf32, ["b", "s"]>, tensor<?x?x2x2xf32, ["b", "s"]>) -> tensor<?x?x2x6xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x2x6xf32, ["b", "s"]>) -> ()
  }) {inputs = ["x", "angle"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Nothing is negated: no rotation.

// CHECK-NOT: "onnx.RotaryEmbedding"
// CHECK: "llmpart.return"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x2x?x4xf32, ["b", "s"]>, %angle: tensor<1x?x2xf32, ["s"]>):
    %zero = "llmpart.constant"() {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
    %one = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %two = "llmpart.constant"() {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
    %four = "llmpart.constant"() {value = dense<[4]> : tensor<1xi64>} : () -> tensor<1xi64>
    %three = "llmpart.constant"() {value = dense<[3]> : tensor<1xi64>} : () -> tensor<1xi64>
    %last = "llmpart.constant"() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %end = "llmpart.constant"() {value = dense<[9223372036854775807]> : tensor<1xi64>} : () -> tensor<1xi64>
    %shape = "llmpart.constant"() {value = dense<[0, 2, -1, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
    %wide = "llmpart.constant"() {value = dense<[1, 1, 1, 2]> : tensor<4xi64>} : () -> tensor<4xi64>
    %flat = "llmpart.constant"() {value = dense<[1, -1, 4]> : tensor<3xi64>} : () -> tensor<3xi64>
    %new = "onnx.Unsqueeze"(%angle, %last) : (tensor<1x?x2xf32, ["s"]>, tensor<1xi64>) -> tensor<1x?x2x1xf32, ["s"]>
    %both = "onnx.Tile"(%new, %wide) : (tensor<1x?x2x1xf32, ["s"]>, tensor<4xi64>) -> tensor<1x?x2x2xf32, ["s"]>
    %twice = "onnx.Reshape"(%both, %flat) : (tensor<1x?x2x2xf32, ["s"]>, tensor<3xi64>) -> tensor<1x?x4xf32, ["s"]>
    %cos = "onnx.Cos"(%twice) : (tensor<1x?x4xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %sin = "onnx.Sin"(%twice) : (tensor<1x?x4xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %even = "onnx.Slice"(%x, %zero, %end, %last, %two) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %odd = "onnx.Slice"(%x, %one, %end, %last, %two) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %minus = "onnx.Neg"(%odd) : (tensor<?x2x?x2xf32, ["b", "s"]>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %a = "onnx.Unsqueeze"(%odd, %last) : (tensor<?x2x?x2xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x2x?x2x1xf32, ["b", "s"]>
    %c = "onnx.Unsqueeze"(%even, %last) : (tensor<?x2x?x2xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x2x?x2x1xf32, ["b", "s"]>
    %pairs = "onnx.Concat"(%a, %c) {axis = -1 : i64} : (tensor<?x2x?x2x1xf32, ["b", "s"]>, tensor<?x2x?x2x1xf32, ["b", "s"]>) -> tensor<?x2x?x2x2xf32, ["b", "s"]>
    %turned = "onnx.Reshape"(%pairs, %shape) : (tensor<?x2x?x2x2xf32, ["b", "s"]>, tensor<4xi64>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %p = "onnx.Mul"(%x, %cos) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1x?x4xf32, ["s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %q = "onnx.Mul"(%turned, %sin) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1x?x4xf32, ["s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %y = "onnx.Add"(%p, %q) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["x", "angle"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Halves are turned; the axis along which they are joined is written from either end.

// CHECK: "onnx.RotaryEmbedding"(
// CHECK-NOT: "onnx.Neg"
// CHECK: "llmpart.return"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x2x?x4xf32, ["b", "s"]>, %cos: tensor<1x?x4xf32, ["s"]>, %angle: tensor<1x?x2xf32, ["s"]>):
    %zero = "llmpart.constant"() {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
    %two = "llmpart.constant"() {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
    %four = "llmpart.constant"() {value = dense<[4]> : tensor<1xi64>} : () -> tensor<1xi64>
    %last = "llmpart.constant"() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %twice = "onnx.Concat"(%angle, %angle) {axis = -1 : i64} : (tensor<1x?x2xf32, ["s"]>, tensor<1x?x2xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %c = "onnx.Cos"(%twice) : (tensor<1x?x4xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %s = "onnx.Sin"(%twice) : (tensor<1x?x4xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %high = "onnx.Slice"(%x, %two, %four, %last) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %low = "onnx.Slice"(%x, %zero, %two, %last) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %minus = "onnx.Neg"(%high) : (tensor<?x2x?x2xf32, ["b", "s"]>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %turned = "onnx.Concat"(%minus, %low) {axis = -1 : i64} : (tensor<?x2x?x2xf32, ["b", "s"]>, tensor<?x2x?x2xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %p = "onnx.Mul"(%x, %c) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1x?x4xf32, ["s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %q = "onnx.Mul"(%turned, %s) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1x?x4xf32, ["s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %y = "onnx.Add"(%p, %q) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["x", "cos", "angle"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----

// CHECK: "onnx.RotaryEmbedding"(
// CHECK-NOT: "onnx.Neg"
// CHECK: "llmpart.return"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x2x?x4xf32, ["b", "s"]>, %cos: tensor<1x?x4xf32, ["s"]>, %angle: tensor<1x?x2xf32, ["s"]>):
    %zero = "llmpart.constant"() {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
    %two = "llmpart.constant"() {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
    %four = "llmpart.constant"() {value = dense<[4]> : tensor<1xi64>} : () -> tensor<1xi64>
    %last = "llmpart.constant"() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %twice = "onnx.Concat"(%angle, %angle) {axis = -1 : i64} : (tensor<1x?x2xf32, ["s"]>, tensor<1x?x2xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %c = "onnx.Cos"(%twice) : (tensor<1x?x4xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %s = "onnx.Sin"(%twice) : (tensor<1x?x4xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %high = "onnx.Slice"(%x, %two, %four, %last) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %low = "onnx.Slice"(%x, %zero, %two, %last) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %minus = "onnx.Neg"(%high) : (tensor<?x2x?x2xf32, ["b", "s"]>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %turned = "onnx.Concat"(%minus, %low) {axis = 3 : i64} : (tensor<?x2x?x2xf32, ["b", "s"]>, tensor<?x2x?x2xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %p = "onnx.Mul"(%x, %c) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1x?x4xf32, ["s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %q = "onnx.Mul"(%turned, %s) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1x?x4xf32, ["s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %y = "onnx.Add"(%p, %q) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["x", "cos", "angle"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Elements 0 and 3 are no half of the pairs.

// CHECK-NOT: "onnx.RotaryEmbedding"
// CHECK: "llmpart.return"
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x2x?x4xf32, ["b", "s"]>, %angle: tensor<1x?x2xf32, ["s"]>):
    %zero = "llmpart.constant"() {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
    %one = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %two = "llmpart.constant"() {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
    %four = "llmpart.constant"() {value = dense<[4]> : tensor<1xi64>} : () -> tensor<1xi64>
    %three = "llmpart.constant"() {value = dense<[3]> : tensor<1xi64>} : () -> tensor<1xi64>
    %last = "llmpart.constant"() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %end = "llmpart.constant"() {value = dense<[9223372036854775807]> : tensor<1xi64>} : () -> tensor<1xi64>
    %shape = "llmpart.constant"() {value = dense<[0, 2, -1, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
    %wide = "llmpart.constant"() {value = dense<[1, 1, 1, 2]> : tensor<4xi64>} : () -> tensor<4xi64>
    %flat = "llmpart.constant"() {value = dense<[1, -1, 4]> : tensor<3xi64>} : () -> tensor<3xi64>
    %new = "onnx.Unsqueeze"(%angle, %last) : (tensor<1x?x2xf32, ["s"]>, tensor<1xi64>) -> tensor<1x?x2x1xf32, ["s"]>
    %both = "onnx.Tile"(%new, %wide) : (tensor<1x?x2x1xf32, ["s"]>, tensor<4xi64>) -> tensor<1x?x2x2xf32, ["s"]>
    %twice = "onnx.Reshape"(%both, %flat) : (tensor<1x?x2x2xf32, ["s"]>, tensor<3xi64>) -> tensor<1x?x4xf32, ["s"]>
    %cos = "onnx.Cos"(%twice) : (tensor<1x?x4xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %sin = "onnx.Sin"(%twice) : (tensor<1x?x4xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %even = "onnx.Slice"(%x, %zero, %end, %last, %three) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %odd = "onnx.Slice"(%x, %one, %end, %last, %two) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %minus = "onnx.Neg"(%odd) : (tensor<?x2x?x2xf32, ["b", "s"]>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %a = "onnx.Unsqueeze"(%minus, %last) : (tensor<?x2x?x2xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x2x?x2x1xf32, ["b", "s"]>
    %c = "onnx.Unsqueeze"(%even, %last) : (tensor<?x2x?x2xf32, ["b", "s"]>, tensor<1xi64>) -> tensor<?x2x?x2x1xf32, ["b", "s"]>
    %pairs = "onnx.Concat"(%a, %c) {axis = -1 : i64} : (tensor<?x2x?x2x1xf32, ["b", "s"]>, tensor<?x2x?x2x1xf32, ["b", "s"]>) -> tensor<?x2x?x2x2xf32, ["b", "s"]>
    %turned = "onnx.Reshape"(%pairs, %shape) : (tensor<?x2x?x2x2xf32, ["b", "s"]>, tensor<4xi64>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %p = "onnx.Mul"(%x, %cos) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1x?x4xf32, ["s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %q = "onnx.Mul"(%turned, %sin) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1x?x4xf32, ["s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %y = "onnx.Add"(%p, %q) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["x", "angle"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Halves are turned, by a table of both halves: the functions after the concatenation take one of them.

// CHECK: ^bb0(%{{.*}}, %[[ANGLE:.*]]: tensor<1x?x2xf32, ["s"]>):
// CHECK-DAG: %[[COS:.*]] = "onnx.Cos"(%[[ANGLE]]) : (tensor<1x?x2xf32, ["s"]>)
// CHECK-DAG: %[[SCALED:.*]] = "onnx.Mul"(%[[COS]], %{{.*}}) : (tensor<1x?x2xf32, ["s"]>, tensor<f32>)
// CHECK-DAG: %[[FOUR:.*]] = "onnx.Unsqueeze"(%[[SCALED]], %{{.*}})
// CHECK-DAG: %[[LEFT:.*]] = "onnx.Squeeze"(%[[FOUR]], %{{.*}})
// CHECK-DAG: %[[SIN:.*]] = "onnx.Sin"(%[[ANGLE]]) : (tensor<1x?x2xf32, ["s"]>)
// CHECK: "onnx.RotaryEmbedding"(%{{.*}}, %[[LEFT]], %[[SIN]])
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x2x?x4xf32, ["b", "s"]>, %angle: tensor<1x?x2xf32, ["s"]>):
    %zero = "llmpart.constant"() {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
    %one = "llmpart.constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %two = "llmpart.constant"() {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
    %four = "llmpart.constant"() {value = dense<[4]> : tensor<1xi64>} : () -> tensor<1xi64>
    %last = "llmpart.constant"() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
    %scale = "llmpart.constant"() {value = dense<1.5e+00> : tensor<f32>} : () -> tensor<f32>
    %twice = "onnx.Concat"(%angle, %angle) {axis = -1 : i64} : (tensor<1x?x2xf32, ["s"]>, tensor<1x?x2xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %cos0 = "onnx.Cos"(%twice) : (tensor<1x?x4xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %cos1 = "onnx.Mul"(%cos0, %scale) : (tensor<1x?x4xf32, ["s"]>, tensor<f32>) -> tensor<1x?x4xf32, ["s"]>
    %cos = "onnx.Unsqueeze"(%cos1, %one) : (tensor<1x?x4xf32, ["s"]>, tensor<1xi64>) -> tensor<1x1x?x4xf32, ["s"]>
    %sin = "onnx.Sin"(%twice) : (tensor<1x?x4xf32, ["s"]>) -> tensor<1x?x4xf32, ["s"]>
    %first = "onnx.Slice"(%x, %zero, %two, %last) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %second = "onnx.Slice"(%x, %two, %four, %last) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %minus = "onnx.Neg"(%second) : (tensor<?x2x?x2xf32, ["b", "s"]>) -> tensor<?x2x?x2xf32, ["b", "s"]>
    %turned = "onnx.Concat"(%minus, %first) {axis = -1 : i64} : (tensor<?x2x?x2xf32, ["b", "s"]>, tensor<?x2x?x2xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %p = "onnx.Mul"(%x, %cos) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1x1x?x4xf32, ["s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %q = "onnx.Mul"(%turned, %sin) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1x?x4xf32, ["s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %y = "onnx.Add"(%p, %q) : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {inputs = ["x", "angle"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
