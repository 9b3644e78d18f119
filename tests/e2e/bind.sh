# An input that decides a size: it is refused with the option that helps, bound by that option, and bound by verify to
# the values of the data set.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v protoc >/dev/null || skip 'there is no protoc'

tensor() { # tensor FILE: encodes the TensorProto in text form on stdin
  protoc --encode=onnx.TensorProto --proto_path="$onnx_proto" onnx/onnx.proto >"$1" 2>"$work/err" ||
    fail "protoc: $(head -n 2 "$work/err")"
}

test=$work/suite/reshape
mkdir -p "$test/test_data_set_0" "$work/suite/sizes/test_data_set_0"
onnx "$test/model.onnx" <<'TEXT'
ir_version: 8
opset_import { domain: "" version: 17 }
graph {
  name: "g"
  node { name: "/reshape" op_type: "Reshape" input: "x" input: "shape" output: "y" }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 6 } } } } }
  input { name: "shape" type { tensor_type { elem_type: 7 shape { dim { dim_value: 2 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_param: "m" } dim { dim_param: "n" } } } } }
}
TEXT
numbers='float_data: 1 float_data: 2 float_data: 3 float_data: 4 float_data: 5 float_data: 6'
echo "dims: 6 data_type: 1 $numbers" | tensor "$test/test_data_set_0/input_0.pb"
echo 'dims: 2 data_type: 7 int64_data: 2 int64_data: -1' | tensor "$test/test_data_set_0/input_1.pb"
echo "dims: 2 dims: 3 data_type: 1 $numbers" | tensor "$test/test_data_set_0/output_0.pb"
# Everything folds: the constants still leave through code.
onnx "$work/suite/sizes/model.onnx" <<'TEXT'
ir_version: 8
opset_import { domain: "" version: 17 }
graph {
  name: "g"
  node { name: "/shape" op_type: "Shape" input: "x" output: "y" }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 6 } } } } }
  output { name: "y" type { tensor_type { elem_type: 7 shape { dim { dim_value: 1 } } } } }
}
TEXT
cp "$test/test_data_set_0/input_0.pb" "$work/suite/sizes/test_data_set_0"
echo 'dims: 1 data_type: 7 int64_data: 6' | tensor "$work/suite/sizes/test_data_set_0/output_0.pb"

refused 'an unknown shape' "node '/reshape' \(Reshape\): error: .*\('shape'\).*\[ai.onnx, opset 17\]" \
  "$LLMPART" import "$test/model.onnx"
grep -q 'note: --bind=shape=VALUES makes this input a constant' "$work/err" || fail "no note: $(cat "$work/err")"
"$LLMPART" import "$test/model.onnx" --bind=shape=3,2 >"$work/out" || fail 'import --bind'
grep -q 'tensor<3x2xf32>' "$work/out" || fail "the shape was not bound: $(cat "$work/out")"
"$LLMPART" import "$test/model.onnx" --bind=shape="$test/test_data_set_0/input_1.pb" >"$work/out" || fail 'import --bind=.pb'
grep -q 'tensor<2x3xf32>' "$work/out" || fail "the shape was not bound from a file: $(cat "$work/out")"
refused 'a name that is none' "the model has no input 'shap'" "$LLMPART" import "$test/model.onnx" --bind=shap=1
refused 'too many values' "found 3 values for a tensor of 2" "$LLMPART" import "$test/model.onnx" --bind=shape=1,2,3
refused 'no number' "'six' is not a whole number" "$LLMPART" import "$test/model.onnx" --bind=shape=six,1
refused 'the same input twice' "bound twice" "$LLMPART" import "$test/model.onnx" --bind=shape=6,1 --bind=shape=1,6
wanted_status=2 refused 'no value' "is not NAME=VALUES" "$LLMPART" import "$test/model.onnx" --bind=shape

"$LLMPART" verify --suite="$work/suite" >"$work/out" || fail "verify: $(cat "$work/out")"
grep -q '^reshape *passed, bound: shape$' "$work/out" || fail "verify did not bind: $(cat "$work/out")"
grep -q '^sizes *passed$' "$work/out" || fail "a constant result: $(cat "$work/out")"
"$LLMPART" verify "$test/model.onnx" --test-data="$test" --bind=shape=2,3 -o json >"$work/out" || fail 'verify --bind'
grep -q '"status": "passed", "reason": null,' "$work/out" || fail "verify --bind: $(cat "$work/out")"
finish
