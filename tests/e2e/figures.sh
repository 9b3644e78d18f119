# check-plan recomputes every figure of a report: forged ones are refused, those of all schedulers and modes confirmed.
# $1: the program of forge.c.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx
part quick && {
  "$LLMPART" compile "$model" $pair --isl=64 --osl=16 --tpot=9ms --device-memory=300kB --plan-only --report="$work/plan.json" ||
    fail 'there is no plan'
  "$1" "$work/plan.json" 8 >"$work/out" || fail "forged figures pass: $(tail -n 5 "$work/out")"
  sed 's/"memory_limit_bytes": 300000/"memory_limit_bytes": 300001/' "$work/plan.json" >"$work/limit.json"
  wanted_status=4
  refused 'another limit of memory' 'certificate: the limit of memory is 300000, the request gives 300001' "$LLMPART" check-plan "$work/limit.json"
  "$LLMPART" check-plan "$work/plan.json" | grep -q '^not proved: the operators' || fail 'it does not say what it does not prove'
  # A plan that misses the SLA, with fixes and without a bound.
  "$LLMPART" compile "$model" $pair --isl=64 --osl=16 --ttft=0.01ms --plan-only --report="$work/misses.json" 2>/dev/null
  same 'a plan that misses the SLA' 3 $?
  "$LLMPART" check-plan "$work/misses.json" | grep -q '^not proved: .*that the fixes suffice' || fail 'it does not say that fixes are not proved'
  forged() { # forged NAME SED WANTED
    sed "$2" "$work/misses.json" >"$work/forged.json"
    cmp -s "$work/misses.json" "$work/forged.json" && fail "$1: nothing is forged"
    refused "$1" "$3" "$LLMPART" check-plan "$work/forged.json"
  }
  forged 'a bound of an infeasible plan' '/^  "plan": {/,/^  }/s/"gap": null/"gap": 0/' 'plan.gap is given without a lower bound'
  forged 'no verdict' '/^  "plan": {/,/^  }/s/"feasible": false/"feasible": null/' 'plan is said to be infeasible'
  forged 'a link of unknown bandwidth' '/^  "link": {/,/^  }/s/"up_bps": [0-9.e]*/"up_bps": null/' 'link: there is no bandwidth up'
  forged 'another SLA in a fix' 's/"from": 0.01,/"from": 0.02,/' 'fixes.[0-9]. does not relax a figure of the request'
  forged 'a fix that tightens' 's/"to": [0-9][0-9.e+-]*/"to": 0.001/' 'fixes.[0-9]. does not relax a figure of the request'
  wanted_status=1
  forged 'another schema' 's|"llmpart.report/1"|"llmpart.report/2"|' 'this is no report'
}
part long || part soak || finish
[ -e "$work/misses.json" ] || "$LLMPART" compile "$model" $pair --isl=64 --osl=16 --ttft=0.01ms --plan-only --report="$work/misses.json" 2>/dev/null
"$1" "$work/misses.json" 12 >"$work/out" || fail "forged figures of an infeasible plan pass: $(tail -n 5 "$work/out")"
part soak && {
  [ -e "$work/plan.json" ] || "$LLMPART" compile "$model" $pair --isl=64 --osl=16 --tpot=9ms --device-memory=300kB --plan-only --report="$work/plan.json"
  "$1" "$work/plan.json" 1 >"$work/out" || fail "forged figures pass: $(tail -n 5 "$work/out")"
}
part long || finish

# Every scheduler, families, and exits.
for options in --scheduler=greedy --scheduler=layer '--pin=layer.*.linear=cloud' '--cut=2 --sessions=8 --batch=2 --objective=cost+1e-9*latency+1e-6*energy' '--plans=3 --device-memory=200kB --ttft=60ms --tpot=45ms --link=rtt=20ms,up=1Mbit/s,down=10Mbit/s'; do
  # shellcheck disable=SC2086 # a list of options
  "$LLMPART" compile "$model" $pair --isl=64 --osl=16 $options --plan-only --report="$work/other.json" || fail "$options: there is no plan"
  "$LLMPART" check-plan "$work/other.json" >"$work/out" || fail "$options: an honest plan is refused"
