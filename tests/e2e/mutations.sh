# Changed manifests with a seal that fits: each run refuses the bundle, or gives the text of the unchanged one. $1: the
# program that changes and runs them; MUTATIONS: how many of each bundle.
. "$LP_SOURCE/tests/e2e/lib.sh"
mutations=$1

mutate() { # mutate NAME SEED COUNT
  cp -r "$work/$1.llmpart" "$work/changed.llmpart"
  "$mutations" "$work/changed.llmpart" "$2" "${MUTATIONS:-$3}" 6 >"$work/found" 2>&1 || fail "$1, seed $2: $(tail -n 12 "$work/found")"
  echo "$1, seed $2: $(tail -n 1 "$work/found")"
  rm -rf "$work/changed.llmpart"
}

models=$LP_SOURCE/tests/models
# shellcheck disable=SC2086 # a list of options
compile "$models/llama/model.onnx" "$work/split.llmpart" $pair --scheduler=cut --cut=1
if part quick; then
  mutate split 1 300
fi
if part long || part soak; then
  part soak && count=1500 || count=150
  compile "$models/gpt2/model.onnx" "$work/device.llmpart"
  # shellcheck disable=SC2086 # a list of options
  compile "$models/llama/model.onnx" "$work/exits.llmpart" $pair --scheduler=cut --cut=2 --exits=1
  three="--place=phone=host --place=edge=host --place=server=host --link=lan --march=native"
  # shellcheck disable=SC2086 # a list of options
  "$LLMPART" compile "$models/llama/model.onnx" ${LP_LEVEL:-} $three --pin='*=phone' --pin='layer.1.*=edge' --pin='layer.2.*=server' -o "$work/places.llmpart" 2>"$work/err" || fail "places: $(cat "$work/err")"
  # shellcheck disable=SC2086 # a list of options
  "$LLMPART" compile "$models/llama/model.onnx" ${LP_LEVEL:-} $three --exits=1 --pin='layer.1.*=edge' --pin='layer.2.*=server' -o "$work/chain.llmpart" 2>"$work/err" || fail "chain: $(cat "$work/err")"
  # shellcheck disable=SC2086 # a list of options
  compile "$models/llama/model.onnx" "$work/ranks.llmpart" $pair --scheduler=cut --cut=1 --ranks=2
  mutate ranks 7 $((count * 4 / 3))
  mutate places 5 $count
  mutate chain 6 $count
  mutate split 2 $count
  mutate device 3 $count
  mutate exits 4 $count
fi
finish
