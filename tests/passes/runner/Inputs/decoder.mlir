// A decoder of one layer (tests/passes/test_states.c).
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %g = "llmpart.weight"() {file = "w", length = 32 : i64, offset = 0 : i64} : () -> tensor<8xf32>
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %square = "llmpart.weight"() {file = "w", length = 256 : i64, offset = 0 : i64} : () -> tensor<8x8xf32>
    %wide = "llmpart.weight"() {file = "w", length = 768 : i64, offset = 0 : i64} : () -> tensor<8x24xf32>
    %narrow = "llmpart.weight"() {file = "w", length = 768 : i64, offset = 0 : i64} : () -> tensor<24x8xf32>
    %out = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<8x32xf32>
    %x = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %n = "onnx.RMSNormalization"(%x, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %q = "onnx.MatMul"(%n, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %k = "onnx.MatMul"(%n, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %v = "onnx.MatMul"(%n, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %a = "onnx.Attention"(%q, %k, %v) {bottom_right = 1 : i64, is_causal = 1 : i64, kv_num_heads = 2 : i64, q_num_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %o = "onnx.MatMul"(%a, %square) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %u = "onnx.MatMul"(%n, %wide) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x24xf32>) -> tensor<?x?x24xf32, ["b", "s"]>
    %r = "onnx.Relu"(%u) : (tensor<?x?x24xf32, ["b", "s"]>) -> tensor<?x?x24xf32, ["b", "s"]>
    %d = "onnx.MatMul"(%r, %narrow) : (tensor<?x?x24xf32, ["b", "s"]>, tensor<24x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %j = "onnx.Add"(%d, %o) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %h = "onnx.Add"(%j, %x) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "onnx.RMSNormalization"(%h, %g) {axis = -1 : i64, epsilon = 1.0e-05 : f64} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
    %logits = "onnx.MatMul"(%f, %out) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x32xf32>) -> tensor<?x?x32xf32, ["b", "s"]>
    "llmpart.return"(%logits) : (tensor<?x?x32xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["logits"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