done
grep -q 'not proved: .*; plans' "$work/out" || fail 'it does not say that the plans of a family are not checked'

# With early exits the figures are those of a token in a mode, from rates of a calibration.
cat >"$work/rates.json" <<'END'
{"schema": "llmpart.calibration/1", "codec": "f16", "exits": [
  {"layer": 6, "alone": [{"theta": 0, "exit_rate": 1, "agreement": 0.9}, {"theta": 0.8, "exit_rate": 0.6, "agreement": 0.99},
    {"theta": 0.9, "exit_rate": 0.4, "agreement": 1}]}]}
END
tpot_of() { # tpot_of STATUS [option ...]: of the default model over LTE within 20 ms; the plan goes to $work/exits.json
  wanted=$1
  shift
  "$LLMPART" compile "$LP_SOURCE/examples/default-model/model.onnx" --device=jetson-nano-p1 --cloud=v100s-p1 --link=lte --exits=3,6 --tpot=20ms \
    --plan-only --report="$work/exits.json" "$@" 2>/dev/null
  same "$*: exit status" "$wanted" $?
  "$LLMPART" check-plan "$work/exits.json" >"$work/out" || fail "$*: an honest plan is refused"
  tpot=$(sed -n '/^  "plan": {/,/^  }/p' "$work/exits.json" | number /dev/stdin tpot_ms)
}
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }' || fail "$3: $1 is not below $2"; }
tpot_of 3 --exit-mode=full
full=$tpot
tpot_of 0 --exit-rates="$work/rates.json"
below "$tpot" "$(awk -v full="$full" 'BEGIN { print full / 4 }')" 'TPOT with drafts'
[ "$(number "$work/exits.json" drafts)" -gt 2 ] || fail 'a round trip of 50 ms is worth more than 2 drafts'
"$1" "$work/exits.json" 12 >"$work/out" || fail "forged figures of drafts pass: $(tail -n 5 "$work/out")"
tpot_of 3 --exit-rates="$work/rates.json" --exit-mode=threshold --theta=0.9
strict=$tpot
same 'the share at theta' 0.4 "$(number "$work/exits.json" rate)"
tpot_of 3 --exit-rates="$work/rates.json" --exit-mode=threshold
below "$tpot" "$strict" 'TPOT at a lower theta'
below "$(awk -v full="$full" 'BEGIN { print 0.3 * full }')" "$tpot" 'TPOT with 40 % of questions'
tpot_of 0 --exit-mode=standalone
below "$tpot" 1 'TPOT without the cloud'
"$1" "$work/exits.json" 12 >"$work/out" || fail "forged figures without the cloud pass: $(tail -n 5 "$work/out")"
# A plan of --exits=auto: layers wait for tokens (exit_rates.sh has the choices).
cat >"$work/auto.json" <<'END'
{"schema": "llmpart.calibration/1", "codec": "int8", "risk": 0.02, "exits": [
  {"layer": 2, "alone": [{"theta": 0, "exit_rate": 1, "agreement": 0.2}, {"theta": 0.9, "exit_rate": 0.1, "agreement": 1}]},
  {"layer": 3, "alone": [{"theta": 0, "exit_rate": 1, "agreement": 0.5}, {"theta": 0.9, "exit_rate": 0.2, "agreement": 1}]},
  {"layer": 6, "alone": [{"theta": 0, "exit_rate": 1, "agreement": 0.95}, {"theta": 0.7, "exit_rate": 0.8, "agreement": 0.98}, {"theta": 0.9, "exit_rate": 0.7, "agreement": 1}]}]}
END
"$LLMPART" compile "$LP_SOURCE/examples/default-model/model.onnx" --device=jetson-nano-p1 --cloud=v100s-p1 --link=lte --exits=auto \
  --exit-rates="$work/auto.json" --objective=latency --exit-mode=threshold --plan-only --report="$work/exits.json" 2>"$work/err" || fail "auto: $(cat "$work/err")"
"$1" "$work/exits.json" 12 >"$work/out" || fail "forged figures of layers that wait pass: $(tail -n 5 "$work/out")"
finish
