# A decoder with attention as one operator keeps KV caches, has op.attention as its only attention, and generates the
# tokens that ONNX Runtime does.
. "$LP_SOURCE/tests/e2e/lib.sh"
for model in "$LP_SOURCE"/tests/conformance/decoders/*.onnx; do
  what=$(basename "$model" .onnx)
  compile "$model" "$work/op.mlir" --emit=op-ir || continue
  for count in '1 attention' '2 kv_append' '0 matmul' '0 softmax'; do
    found=$(grep -c "\"op.${count#* }\"" "$work/op.mlir")
    [ "$found" = "${count%% *}" ] || fail "$what: $found op.${count#* }, ${count%% *} wanted"
  done
  all=$(cat "${model%.onnx}.tokens")
  part quick && types=f32 || types=
  part long && types="$types f16"
  for type in $types; do
    compile "$model" "$work/d.llmpart" --kv-dtype=$type || continue
    same "$what, $type" "$(echo "$all" | cut -d, -f5-)" "$(tokens "$work/d.llmpart" "$(echo "$all" | cut -d, -f1-4)" 12)"
  done
done
finish
