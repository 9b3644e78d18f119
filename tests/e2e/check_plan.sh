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
grep -H '#include "\(passes\|hwmodels\|ir\)/' "$LP_SOURCE"/tools/certificate/*.[ch] && fail 'the checker shares code with the planner'
"$LLMPART" check-plan --timing "$work/plan.json" 2>&1 | grep -q 'checked in [0-9.]* ms' || fail 'it does not say how long it took'
wanted_status=1
echo '{}' >"$work/empty.json"
refused 'no certificate' 'there is no certificate' "$LLMPART" check-plan "$work/empty.json"
refused 'no such operator' "no operator 'nothing'" "$LLMPART" explain "$work/plan.json" nothing
operator=$(sed -n 's/.*{"name": "\([^"]*o_proj[^"]*\)", "side".*/\1/p' "$work/plan.json" | head -n 1)
"$LLMPART" explain "$work/plan.json" "$operator" >"$work/out" || fail "explain '$operator' failed"
grep -q 'ms on the device' "$work/out" || fail "explain says nothing of times: $(cat "$work/out")"
wanted_status=3
"$LLMPART" compile "$model" $pair --isl=64 --tpot=1us --plan-only --report="$work/missed.json" 2>/dev/null && fail 'the SLA of 1 us holds'
"$LLMPART" explain "$work/missed.json" "$operator" >"$work/out" || fail "explain does not read the report of an infeasible plan"
grep -q 'TPOT .*EXCEEDED' "$work/out" || fail "explain does not say what is missed: $(cat "$work/out")"
finish
