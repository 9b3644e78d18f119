# A model of LLaMA2-7B's shape without its weights is planned in seconds of CPU time and 100 MB of memory; with the
# weights (a sparse file of 13 GB), no step up to the code copies them.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v protoc >/dev/null || skip 'there is no protoc'
awk -f "$LP_SOURCE/tests/e2e/llama7b.awk" | onnx "$work/model.onnx"
[ -s "$work/model.onnx" ] || finish

# The sanitizers' shadow memory does not fit into any limit.
if nm "$LLMPART" 2>/dev/null | grep -q __asan_init; then sanitized=1; else sanitized=; fi

bounded() { # bounded KILOBYTES SECONDS [option ...]: compiles within limits of data and of CPU time
  data=$1 seconds=$2
  shift 2
  (
    [ "$sanitized" ] || ulimit -d "$data"
    [ "$sanitized" ] || ulimit -t "$seconds"
    exec "$LLMPART" compile "$work/model.onnx" --device=jetson-nano --cloud=v100s --link=lan --ttft=2s "$@"
  ) 2>"$work/err" || fail "$*: exit status $?: $(head -n 3 "$work/err")"
}

bounded 100000 10 --emit=report -o "$work/report.json"
params=$(number "$work/report.json" params)
[ "${params:-0}" -gt 6700000000 ] && [ "$params" -lt 6800000000 ] || fail "it has '$params' parameters, about 6.74 billion are wanted"
same 'layers' 32 "$(number "$work/report.json" layers)"
same 'feasible' true "$(sed -n 's/^  "feasible": \(.*\),$/\1/p' "$work/report.json")"

refused 'compiling it needs the weights' 'weights.data' "$LLMPART" compile "$work/model.onnx" --device=jetson-nano -o "$work/made/out.llmpart"
truncate -s 13477879808 "$work/weights.data"
bounded 300000 60 --emit=obj -O0 -o "$work/model.o"
[ -s "$work/model.o" ] || fail 'no code was written'
# A Nano of 4 GiB is never given 13 GB, whoever plans.
for scheduler in exact layer cloud-only; do
  bounded 100000 10 --emit=report --scheduler=$scheduler -o "$work/report.json"
  held=$(sed -n '/^  "plan": {/,/^  }/p' "$work/report.json" | number /dev/stdin device_memory_bytes)
  awk -v held="${held:-none}" 'BEGIN { exit !(held + 0 <= 4 * 2 ^ 30 && held != "none") }' || fail "$scheduler puts $held bytes on a Nano"
done
# Of plans that cost next to the same the faster one is taken, and the cheapest stands beside it.
small="--device=jetson-orin --device-memory=100kB --cloud=a100 --link=wifi --objective=cost"
# shellcheck disable=SC2086 # a list of options
plan "$work/model.onnx" "$work/report.txt" $small
grep -q '^  the cheapest ' "$work/report.txt" || fail 'the cheapest plan has no row'
grep -q '^within the tolerance of 1 % it is faster: 0.* above the least cost' "$work/report.txt" ||
  fail "it does not say what the plan costs more: $(tail -n 4 "$work/report.txt")"
# Without a tolerance it warns of a saving of next to nothing, and shows a much faster plan.
# shellcheck disable=SC2086 # a list of options
plan "$work/model.onnx" "$work/report.txt" $small --tolerance=0
grep -q '^warning: it saves only 0.* over cloud_only' "$work/report.txt" || fail "no faster plan is shown: $(tail -n 4 "$work/report.txt")"
grep -q '^  a faster plan ' "$work/report.txt" || fail 'the faster plan has no row'
# A limit that the cloud misses may cost more than the cloud does.
plan "$LP_SOURCE/tests/models/llama/model.onnx" "$work/report.txt" --device=jetson-nano,price_usd_per_s=1e-3 --cloud=v100s --link=lte --ttft=20ms
grep -q '^this plan costs [1-9][0-9.]* % more than the cloud alone$' "$work/report.txt" || fail "nothing costs more: $(tail -n 4 "$work/report.txt")"
wanted_status=3
for scheduler in device-only greedy; do
  refused "$scheduler on a Nano" 'device memory: 1[0-9.]* GiB needed, 4.0 GiB there' "$LLMPART" compile "$work/model.onnx" \
    --device=jetson-nano --cloud=v100s --link=lan --scheduler=$scheduler --ttft=60s --tpot=10s --emit=report -o "$work/refused.json"
done
refused 'it does not fit the device' 'memory' "$LLMPART" compile "$work/model.onnx" --device=jetson-nano --emit=report -o "$work/made.json"
finish
