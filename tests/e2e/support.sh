# `support` reports each operator; it handles decoders that are wrapped into a search, and the option that selects them;
# and its answers agree with `compile` and `run`.
. "$LP_SOURCE/tests/e2e/lib.sh"

agrees() { # agrees MODEL: the table's verdict, with its reason, is what compiling and running come to
  "$LLMPART" support "$1" -o json >"$work/table" || fail "$1: support"
  want=runs
  grep -q '"runs": true' "$work/table" || want=$(sed -n 's/^  "reason": "\(.*\)",$/\1/p' "$work/table")
  found=runs
  if ! "$LLMPART" compile "$1" --device=jetson-nano --march=native -O0 -o "$work/agrees.llmpart" >"$work/out" 2>"$work/err"; then
    grep -q '"compiles": false' "$work/table" || fail "$1: support says that it compiles: $(head -n 3 "$work/err")"
    found=$(sed -n 's/^.*error: //p' "$work/err" | head -n 1)
  elif ! "$LLMPART" run "$work/agrees.llmpart" --tokens=1 -n 1 --threads=1 >"$work/out" 2>"$work/err"; then
    grep -q '"compiles": true' "$work/table" || fail "$1: support says that it does not compile"
    found=$(sed -n 's/^.*error: //p' "$work/err" | head -n 1)
  fi
  rm -rf "$work/agrees.llmpart"
  same "$1: what support says, and what becomes of it" "$want" "$found"
}
if part quick; then
  agrees "$LP_SOURCE/tests/models/plain-mlp/model.onnx"
  agrees "$LP_SOURCE/tests/models/families/whisper-decoder-script-past/model.onnx"
  folder=$LP_SOURCE/tests/models/huggingface/llama-own-head
  agrees "$folder"
  mkdir "$work/quantised"
  cp "$folder/model.safetensors" "$work/quantised"
  sed '1s/{/{"quantization_config": {"quant_method": "hqq"},/' "$folder/config.json" >"$work/quantised/config.json"
  agrees "$work/quantised"
  same 'a quantised folder' "quantization_config: quantised weights ('hqq') are not supported" "$found"
  "$LLMPART" verify "$folder" --against=reference >"$work/out" 2>&1 || fail "verify of a folder: $(tail -n 3 "$work/out")"
  refused 'verify of a folder by ONNX Runtime' 'is no ONNX model' "$LLMPART" verify "$folder" --against=onnxruntime
  agrees "$LP_SOURCE/tests/models/families/bert-script/model.onnx"
  case $found in "the tokens attend to later ones, so the model encodes and cannot generate text"*) ;; *) fail "an encoder: $found" ;; esac
fi
if part long || part soak; then
  for model in "$LP_SOURCE"/tests/models/*/model.onnx "$LP_SOURCE"/tests/models/families/*/model.onnx; do
    sampled 4 || continue
    agrees "$model"
  done
fi
part quick || finish
command -v protoc >/dev/null || skip 'there is no protoc'

"$LLMPART" support "$LP_SOURCE/tests/models/llama/model.onnx" >"$work/out" || fail 'support'
grep -Eq '^ai.onnx.MatMul +14 +28  runs$' "$work/out" || fail "MatMul: $(grep MatMul "$work/out")"
grep -q '^compiles$' "$work/out" || fail 'llama does not compile'
grep -Eq '^100.0 % of the FLOPs are in recognised layers$' "$work/out" || fail "layers: $(tail -n 1 "$work/out")"

onnx "$work/search.onnx" <<'TEXT'
ir_version: 8
opset_import { domain: "" version: 17 }
opset_import { domain: "com.microsoft" version: 1 }
graph {
  name: "wrapper"
  node {
    name: "/search" op_type: "GreedySearch" domain: "com.microsoft" input: "input_ids" input: "max" output: "sequences"
    attribute { name: "decoder" type: GRAPH g {
      name: "decoder"
      node { name: "/embed" op_type: "Gather" input: "table" input: "input_ids" output: "x" }
      node { name: "/head" op_type: "Relu" input: "x" output: "logits" }
      input { name: "input_ids" type { tensor_type { elem_type: 7 shape { dim { dim_param: "batch" } dim { dim_param: "seq" } } } } }
      output { name: "logits" type { tensor_type { elem_type: 1 shape { dim { dim_param: "batch" } dim { dim_param: "seq" } dim { dim_value: 2 } } } } }
    } }
  }
  initializer { name: "table" dims: 2 dims: 2 data_type: 1 float_data: 1 float_data: 2 float_data: 3 float_data: 4 }
  input { name: "input_ids" type { tensor_type { elem_type: 6 shape { dim { dim_param: "batch" } dim { dim_param: "seq" } } } } }
  input { name: "max" type { tensor_type { elem_type: 6 shape { dim { dim_value: 1 } } } } }
  output { name: "sequences" type { tensor_type { elem_type: 6 shape { dim { dim_param: "batch" } dim { dim_param: "n" } } } } }
}
TEXT
refused 'a search' "node '/search' \(GreedySearch\): error: operator 'GreedySearch' is not supported \[com.microsoft, opset 1\]" \
  "$LLMPART" import "$work/search.onnx"
grep -q "note: its attribute 'decoder' holds a graph of 2 nodes: --subgraph=decoder compiles that" "$work/err" ||
  fail "no note: $(cat "$work/err")"
"$LLMPART" support "$work/search.onnx" -o json >"$work/out" || fail 'support of a search'
for text in '"schema": "llmpart.support/1"' '"compiles": false' '"runs": false' '"name": "GreedySearch"' '"status": "refused"'; do
  grep -q -e "$text" "$work/out" || fail "no $text: $(cat "$work/out")"
done
"$LLMPART" import "$work/search.onnx" --subgraph=decoder >"$work/out" || fail 'import --subgraph'
grep -q 'onnx.Gather' "$work/out" || fail "the decoder was not imported: $(cat "$work/out")"
"$LLMPART" support "$work/search.onnx" --subgraph=decoder >"$work/out" || fail 'support --subgraph'
grep -q '^compiles$' "$work/out" || fail "the decoder does not compile: $(cat "$work/out")"
"$LLMPART" compile "$work/search.onnx" --subgraph=decoder --device=jetson-nano --emit=op-ir -o "$work/op.mlir" || fail 'compile --subgraph'
refused 'no such attribute' "no node has a graph attribute 'encoder'" "$LLMPART" import "$work/search.onnx" --subgraph=encoder
finish
