# onnx.sh MODEL.onnx ...: --emit=onnx: the halves pass onnx.checker and give the whole model's logits in ONNX Runtime,
# at three cuts and interleaved; they are deterministic; unsupported models are refused. The comparison of logits needs
# Python with onnxruntime (LP_PYTHON).
. "$LP_SOURCE/tests/e2e/lib.sh"
python=${LP_PYTHON:-$LP_SOURCE/../venv/bin/python}
command -v "$python" >/dev/null || python=python3
"$python" -c 'import onnx, onnxruntime' 2>/dev/null || {
  echo "$name: note: no Python with onnx and onnxruntime (LP_PYTHON): numbers are left to backend_onnx"
  python=
}

# shellcheck disable=SC2086 # a list of options
for model in "$@"; do
  folders=
  for cut in 0 1 2; do
    compile "$model" "$work/cut$cut" $pair --scheduler=cut --cut="$cut" --emit=onnx && folders="$folders $work/cut$cut"
  done
  compile "$model" "$work/interleaved" $pair --scheduler=cut --cut=1 --pin='layer.0.attention=cloud' \
    --pin='layer.1.linear=device' --emit=onnx && folders="$folders $work/interleaved"
  [ "$(find "$work/interleaved" -name 'device*.onnx' | wc -l)" -ge 3 ] || fail "$model: the placement is not interleaved"
  compile "$model" "$work/opset17" $pair --scheduler=cut --cut=1 --opset=17 --emit=onnx && folders="$folders $work/opset17"
  [ -z "$python" ] || "$python" "$LP_SOURCE/tests/backend/onnx_halves.py" "$model" $folders >"$work/out" 2>&1 ||
    fail "$model: $(tail -n 5 "$work/out")"
  compile "$model" "$work/again" $pair --scheduler=cut --cut=1 --emit=onnx
  diff -r "$work/cut1" "$work/again" >/dev/null || fail "$model: two emissions differ"
done

echo kept >"$work/file"
refused 'a file in the way' 'file' "$LLMPART" compile "$1" --device=jetson-nano --emit=onnx -o "$work/file"
[ "$(cat "$work/file")" = kept ] || fail 'a file was replaced'
wanted_status=2 refused 'an opset' 'should be 17 or 21, found 12' "$LLMPART" compile "$1" --device=jetson-nano --emit=onnx \
  --opset=12 -o "$work/made/x"
# shellcheck disable=SC2086
refused 'groups in opset 17' 'weights in groups need --opset=21' "$LLMPART" compile "$1" $pair --scheduler=cloud-only \
  --dtype-cloud=int4 --emit=onnx --opset=17 -o "$work/made/x"
finish
