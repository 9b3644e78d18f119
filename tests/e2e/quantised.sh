# quantised.sh MODEL.onnx TOKENS.json: weights stored in int8 and int4. The first tokens are those of the model's own
# weights, a cut changes none, and the report counts the bytes that are written. The long part has one type for each of
# these and code that is not optimised, the soak all types and optimised code.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1 lists=$2
ids=$(row "$lists" prompts 2)
want=$(row "$lists" tokens 2 | cut -d, -f1-8)

part quick && dtypes=int4 || dtypes=
part soak && dtypes="int8 int4"
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

cache_type() { # cache_type BUNDLE: of the first layer's keys
  grep -A1 '"name": "layer.0.k"' "$1/manifest.json" | sed -n 's/.*"dtype": "\(.*\)".*/\1/p'
}

# Activations rounded to int8, or with weights in bf16 to bf16: threads, a cut and code that is not optimised change no
# token, and the manifest says so. A processor without products of bf16 keeps activations in f32.
part soak && dtypes="int8 int4 bf16" || dtypes=int8
for dtype in $dtypes; do
  compile "$model" "$work/rounded.llmpart" --dtype-device=$dtype --activations=auto || continue
  all=$(tokens "$work/rounded.llmpart" "$ids" 24)
  same "$dtype, rounded activations" "$want" "$(echo "$all" | cut -d, -f1-8)"
  [ $dtype = bf16 ] || grep -q '"activations": "int8' "$work/rounded.llmpart/manifest.json" ||
    fail "the manifest does not state activations"
  same "$dtype, KV caches" f16 "$(cache_type "$work/rounded.llmpart")"
  grep -q '"kv_dtype": "f16"' "$work/rounded.llmpart/report.json" || fail 'the report does not state the KV caches'
  same "$dtype, rounded activations, two threads" "$all" "$("$LLMPART" run "$work/rounded.llmpart" --tokens="$ids" -n 24 \
    --threads=2 --ignore-eos -o json 2>/dev/null >"$work/json" && sequences "$work/json")"
  # shellcheck disable=SC2086 # a list of options
  compile "$model" "$work/cut.llmpart" $pair --scheduler=cut --cut=2 --dtype-device=$dtype --dtype-cloud=$dtype -O0 \
    --activations=auto &&
    same "$dtype, rounded activations, two processes" "$all" "$(tokens "$work/cut.llmpart" "$ids" 24)"
done

# KV caches keep f32 where that is asked for.
part quick && compile "$model" "$work/wide.llmpart" --dtype-device=int8 --activations=auto --kv-dtype=f32 &&
  same 'KV caches in f32' f32 "$(cache_type "$work/wide.llmpart")"

# On a processor the embedding's table has the type of the weights, and a tied one is stored once, as the report counts
# it; a cut changes no token.
cpu="--device=epyc-9654 --march=native"
part soak && dtypes="int8 bf16 int4" || dtypes=int8
for dtype in $dtypes; do
  # shellcheck disable=SC2086 # a list of options
  compile "$model" "$work/table.llmpart" $cpu --dtype-device=$dtype --report="$work/table.json" || continue
  all=$(tokens "$work/table.llmpart" "$ids" 24)
  same "$dtype, table" "$want" "$(echo "$all" | cut -d, -f1-8)"
  same "$dtype, table, two threads" "$all" "$("$LLMPART" run "$work/table.llmpart" --tokens="$ids" -n 24 --threads=2 \
    --ignore-eos -o json 2>/dev/null >"$work/json" && sequences "$work/json")"
  # shellcheck disable=SC2086 # a list of options
  compile "$model" "$work/cut.llmpart" $cpu --cloud=epyc-9654 --link=lan --scheduler=cut --cut=2 --dtype-device=$dtype \
    --dtype-cloud=$dtype && same "$dtype, table, two processes" "$all" "$(tokens "$work/cut.llmpart" "$ids" 24)"
  file=$(wc -c <"$work/table.llmpart/device/weights.safetensors")
  planned=$(number "$work/table.json" device_weight_bytes)
  awk -v file="$file" -v planned="$planned" 'BEGIN { exit !(planned > 0.95 * file && planned < 1.05 * file) }' ||
    fail "$dtype, table: the report counts $planned bytes of weights, the file has $file"
done

# Code for a GPU keeps the type of a table, and stores a tied one once if the product has the same type.
part quick && dtypes="f32 f16" || dtypes=
for dtype in $dtypes; do
  compile "$LP_SOURCE/tests/models/gpt2/model.onnx" "$work/gpu.llmpart" --device=jetson-nano-p1 --dtype-device=$dtype \
    --report="$work/gpu.json" || continue
  file=$(wc -c <"$work/gpu.llmpart/device/weights.safetensors")
  planned=$(number "$work/gpu.json" device_weight_bytes)
  awk -v file="$file" -v planned="$planned" 'BEGIN { exit !(planned > 0.95 * file && planned < 1.05 * file) }' ||
    fail "$dtype, GPU: the report counts $planned bytes of weights, the file has $file"
done

# Half of a byte and an eighth for scales, against four bytes; this machine is a GPU, so the embedding's table stays.
part quick && compile "$model" "$work/f32.llmpart" && {
  full=$(wc -c <"$work/f32.llmpart/device/weights.safetensors")
  small=$(wc -c <"$work/int4.llmpart/device/weights.safetensors")
  [ $((small * 3)) -lt "$full" ] || fail "int4 weights take $small bytes of $full"
}
finish
