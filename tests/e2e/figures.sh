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
  "$LLMPART" compile "$model" $pair --isl=64 --osl=16 --tpot=0.01ms --plan-only --report="$work/misses.json" 2>/dev/null
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
part long || finish
[ -e "$work/misses.json" ] || "$LLMPART" compile "$model" $pair --isl=64 --osl=16 --tpot=0.01ms --plan-only --report="$work/misses.json" 2>/dev/null
"$1" "$work/misses.json" 12 >"$work/out" || fail "forged figures of an infeasible plan pass: $(tail -n 5 "$work/out")"
[ -e "$work/plan.json" ] || "$LLMPART" compile "$model" $pair --isl=64 --osl=16 --tpot=9ms --device-memory=300kB --plan-only --report="$work/plan.json"
"$1" "$work/plan.json" 1 >"$work/out" || fail "forged figures pass: $(tail -n 5 "$work/out")"

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
# --exits=auto: of the exits of a calibration those that plan best, and the least theta that keeps its risk.
cat >"$work/auto.json" <<'END'
{"schema": "llmpart.calibration/1", "codec": "int8", "risk": 0.02, "exits": [
  {"layer": 2, "alone": [{"theta": 0, "exit_rate": 1, "agreement": 0.2}, {"theta": 0.9, "exit_rate": 0.1, "agreement": 1}]},
  {"layer": 3, "alone": [{"theta": 0, "exit_rate": 1, "agreement": 0.5}, {"theta": 0.9, "exit_rate": 0.2, "agreement": 1}]},
  {"layer": 6, "alone": [{"theta": 0, "exit_rate": 1, "agreement": 0.95}, {"theta": 0.7, "exit_rate": 0.8, "agreement": 0.98}, {"theta": 0.9, "exit_rate": 0.7, "agreement": 1}]}]}
END
chosen() { sed -n '/"layers": \[/,/\]/p' "$work/exits.json" | tr -cd '0-9,' | sed 's/,$//'; }
auto() { # auto [option ...]
  "$LLMPART" compile "$LP_SOURCE/examples/default-model/model.onnx" --device=jetson-nano-p1 --cloud=v100s-p1 --link=lte --exits=auto \
    --exit-rates="$work/auto.json" --plan-only --report="$work/exits.json" "$@" 2>"$work/err" || fail "auto $*: $(cat "$work/err")"
  "$LLMPART" check-plan "$work/exits.json" >"$work/out" || fail "auto $*: an honest plan is refused"
}
auto --objective=latency
same 'the best last exit for drafts' 6 "$(chosen)"
auto --objective=latency --exit-mode=threshold
same 'the exits for tokens' 2,3,6 "$(chosen)"
# Layers 0 and 1 run for each token, layer 2 for 70 % of them, layers 3 to 5 for 62.2 %; for the others once eight wait.
same 'runs of the layers' 0.7612 "$(number "$work/exits.json" layer_runs_per_token | awk '{ printf "%.4f", $1 }')"
"$1" "$work/exits.json" 12 >"$work/out" || fail "forged figures of layers that wait pass: $(tail -n 5 "$work/out")"
same 'theta: 0.8 x 0.02 is below the risk' 0.7 "$(number "$work/exits.json" theta)"
grep -q '"codec": "int8"' "$work/exits.json" || fail 'rows have another codec than in the calibration'
grep -q -- '--exits=2,3,6 is the best choice; run it with --mode=threshold --theta=0.7 --codec=int8' "$work/err" || fail "the choice is not said: $(cat "$work/err")"
auto --objective=latency --exit-mode=threshold --theta=0.9
same 'the theta that was given' 0.9 "$(number "$work/exits.json" theta)"
auto --objective=latency --exit-mode=standalone
same 'alone the first exit is the fastest' 2 "$(chosen)"
wanted_status=2
refused 'exits and a cut' "exits: error: 'auto' chooses the cut" "$LLMPART" compile "$model" $pair --exits=auto --cut=1 --plan-only -o "$work/made/out.json"
refused 'exits without rates' "exits: error: 'auto' needs the exits' rates" "$LLMPART" compile "$model" $pair --exits=auto --plan-only -o "$work/made/out.json"
wanted_status=1
sed 's/"risk": 0.02/"risk": 0/; s/"agreement": 1}/"agreement": 0.99}/' "$work/auto.json" >"$work/others.json"
refused 'no theta is safe' "no theta keeps the calibration's risk of 0 after layer 2" "$LLMPART" compile "$LP_SOURCE/examples/default-model/model.onnx" \
  $pair --exits=auto --exit-rates="$work/others.json" --exit-mode=threshold --plan-only -o "$work/made/out.json"
wanted_status=1
sed 's/"layer": 6/"layer": 5/' "$work/rates.json" >"$work/others.json"
refused 'rates of other exits' 'no exit after layer 6 was calibrated' "$LLMPART" compile "$LP_SOURCE/examples/default-model/model.onnx" \
  --device=jetson-nano-p1 --cloud=v100s-p1 --exits=3,6 --exit-rates="$work/others.json" --plan-only -o "$work/made/out.json"
wanted_status=2
refused 'rates without exits' 'exit-rates: error: this is for --exits' "$LLMPART" compile "$model" $pair --exit-rates="$work/rates.json" --plan-only -o "$work/made/out.json"
finish
