# Models that cannot be compiled: each is refused with one located message, and no file is left.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v protoc >/dev/null || skip 'there is no protoc'
good=$LP_SOURCE/tests/models/llama/model.onnx

refuse() { # refuse WHAT PATTERN MODEL [option ...]
  what=$1 pattern=$2 model=$3
  shift 3
  refused "$what" "$pattern" "$LLMPART" compile "$model" --device=jetson-nano "$@" -o "$work/made/out.llmpart"
}

# graph FILE BODY: a model around the graph's body, which has an input `ids` and an output `y`.
graph() {
  onnx "$1" <<TEXT
ir_version: 8
opset_import { domain: "" version: 17 }
graph {
  name: "g"
  input { name: "ids" type { tensor_type { elem_type: 7 shape { dim { dim_param: "batch" } dim { dim_param: "seq" } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_param: "batch" } dim { dim_param: "seq" } dim { dim_value: 4 } } } } }
  $2
}
TEXT
}
embedding='initializer { name: "table" dims: 8 dims: 4 data_type: 1 data_location: EXTERNAL external_data { key: "location" value: "absent.data" } external_data { key: "length" value: "128" } }
  node { name: "/embed" op_type: "Gather" input: "table" input: "ids" output: "x" }'

refuse 'no such file' "absent.onnx: error: .*No such file" "$work/absent.onnx"
refuse 'a folder' "error: " "$work"
: >"$work/empty.onnx"
refuse 'an empty file' "empty.onnx: error: " "$work/empty.onnx"
echo 'this is no model at all, only a line of text' >"$work/text.onnx"
refuse 'not a protobuf' "text.onnx: error: " "$work/text.onnx"
size=$(wc -c <"$good")
for part in 10 1000 $((size / 2)) $((size - 1)); do
  head -c "$part" "$good" >"$work/short.onnx"
  refuse "truncated after $part bytes" "short.onnx: (node .*)?error: " "$work/short.onnx"
done

printf 'ir_version: 8 opset_import { domain: "" version: 17 }' | onnx "$work/none.onnx"
refuse 'no graph' "none.onnx: error: .*graph" "$work/none.onnx"
printf 'ir_version: 8 opset_import { domain: "" version: 17 } graph { name: "g" }' | onnx "$work/nothing.onnx"
refuse 'an empty graph' "nothing.onnx: error: " "$work/nothing.onnx"
printf 'ir_version: 8 opset_import { domain: "" version: 99 } graph { name: "g" node { op_type: "Relu" input: "x" output: "y" } input { name: "x" } output { name: "y" } }' |
  onnx "$work/opset.onnx"
refuse 'an opset of the future' "opset.onnx: (node .*)?error: " "$work/opset.onnx"

graph "$work/cycle.onnx" 'node { name: "/a" op_type: "Relu" input: "v" output: "u" }
  node { name: "/b" op_type: "Relu" input: "u" output: "v" }
  node { name: "/c" op_type: "Add" input: "u" input: "v" output: "y" }'
refuse 'a cycle' "cycle.onnx: node '/[abc]' \((Relu|Add)\): error: .*cycle" "$work/cycle.onnx"
graph "$work/undefined.onnx" 'node { name: "/a" op_type: "Relu" input: "nowhere" output: "y" }'
refuse 'an undefined value' "undefined.onnx: node '/a' \(Relu\): error: .*nowhere" "$work/undefined.onnx"
graph "$work/unknown.onnx" 'node { name: "/odd" op_type: "Frobnicate" input: "ids" output: "y" }'
refuse 'an unknown operator' "unknown.onnx: node '/odd' \(Frobnicate\): error: " "$work/unknown.onnx"
graph "$work/domain.onnx" 'node { name: "/odd" op_type: "Relu" domain: "org.example" input: "ids" output: "y" }'
refuse 'an unknown domain' "domain.onnx: node '/odd' \(Relu\): error: .*org.example" "$work/domain.onnx"
graph "$work/arity.onnx" 'node { name: "/many" op_type: "Relu" input: "ids" input: "ids" output: "y" }'
refuse 'too many operands' "arity.onnx: node '/many' \(Relu\): error: " "$work/arity.onnx"
graph "$work/twice.onnx" 'node { name: "/a" op_type: "Relu" input: "ids" output: "y" }
  node { name: "/b" op_type: "Neg" input: "ids" output: "y" }'
refuse 'a value that is defined twice' "twice.onnx: (node '/[ab]' .*)?error: .*y" "$work/twice.onnx"

graph "$work/data.onnx" 'initializer { name: "w" dims: 8 dims: 4 data_type: 1 raw_data: "0123456789" }
  node { name: "/embed" op_type: "Gather" input: "w" input: "ids" output: "y" }'
refuse 'a tensor of the wrong size' "data.onnx: .*error: .*w" "$work/data.onnx"
graph "$work/shapes.onnx" 'initializer { name: "w" dims: 3 dims: 2 data_type: 1 float_data: [1, 2, 3, 4, 5, 6] }
  initializer { name: "table" dims: 2 dims: 5 data_type: 1 float_data: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] }
  node { name: "/embed" op_type: "Gather" input: "table" input: "ids" output: "x" }
  node { name: "/project" op_type: "MatMul" input: "x" input: "w" output: "y" }'
refuse 'sizes that do not fit' "shapes.onnx: node '/project' \(MatMul\): error: .*5.*3" "$work/shapes.onnx"

graph "$work/external.onnx" "$embedding
  node { name: \"/y\" op_type: \"Relu\" input: \"x\" output: \"y\" }"
refuse 'missing external data' "absent.data" "$work/external.onnx"
printf '0123456789' >"$work/absent.data"
refuse 'external data that is too short' "absent.data" "$work/external.onnx"
external='data_location: EXTERNAL external_data { key: "location" value: "scaled.data" } external_data { key: '
graph "$work/scaled.onnx" "initializer { name: \"q\" dims: 8 dims: 1100 data_type: 3 $external \"length\" value: \"8800\" } }
  initializer { name: \"scale\" dims: 1100 data_type: 1 $external \"offset\" value: \"8800\" } }
  initializer { name: \"p\" dims: 1100 dims: 4 data_type: 1 $external \"offset\" value: \"13200\" } }
  node { name: \"/scaled\" op_type: \"DequantizeLinear\" input: \"q\" input: \"scale\" output: \"w\" attribute { name: \"axis\" i: 1 type: INT } }
  node { name: \"/embed\" op_type: \"Gather\" input: \"w\" input: \"ids\" output: \"x\" }
  node { name: \"/project\" op_type: \"MatMul\" input: \"x\" input: \"p\" output: \"y\" }"
head -c 30800 /dev/zero >"$work/scaled.data"
"$LLMPART" compile "$work/scaled.onnx" --device=host -o "$work/scaled" >"$work/out" 2>&1 || fail "finite scales in a file: $(cat "$work/out")"
printf '\000\000\300\177' | dd of="$work/scaled.data" bs=1 seek=13196 conv=notrunc 2>/dev/null
refused 'a scale in a file that is a NaN' "node '/scaled' \(DequantizeLinear\): error: .*has a scale that is not finite" \
  "$LLMPART" compile "$work/scaled.onnx" --device=host -o "$work/made/out.llmpart"
graph "$work/escape.onnx" "$(echo "$embedding" | sed 's/absent.data/..\/..\/..\/..\/etc\/passwd/')
  node { name: \"/y\" op_type: \"Relu\" input: \"x\" output: \"y\" }"
refuse 'external data outside the folder' "error: .*passwd" "$work/escape.onnx"
finish
