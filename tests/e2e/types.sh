# --dtype-device=auto chooses the most precise type with which the SLA is met; a more precise one would miss it.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/examples/default-model/model.onnx
pair="--device=jetson-nano-p1 --cloud=v100s-p1 --link=wifi --isl=64 --osl=32 --objective=cost --march=native"

chosen() { sed -n "/^  \"$2\": {/,/}/s/^    \"weight_dtype\": \"\(.*\)\",\$/\1/p" "$1"; } # chosen REPORT SIDE

# most_precise WANTED [option ...]: the choice among what a Jetson Nano has (no bf16); all before it must be infeasible
most_precise() {
  wanted=$1
  shift
  "$LLMPART" compile "$model" $pair --dtype-device=auto "$@" --plan-only -o "$work/auto.json" 2>"$work/err" ||
    fail "auto $*: exit status $?: $(head -n 3 "$work/err")"
  same "the type with $*" "$wanted" "$(chosen "$work/auto.json" device)"
  same "the other side with $*" model "$(chosen "$work/auto.json" cloud)"
  for type in f32 f16 int8 int4; do
    [ "$type" != "${wanted#model}" ] && [ "$type$wanted" != f32model ] || break
    "$LLMPART" compile "$model" $pair --dtype-device=$type "$@" --plan-only -o "$work/one.json" 2>/dev/null
    same "$type with $*" 3 $?
  done
}
most_precise model --tpot=2ms
# The round trip is 4 ms, so that the cloud does not give the first token in 3.
most_precise f16 --ttft=3ms --tpot=0.2ms
most_precise int8 --ttft=3ms --tpot=0.1ms
most_precise int4 --ttft=3ms --tpot=0.06ms
wanted_status=3
refused 'types do not help' 'TTFT' "$LLMPART" compile "$model" $pair --dtype-device=auto --dtype-cloud=auto --ttft=1us -o "$work/made/out.llmpart"

# Both sides: the error that both together add is least, here none where the memory holds all.
"$LLMPART" compile "$model" $pair --dtype-device=auto --dtype-cloud=auto --scheduler=cut --cut=4 --tpot=6ms --plan-only -o "$work/both.json" ||
  fail 'a cut through the middle cannot be planned'
same 'no type is needed' 'model model' "$(chosen "$work/both.json" device) $(chosen "$work/both.json" cloud)"

# What is compiled is what was chosen.
compile "$model" "$work/auto.llmpart" $pair --dtype-device=auto --ttft=3ms --tpot=0.2ms
compile "$model" "$work/f16.llmpart" $pair --dtype-device=f16 --ttft=3ms --tpot=0.2ms
cmp "$work/auto.llmpart/device/weights.safetensors" "$work/f16.llmpart/device/weights.safetensors" || fail 'the weights are of another type'
finish
