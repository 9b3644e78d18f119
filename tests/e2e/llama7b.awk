# The text form of an ONNX model of LLaMA2-7B's shape: 32 layers, f16 weights in `weights.data`, which need not be
# there.
function weight(name, rows, columns,    bytes) {
  bytes = 2 * rows * (columns ? columns : 1)
  printf "initializer { name: \"%s\" dims: %d %s data_type: 10 data_location: EXTERNAL", name, rows, columns ? "dims: " columns : ""
  printf " external_data { key: \"location\" value: \"weights.data\" } external_data { key: \"offset\" value: \"%.0f\" }", offset
  printf " external_data { key: \"length\" value: \"%.0f\" } }\n", bytes
  offset += bytes
}
function node(type, inputs, output, attributes,    i, n, names) {
  printf "node { name: \"/%s\" op_type: \"%s\"", output, type
  n = split(inputs, names, " ")
  for (i = 1; i <= n; i++) printf " input: \"%s\"", names[i]
  printf " output: \"%s\" %s }\n", output, attributes
}
function int_attr(name, value) { return " attribute { name: \"" name "\" type: INT i: " value " }" }
function norm(x, w, y) { weight(w, hidden); node("RMSNormalization", x " " w, y, " attribute { name: \"epsilon\" type: FLOAT f: 1e-05 }") }
function linear(x, w, k, n, y) { weight(w, k, n); node("MatMul", x " " w, y, "") }
function rotary(x, y) { node("RotaryEmbedding", x " cos sin position_ids", y, int_attr("num_heads", heads)) }
function value(kind, name, type, last) {
  printf "%s { name: \"%s\" type { tensor_type { elem_type: %d shape { dim { dim_param: \"batch\" } dim { dim_param: \"sequence\" } %s } } } }\n",
         kind, name, type, last ? "dim { dim_value: " last " }" : ""
}
BEGIN {
  hidden = 4096; heads = 32; ffn = 11008; vocab = 32000
  print "ir_version: 10 opset_import { domain: \"\" version: 23 } graph { name: \"llama2-7b\""
  value("input", "input_ids", 7, 0)
  value("input", "position_ids", 7, 0)
  value("output", "logits", 10, vocab)
  weight("cos", 4096, 64)
  weight("sin", 4096, 64)
  weight("embedding", vocab, hidden)
  node("Gather", "embedding input_ids", "h0", "")
  for (i = 0; i < 32; i++) {
    l = "l" i "."
    norm("h" i, l "norm1.weight", l "x")
    linear(l "x", l "q.weight", hidden, hidden, l "q")
    linear(l "x", l "k.weight", hidden, hidden, l "k")
    linear(l "x", l "v.weight", hidden, hidden, l "v")
    rotary(l "q", l "qr")
    rotary(l "k", l "kr")
    node("Attention", l "qr " l "kr " l "v", l "attention",
         int_attr("is_causal", 1) int_attr("q_num_heads", heads) int_attr("kv_num_heads", heads))
    linear(l "attention", l "o.weight", hidden, hidden, l "o")
    node("Add", "h" i " " l "o", l "r", "")
    norm(l "r", l "norm2.weight", l "y")
    linear(l "y", l "gate.weight", hidden, ffn, l "gate")
    linear(l "y", l "up.weight", hidden, ffn, l "up")
    node("Sigmoid", l "gate", l "sigmoid", "")
    node("Mul", l "gate " l "sigmoid", l "silu", "")
    node("Mul", l "silu " l "up", l "product", "")
    linear(l "product", l "down.weight", ffn, hidden, l "down")
    node("Add", l "r " l "down", "h" (i + 1), "")
  }
  norm("h32", "norm.weight", "z")
  linear("z", "head.weight", hidden, vocab, "logits")
  print "}"
}
