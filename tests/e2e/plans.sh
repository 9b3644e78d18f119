# A bundle of several plans: short and long prompts take different ones, all give the tokens of a bundle with one plan,
# and the measured link decides too.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx
slas="--device-memory=200kB --ttft=60ms --tpot=45ms --isl=16 --osl=8 --link=rtt=20ms,up=1Mbit/s,down=10Mbit/s"
# shellcheck disable=SC2086 # lists of options
compile "$model" "$work/one.llmpart" --device=jetson-nano --cloud=v100s --march=native $slas || finish
# shellcheck disable=SC2086
compile "$model" "$work/many.llmpart" --device=jetson-nano --cloud=v100s --march=native $slas --plans=3 || finish

taken() { # taken: of the run whose JSON is in $work/json
  sed -n '/^  "plan": {/,/}/s/^ *"plan": \([0-9][0-9]*\).*/\1/p' "$work/json"
}

short=1,2,3
long=$(seq -s, 1 40)
for ids in $short $long; do
  want=$(tokens "$work/one.llmpart" "$ids" 8)
  same 'the only plan' 0 "$(taken)"
  [ -n "$want" ] || fail "the bundle of one plan says nothing to $ids: $(cat "$work/err")"
  for way in '' --in-process --plan=0 --plan=1 --plan=2; do
    # shellcheck disable=SC2086 # one option or none
    same "${way:-the chosen plan} after $(length "$ids") tokens" "$want" "$(tokens "$work/many.llmpart" "$ids" 8 $way)"
    case "$way" in --plan=*) same "$way" "${way#*=}" "$(taken)" ;; esac
  done
done
tokens "$work/many.llmpart" $short 8 --in-process >"$work/out"
short_plan=$(taken)
tokens "$work/many.llmpart" "$long" 8 --in-process >"$work/out"
long_plan=$(taken)
[ "$short_plan" != "$long_plan" ] || fail "short and long prompts both take plan $short_plan"

tokens "$work/many.llmpart" $short 2 >"$work/out"
grep -q '"rtt_ms": [0-9.]*,' "$work/json" && grep -q '"up_bps": [0-9.e+]*$' "$work/json" || fail 'it does not say what the link is like'
"$LLMPART" run "$work/many.llmpart" --tokens=$short -n 2 --threads=1 --stats >"$work/out" 2>"$work/err"
grep -Eq '^plan [0-2] of plans 0 to 2; round trip [0-9.e-]+ ms' "$work/err" || fail "--stats does not name the plan: $(cat "$work/err")"
grep -Eq '^predicted for 3 and 2 tokens over its link of [0-9.]+ [mu]?s.*: TTFT [0-9.]+ [mu]?s .*; TPOT [0-9.]+ [mu]?s' "$work/err" ||
  fail "--stats does not state the prediction: $(cat "$work/err")"

# A link far slower than those that the fast plans are for.
same 'a slow link' "$(tokens "$work/one.llmpart" "$long" 4)" "$(tokens "$work/many.llmpart" "$long" 4 --link=rtt=150ms)"
rtt=$(number "$work/json" rtt_ms)
awk -v rtt="$rtt" 'BEGIN { exit !(rtt >= 150 && rtt < 1500) }' || fail "a round trip of 150 ms is measured as '$rtt'"
[ "$(taken)" != "$long_plan" ] || fail "a round trip of 150 ms changes nothing: plan $long_plan"

# What plans share is there once: no side has more than the whole model.
compile "$model" "$work/whole.llmpart"
whole=$(wc -c <"$work/whole.llmpart/device/weights.safetensors")
for side in device cloud; do
  many=$(wc -c <"$work/many.llmpart/$side/weights.safetensors")
  [ "$many" -le "$whole" ] || fail "the weights of all plans are $many bytes on the $side, the model's $whole"
done
# shellcheck disable=SC2086
"$LLMPART" compile "$model" --device=jetson-nano --cloud=v100s $slas --plans=3 --plan-only --march=native -o "$work/again.json"
cmp "$work/many.llmpart/report.json" "$work/again.json" || fail 'planned again, the plans are others'

refused 'a plan that is not there' 'manifest.json: error: there is no plan 3; the last one is plan 2' \
  "$LLMPART" run "$work/many.llmpart" --tokens=$short --plan=3 --in-process
wanted_status=2
refused 'plans without a cloud' '--plans: error: .*cloud' "$LLMPART" compile "$model" --device=jetson-nano --plans=2 -o "$work/made/out.llmpart"
refused 'plans with exits' '--plans: error: .*exits' \
  "$LLMPART" compile "$model" --device=jetson-nano --cloud=v100s --exits=1 --plans=2 -o "$work/made/out.llmpart"
# shellcheck disable=SC2086
refused 'plans as ONNX halves' '--plans: error: ' \
  "$LLMPART" compile "$model" --device=jetson-nano --cloud=v100s $slas --plans=3 --emit=onnx -o "$work/made/out"
finish
