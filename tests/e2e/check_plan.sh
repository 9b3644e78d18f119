# The certificate of a plan is confirmed, and a forged one is not; explain knows its operators.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx
"$LLMPART" compile "$model" $pair --isl=64 --osl=16 --tpot=9ms --device-memory=300kB --plan-only --report="$work/plan.json" ||
  fail 'there is no plan'
"$LLMPART" check-plan "$work/plan.json" >"$work/out" || fail 'an honest plan is refused'
grep -q 'is proved' "$work/out" || fail "it does not say what is proved: $(cat "$work/out")"
wanted_status=4
sed 's/"value": [0-9.e-]*,/"value": 1,/' "$work/plan.json" >"$work/forged.json"
refused 'another objective' 'the plan comes to .*, the certificate says 1' "$LLMPART" check-plan "$work/forged.json"
sed 's/"bound": [0-9.e-]*,/"bound": 1,/' "$work/plan.json" >"$work/forged.json"
refused 'a bound that is not proved' 'the prices prove' "$LLMPART" check-plan "$work/forged.json"
sed 's/"split": \[[^]]*\]/"split": []/' "$work/plan.json" >"$work/forged.json"
refused 'nothing is exchanged' 'the prices prove' "$LLMPART" check-plan "$work/forged.json"
sed 's/"way": \[[0-9.e-]*/"way": [2/' "$work/plan.json" >"$work/forged.json"
refused 'more than one message a change' 'more than one message' "$LLMPART" check-plan "$work/forged.json"
claim() { # claim BOUND GAP: a report with another bound, which fits its gap
  sed 's/"lower_bound\(_usd\)*": [0-9.e-]*/"lower_bound\1": '"$1"'/; s/^\( *"gap"\): [0-9.e-]*/\1: '"$2/" "$work/plan.json" >"$work/forged.json"
}
claim 1 0
refused 'a bound above the plan' 'plan.lower_bound is 1, the plan itself comes to' "$LLMPART" check-plan "$work/forged.json"
claim "$(number "$work/plan.json" cost_usd)" 0
refused 'a plan that is not the best' 'plan.lower_bound is .*, only .* is proved' "$LLMPART" check-plan "$work/forged.json"
grep -H '#include "\(passes\|hwmodels\|ir\)/' "$LP_SOURCE"/proof/*.[ch] && fail 'the checker shares code with the planner'
"$LLMPART" check-plan --timing "$work/plan.json" 2>&1 | grep -q 'checked in [0-9.]* ms' || fail 'it does not say how long it took'
# A link that varies: the SLA holds with a probability, which is recomputed.
{
  echo 'time_s,rtt_ms,up_bps,down_bps'
  for i in 1 2 3 4 5 6 7 8 9 10; do echo "$i,$((4 * i)),$((11 - i))000000,$((22 - 2 * i))000000"; done
} >"$work/trace.csv"
varying() { # varying QUANTILE [option ...]
  quantile=$1
  shift
  "$LLMPART" compile "$model" --device=jetson-nano-p1 --cloud=v100s-p1 --link="$work/trace.csv" --device-memory=200kB --isl=64 --osl=16 --ttft=30ms \
    --sla-quantile="$quantile" --plan-only --report="$work/varying.json" "$@" 2>"$work/err"
}
varying 0.5 || fail "no plan for half of the states: $(cat "$work/err")"
"$LLMPART" check-plan "$work/varying.json" >"$work/out" || fail 'a probability of an honest plan is refused'
same 'the round trip of the quantile' 20 "$(number "$work/varying.json" rtt_ms)"
awk -v p="$(number "$work/varying.json" sla_probability)" 'BEGIN { exit !(p >= 0.5 && p < 1) }' || fail 'the probability is not that of some states'
wanted_status=4
sed 's/"sla_probability": [0-9.]*/"sla_probability": 0.99/' "$work/varying.json" >"$work/forged.json"
refused 'a probability that is not so' 'plan.sla_probability is 0.99, the certificate gives' "$LLMPART" check-plan "$work/forged.json"
sed 's/"quantile": 0.5/"quantile": 0.9/' "$work/varying.json" >"$work/forged.json"
refused 'figures of another quantile' 'states are as good as its figures, the quantile is 0.9' "$LLMPART" check-plan "$work/forged.json"
varying 1
same 'an SLA that some states miss' 3 $?
varying 0.5 --plans=3 || fail "no family for half of the states: $(cat "$work/err")"
wanted_status=2
refused 'a link that does not vary' "sla-quantile: error: 'lan' does not vary" "$LLMPART" compile "$model" $pair --sla-quantile=0.9 --plan-only -o "$work/made/x"
refused 'no probability' 'sla-quantile: error: a probability should be above 0' "$LLMPART" compile "$model" $pair --sla-quantile=2 --plan-only -o "$work/made/x"
"$LLMPART" compile "$model" --device=jetson-nano-p1 --cloud=v100s-p1 --link=two-cell,rtt=20ms --tpot=1s --plan-only --report="$work/radio.json" ||
  fail 'a radio profile is no link'
same 'the round trip of a radio link' 20 "$(number "$work/radio.json" rtt_ms)"
refused 'another change' "'up=1' is no change of a radio profile" "$LLMPART" compile "$model" --device=jetson-nano-p1 --cloud=v100s-p1 --link=two-cell,up=1 --plan-only -o "$work/made/x"

wanted_status=1
echo '{}' >"$work/empty.json"
refused 'no report' "this is no report: found the schema ''" "$LLMPART" check-plan "$work/empty.json"
echo '{"schema": "llmpart.report/1"}' >"$work/empty.json"
refused 'no certificate' 'there is no certificate' "$LLMPART" check-plan "$work/empty.json"
refused 'no such operator' "no operator 'nothing'" "$LLMPART" explain "$work/plan.json" nothing
operator=$(sed -n 's/.*{"name": "\([^"]*o_proj[^"]*\)", "side".*/\1/p' "$work/plan.json" | head -n 1)
"$LLMPART" explain "$work/plan.json" "$operator" >"$work/out" || fail "explain '$operator' failed"
grep -q '[mun]s on the device' "$work/out" || fail "explain says nothing of times: $(cat "$work/out")"
wanted_status=3
"$LLMPART" compile "$model" $pair --isl=64 --tpot=0.1us --plan-only --report="$work/missed.json" 2>/dev/null && fail 'the SLA of 0.1 us holds'
"$LLMPART" explain "$work/missed.json" "$operator" >"$work/out" || fail "explain does not read the report of an infeasible plan"
grep -q 'TPOT .*EXCEEDED' "$work/out" || fail "explain does not say what is missed: $(cat "$work/out")"
finish
