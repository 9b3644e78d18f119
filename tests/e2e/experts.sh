# experts.sh FOLDER: decoders with mixtures of experts (tests/models/experts.py), each in a folder of its own. Each
# generates ONNX Runtime's tokens, on one side, with the experts divided between two sides and, in the long part and the
# soak, cut between layers. against.sh compares their logits.
. "$LP_SOURCE/tests/e2e/lib.sh"

same_tokens() { # same_tokens BUNDLE
  for i in 1 2 3; do
    want=$(row "$folder/tokens.json" tokens "$i")
    same "$1, prompt $i" "$want" "$(tokens "$work/$1" "$(row "$folder/tokens.json" prompts "$i")" "$(length "$want")")"
  done
}

apart='--pin=*=device --pin=*.rest=cloud'
for folder in "$1"/*/; do
  model=$folder/model.onnx mixture=$(basename "$folder")
  case $mixture in gelu | swiglu-f16 | int4 | masked-int4 | *-batched) own=quick ;; *) own=soak ;; esac
  part $own && compile "$model" "$work/$mixture.llmpart" && same_tokens "$mixture.llmpart"
  # shellcheck disable=SC2086 # the pair is three options
  part $own && compile "$model" "$work/$mixture.hot.llmpart" $pair --hot-experts=1 $apart && same_tokens "$mixture.hot.llmpart"
  sampled 5 || continue
  # shellcheck disable=SC2086 # the pair is three options
  compile "$model" "$work/$mixture.split.llmpart" $pair --scheduler=cut --cut=1 && same_tokens "$mixture.split.llmpart"
done
[ -n "${mixture:-}" ] || fail "there are no models in $1"

part quick || finish
# What has no meaning here is refused by name.
change_onnx "$1/relu/model.onnx" '/op_type: "MoE"/a attribute { name: "use_sparse_mixer" i: 1 type: INT }' "$work/sparse.onnx"
refused 'use_sparse_mixer' "[(]MoE[)]: error: .*with use_sparse_mixer is not supported" \
  "$LLMPART" compile "$work/sparse.onnx" --device=host -o "$work/made/x.llmpart"
change_onnx "$1/int4/model.onnx" '/name: "normalize_routing_weights"/{n;s/1/0/}' "$work/unnormalised.onnx"
refused 'a QMoE without normalisation' "without normalize_routing_weights, where ONNX Runtime's devices differ" \
  "$LLMPART" compile "$work/unnormalised.onnx" --device=host -o "$work/made/x.llmpart"
finish
