# activations.sh: what weights are multiplied by, as `llmpart calibrate --activations` measures it (ONNX Runtime is the
# judge), and weights that `compile --quantise-activations` rounds by it.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx
python=${LP_PYTHON:-python3}
printf '[1, 5, 9, 2, 7, 3]\n[4, 4, 8]\n[11, 2, 30, 17, 5, 6, 1, 9]\n' >"$work/documents.jsonl"

compile "$model" "$work/profiled.llmpart" --profile || finish
measure() { # measure BUNDLE FILE [option ...]
  bundle=$1 file=$2
  shift 2
  "$LLMPART" calibrate "$bundle" --data="$work/documents.jsonl" --activations="$file" "$@" 2>"$work/err" ||
    fail "calibrate --activations: exit status $?: $(head -n 3 "$work/err")"
}
measure "$work/profiled.llmpart" "$work/a.json" --threads=1
measure "$work/profiled.llmpart" "$work/b.json" --threads=2
cmp -s "$work/a.json" "$work/b.json" || fail 'two threads measure something else than one'
same 'tokens' 17 "$(number "$work/a.json" tokens)"
if "$python" -c 'import onnx, onnxruntime' 2>/dev/null; then
  count=$("$python" "$LP_SOURCE/tests/e2e/activations.py" "$model" "$work/documents.jsonl" "$work/a.json" 2>"$work/err") ||
    fail "ONNX Runtime: $(head -n 3 "$work/err")"
  [ "${count:-0}" -ge 14 ] || fail "only $count weights were compared"
else
  echo "$name: note: no Python with onnx and onnxruntime (LP_PYTHON): the means are not compared"
fi

# The bytes of the weights change, and are the same again with the same file.
rounded() { # rounded OUT [option ...]
  out=$1
  shift
  compile "$model" "$out" --dtype-device=int4 --quantise=search "$@"
}
rounded "$work/search.llmpart"
rounded "$work/weighed.llmpart" --quantise-activations="$work/a.json"
rounded "$work/again.llmpart" --quantise-activations="$work/b.json" -MD "$work/rule"
weights=device/weights.safetensors
! cmp -s "$work/search.llmpart/$weights" "$work/weighed.llmpart/$weights" || fail 'the activations change no weight'
cmp -s "$work/weighed.llmpart/$weights" "$work/again.llmpart/$weights" || fail 'the same activations give other weights'
grep -q "b.json" "$work/rule" || fail 'the file is no dependency'
sed 's/"name": "[^"]*"/"name": "other"/' "$work/a.json" | awk '/"weights"/ { print; inside = 1; next } inside && /\}/ && !done { print "  }"; done = 1; print " ]"; print "}"; exit } { print }' >"$work/other.json"
refused 'activations of another model' 'other.json: error: it names no weight that is rounded' "$LLMPART" compile "$model" \
  --device=jetson-nano --march=native -O0 --dtype-device=int4 --quantise=search --quantise-activations="$work/other.json" -o "$work/x.llmpart"
echo '{"schema": "llmpart.run/1"}' >"$work/run.json"
refused 'another document' 'run.json.*error: .*wanted schema llmpart.activations/1' "$LLMPART" compile "$model" \
  --device=jetson-nano --dtype-device=int4 --quantise=search --quantise-activations="$work/run.json" -o "$work/x.llmpart"
refused 'a bundle that marks nothing' 'error: the code does not say which of its products begins' \
  "$LLMPART" calibrate "$work/search.llmpart" --data="$work/documents.jsonl" --activations="$work/x.json"
# shellcheck disable=SC2086 # a list of options
compile "$model" "$work/cut.llmpart" $pair --scheduler=cut --cut=2 --profile &&
  refused 'a split bundle' 'error: activations are measured of a model that is wholly on the device' \
    "$LLMPART" calibrate "$work/cut.llmpart" --data="$work/documents.jsonl" --activations="$work/x.json"
wanted_status=2
refused 'activations without a search' 'quantise-activations: error: it needs --quantise=search' \
  "$LLMPART" compile "$model" --device=jetson-nano --dtype-device=int4 --quantise-activations="$work/a.json" -o "$work/x.llmpart"
finish
