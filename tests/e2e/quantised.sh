# quantised.sh MODEL.onnx TOKENS.json: weights stored in int8 and int4. The first tokens are those of the model's own
# weights, a cut changes none, and the report counts the bytes that are written.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1 lists=$2
ids=$(row "$lists" prompts 2)
want=$(row "$lists" tokens 2 | cut -d, -f1-8)

part quick && dtypes=int4 || dtypes=
part long && dtypes="int8 $dtypes"
for dtype in $dtypes; do
  compile "$model" "$work/$dtype.llmpart" --dtype-device=$dtype --report="$work/$dtype.json" || continue
  same "$dtype" "$want" "$(tokens "$work/$dtype.llmpart" "$ids" 8)"
  all=$(tokens "$work/$dtype.llmpart" "$ids" 24)
  same "$dtype, two threads" "$all" "$("$LLMPART" run "$work/$dtype.llmpart" --tokens="$ids" -n 24 --threads=2 --ignore-eos \
    -o json 2>/dev/null >"$work/json" && sequences "$work/json")"
  # shellcheck disable=SC2086 # a list of options
  compile "$model" "$work/cut.llmpart" $pair --scheduler=cut --cut=2 --dtype-device=$dtype --dtype-cloud=$dtype &&
    same "$dtype, two processes" "$all" "$(tokens "$work/cut.llmpart" "$ids" 24)"
  file=$(wc -c <"$work/$dtype.llmpart/device/weights.safetensors")
  planned=$(number "$work/$dtype.json" device_weight_bytes)
  awk -v file="$file" -v planned="$planned" 'BEGIN { exit !(planned > 0.95 * file && planned < 1.05 * file) }' ||
    fail "$dtype: the report counts $planned bytes of weights, the file has $file"
done

# Half of a byte and an eighth for scales, against four bytes; the embedding's table stays as it is.
part quick && compile "$model" "$work/f32.llmpart" && {
  full=$(wc -c <"$work/f32.llmpart/device/weights.safetensors")
  small=$(wc -c <"$work/int4.llmpart/device/weights.safetensors")
  [ $((small * 3)) -lt "$full" ] || fail "int4 weights take $small bytes of $full"
}
finish
