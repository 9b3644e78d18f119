# llmpart service: published pairs, and pairs made from the output of bench and compile.
. "$LP_SOURCE/tests/e2e/lib.sh"
"$LLMPART" service show llama3 --counting=paper -o json >"$work/s.json"
same slope 18.2066666667 "$(number "$work/s.json" slope_s)"
same break-even 541.953488372 "$(number "$work/s.json" break_even_tokens)"
"$LLMPART" service list | grep -q '^gemma-gemini ' || fail 'list lacks gemma-gemini'

# The edge measured, the cloud planned.
printf '{"schema": "llmpart.bench/1", "bundle": "my.llmpart", "tests": [{"test": "pp512", "tokens": 512, "tokens_per_s": 400.0}, {"test": "tg128", "tokens": 128, "tokens_per_s": 20}]}' >"$work/bench.json"
printf 'service: mine\nedge: { bench: bench.json }\ncloud: { report: report.json }\n' >"$work/mine.yaml"
if "$LLMPART" --help | grep -q '^  compile '; then
  "$LLMPART" compile "$LP_SOURCE/tests/models/llama/model.onnx" --device=jetson-nano --cloud=v100s --link=wifi --isl=64 --objective=cost --emit=report -o json >"$work/report.json"
  "$LLMPART" service show "$work/mine.yaml" --tokens=101 --prompt=100 -o json >"$work/mine.json" || fail "mine: $?"
  # 100 / 400 + 100 / 20 s at the edge; in the cloud tens of milliseconds, without the link
  same edge 5.25 "$(sed -n 's/.*"generation_s": \(.*\)/\1/p' "$work/mine.json" | head -n 1)"
  cloud=$(sed -n 's/.*"generation_s": \(.*\)/\1/p' "$work/mine.json" | tail -n 1)
  awk -v c="$cloud" 'BEGIN { exit !(c > 0 && c < 0.1) }' || fail "cloud: $cloud s"
fi
printf '{"schema": "llmpart.run/1"}' >"$work/bench.json"
refused 'not a bench' "bench.json: error: schema: is 'llmpart.run/1', wanted 'llmpart.bench/1'" "$LLMPART" service show "$work/mine.yaml"
printf '{"schema": "llmpart.bench/1", "bundle": "x", "tests": []}' >"$work/bench.json"
refused 'no rows' "tests: lacks a row 'pp...' or 'tg...'" "$LLMPART" service show "$work/mine.yaml"
refused 'no such' "unknown service 'lama3'" "$LLMPART" service show lama3
wanted_status=2
refused 'action' "cannot do 'paint'" "$LLMPART" service paint
finish
