# This machine is profiled, `host` predicts from the measurements, and a bundle of `compile --profile` reports the time
# of each operator.
. "$LP_SOURCE/tests/e2e/lib.sh"
export XDG_CACHE_HOME="$work/cache"
unset LLMPART_HOST
mkdir "$XDG_CACHE_HOME"

"$LLMPART" hw profile --budget=0ms --threads=1 -o "$work/host.yaml" 2>"$work/err" || fail "profile: $(head -n 3 "$work/err")"
grep -q 'measurements in' "$work/err" || fail "profile does not say what it did: $(cat "$work/err")"
for wanted in 'machine: "host"' '^measured:' 'op: linear' 'op: attention' 'op: norm' 'op: embedding'; do
  grep -q "$wanted" "$work/host.yaml" || fail "the profile lacks '$wanted'"
done
"$LLMPART" hw show host -o json >"$work/host.json" || fail 'host does not show'
grep -q '"predictor": "fitted"' "$work/host.json" || fail 'host does not use the profile'
"$LLMPART" hw predict "$work/host.yaml" --op=linear --m=1 --n=128 --k=128 --dtype=f32 >"$work/out" || fail 'no prediction'
grep -q '0.00 octaves' "$work/out" || fail "a measured operator is not near: $(cat "$work/out")"

# Without a network there are no messages to measure; the rest is.
if unshare -rn true 2>/dev/null; then
  unshare -rn "$LLMPART" hw profile --budget=0ms --threads=1 -o "$work/alone.yaml" 2>"$work/err" || fail "profile without a network: $(head -n 3 "$work/err")"
  grep -q 'warning: messages between two processes could not be measured' "$work/err" || fail "it does not say that messages are missing: $(cat "$work/err")"
  grep -q '^message' "$work/alone.yaml" && fail 'messages without a network'
  grep -q '^measured:' "$work/alone.yaml" || fail 'no profile without a network'
fi

compile "$LP_SOURCE/tests/models/llama/model.onnx" "$work/p.llmpart" --device=host --profile
"$LLMPART" bench "$work/p.llmpart" --profile -p 8 -n 4 -r 3 -t 1 -o json >"$work/parts.json" || fail 'bench --profile fails'
grep -q '"schema": "llmpart.profile/1"' "$work/parts.json" || fail 'no profile'
[ "$(grep -c '"name": "op.attention ' "$work/parts.json")" = 6 ] || fail 'attention of 3 layers is not there twice'
cp -R "$work/p.llmpart" "$work/wrong.llmpart"
sed 's/"parts": *\[/&"op.nothing one", /' "$work/p.llmpart/manifest.json" >"$work/wrong.llmpart/manifest.json"
seal "$work/wrong.llmpart"
"$LLMPART" bench "$work/wrong.llmpart" --profile -p 8 -n 0 -r 1 -t 1 >"$work/out" 2>"$work/err" && fail 'a part too many passes'
grep -q "model.so: error: the code was compiled for another manifest" "$work/err" ||
  fail "a part too many: $(cat "$work/err")"
compile "$LP_SOURCE/tests/models/llama/model.onnx" "$work/b.llmpart"
"$LLMPART" bench "$work/b.llmpart" --profile -p 8 -n 0 -r 3 -t 1 >"$work/out" || fail 'segments are not timed'
grep -q 'lp_segment_' "$work/out" || fail 'no segment'
same 'tokens of the profiled bundle' "$(tokens "$work/b.llmpart" 1,2,3 8)" "$(tokens "$work/p.llmpart" 1,2,3 8)"
finish
