# exit_rates.sh: plans with early exits from the rates of a calibration. --exits=auto chooses of its exits those that
# plan best, and the least theta that keeps its risk; invalid rates are refused. figures.sh forges such plans.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx

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
cat >"$work/rates.json" <<'END'
{"schema": "llmpart.calibration/1", "codec": "f16", "exits": [
  {"layer": 6, "alone": [{"theta": 0, "exit_rate": 1, "agreement": 0.9}, {"theta": 0.8, "exit_rate": 0.6, "agreement": 0.99},
    {"theta": 0.9, "exit_rate": 0.4, "agreement": 1}]}]}
END
wanted_status=1
sed 's/"layer": 6/"layer": 5/' "$work/rates.json" >"$work/others.json"
refused 'rates of other exits' 'no exit after layer 6 was calibrated' "$LLMPART" compile "$LP_SOURCE/examples/default-model/model.onnx" \
  --device=jetson-nano-p1 --cloud=v100s-p1 --exits=3,6 --exit-rates="$work/others.json" --plan-only -o "$work/made/out.json"
wanted_status=2
refused 'rates without exits' 'exit-rates: error: this is for --exits' "$LLMPART" compile "$model" $pair --exit-rates="$work/rates.json" --plan-only -o "$work/made/out.json"
finish
