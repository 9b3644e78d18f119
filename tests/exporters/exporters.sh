# A small part of the exporters' table (table.py): what docs/onnx.md says of these cases is what becomes of them. The
# exporters are those of the long tests' packages (LP_PYTHON).
. "$LP_SOURCE/tests/e2e/lib.sh"
python=${LP_PYTHON:-python3}
"$python" -c 'import onnx, onnxruntime, torch, transformers' 2>/dev/null || skip 'there is no Python with torch, transformers and onnxruntime (LP_PYTHON)'
"$python" "$LP_SOURCE/tests/exporters/table.py" "$LLMPART" "$work/cases" 'llama.dynamo.f32' 'gemma2.script.f32' 'qwen3.script.f32' \
  'phi.script.f32' --expect="$LP_SOURCE/docs/onnx.md" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
finish
