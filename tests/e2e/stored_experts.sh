# stored_experts.sh FOLDER: which experts of a mixture tokens choose, as `llmpart calibrate --experts` counts them (ONNX
# Runtime and numpy are the judge), and plans with some of them in the device's memory and the others in its storage, or
# in the cloud.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1/silu/model.onnx
python=${LP_PYTHON:-python3}
printf '[1, 5, 9, 2, 7, 3]\n[4, 4, 8]\n[11, 2, 30, 17, 5, 6, 1, 9]\n' >"$work/documents.jsonl"
compile "$model" "$work/profiled.llmpart" --profile || finish
for threads in 1 2; do
  "$LLMPART" calibrate "$work/profiled.llmpart" --data="$work/documents.jsonl" --experts="$work/$threads.json" --threads=$threads 2>"$work/err" ||
    fail "calibrate --experts: exit status $?: $(head -n 3 "$work/err")"
done
cmp -s "$work/1.json" "$work/2.json" || fail 'two threads count something else than one'
if "$python" -c 'import onnx, onnxruntime' 2>/dev/null; then
  "$python" "$LP_SOURCE/tests/e2e/chosen_experts.py" "$model" "$work/documents.jsonl" "$work/1.json" 2>"$work/err" ||
    fail "ONNX Runtime: $(head -n 3 "$work/err")"
else
  echo "$name: note: no Python with onnx and onnxruntime (LP_PYTHON): the counts are not compared"
fi

# Plans. What the device holds of four experts is a straight line in their number; the others add their bytes, as often
# as a token chooses them, at the rate of the storage.
device=raspberry-pi-5,load_bandwidth=1MB/s
report() { # report NAME [option ...]: $work/NAME.json
  out=$work/$1.json
  shift
  "$LLMPART" compile "$model" --device=$device --emit=report -o "$out" "$@" 2>"$work/err" || fail "$*: $(head -n 2 "$work/err")"
  "$LLMPART" check-plan "$out" >/dev/null 2>"$work/err" || fail "$*: check-plan: $(head -n 2 "$work/err")"
}
for resident in 1 2 3; do
  report $resident.even --device-experts=$resident
done
report all
report measured --device-experts=2 --experts="$work/1.json"
report most --device-experts=4
same 'the plan with all experts in memory' "$(number "$work/all.json" tpot_ms)" "$(number "$work/most.json" tpot_ms)"
"$python" - "$work" <<'E2' >"$work/err" 2>&1 || fail "$(cat "$work/err")"
import json, math, sys
def plan(name):
    return json.load(open(f"{sys.argv[1]}/{name}.json"))["plan"]
full, three = plan("all"), plan("3.even")
expert = full["device_memory_bytes"] - three["device_memory_bytes"]  # of both layers
assert expert > 0
k = round(sum(json.load(open(f"{sys.argv[1]}/1.json"))["weights"][0]["chosen"]))
for n in (1, 2, 3):
    some = plan(f"{n}.even")
    assert math.isclose(full["device_memory_bytes"] - some["device_memory_bytes"], (4 - n) * expert, rel_tol=1e-9), n
    wanted = full["tpot_ms"] + 1e3 * (4 - n) * k / 4 * expert / 1e6
    assert math.isclose(some["tpot_ms"], wanted, rel_tol=1e-6), (n, some["tpot_ms"], wanted)
weights = json.load(open(f"{sys.argv[1]}/1.json"))["weights"]
rare = [sum(sorted(w["chosen"])[:2]) for w in weights]
read = 1e3 * expert / 2 / 1e6 * (rare[0] + rare[2])  # the layers are alike, and so are the sizes of their experts
some = plan("measured")["tpot_ms"]
assert plan("2.even")["tpot_ms"] > some and abs(some - full["tpot_ms"] - read) < 0.02 * read, (some, full["tpot_ms"], read)
E2

# Halves apart: the device holds the experts that are chosen most often, and computes as many rows as choose them.
for hot in 1 3; do
  report $hot.hot --cloud=v100s-p1 --link=lan --hot-experts=$hot --experts="$work/1.json" --pin='*=device' --pin='*.rest=cloud'
done
"$python" - "$work" <<'E2' >"$work/err" 2>&1 || fail "$(cat "$work/err")"
import json, math, sys
def report(name):
    return json.load(open(f"{sys.argv[1]}/{name}.json"))
weights = report("1")["weights"]
expert = report("all")["plan"]["device_memory_bytes"] - report("3.even")["plan"]["device_memory_bytes"]
for hot in (1, 3):
    made = report(f"{hot}.hot")
    assert made["hot_experts"] == hot
    there = made["plan"]["cloud_weight_bytes"]
    assert 0 <= there - (4 - hot) * expert < 0.1 * expert, (hot, there, expert)  # and the places of the experts
    decode = [o for o in made["operators"] if o["stage"] == "decode" and o["kind"] == "op.experts"]
    rows = [o["flops"] for o in decode if o["name"].endswith(".hot")], [o["flops"] for o in decode if o["name"].endswith(".rest")]
    assert len(rows[0]) == len(rows[1]) == len(weights)
    for most, rest, weight in zip(*rows, weights):
        share = sum(sorted(weight["chosen"])[-hot:]) / sum(weight["chosen"])
        assert math.isclose(most / (most + rest), share, rel_tol=0.03), (hot, most, rest, share)
E2

# The best number of them is chosen, or none.
apart="--cloud=v100s-p1 --link=lan --experts=$work/1.json --objective=cost --scheduler=layer"
for memory in 200KiB 400KiB 1GiB; do
  for hot in 1 2; do
    report $hot.cost $apart --device-memory=$memory --hot-experts=$hot
  done
  report 0.cost $apart --device-memory=$memory
  report auto.cost $apart --device-memory=$memory --hot-experts=auto
  same "the least cost in $memory" "$(for hot in 0 1 2; do number "$work/$hot.cost.json" cost_usd; done | sort -g | head -n 1)" \
    "$(number "$work/auto.cost.json" cost_usd)"
done

# What does not fit is told how many experts would.
memory=$(number "$work/3.even.json" device_memory_bytes)
"$LLMPART" compile "$model" --device=$device --device-memory="$memory" --plan-only >"$work/text" 2>/dev/null
same 'the status of a plan that does not fit' 3 $?
same 'how many experts would fit' 3 "$(sed -n 's/^  device_experts  *from all to //p' "$work/text")"
grep -q '"measured_experts": true' "$work/measured.json" || fail 'the report does not say that choices were measured'

sed 's/"name": "/&other/' "$work/1.json" >"$work/renamed.json"
refused 'counts of another model' "renamed.json: error: it does not say how the 4 experts" "$LLMPART" compile "$model" \
  --device=$device --experts="$work/renamed.json" -o "$work/x.llmpart"
wanted_status=2
refused 'a model without experts' 'error: it has no mixture of experts that runs sparsely' \
  "$LLMPART" compile "$LP_SOURCE/tests/models/llama/model.onnx" --device=$device --device-experts=2 -o "$work/x.llmpart"
refused 'a GPU' "device-experts: error: the device 'jetson-nano' is no processor" \
  "$LLMPART" compile "$model" --device=jetson-nano --device-experts=2 -o "$work/x.llmpart"
refused 'a storage of unknown rate' "error: 'raspberry-pi-5' does not say how fast its storage is" \
  "$LLMPART" compile "$model" --device=raspberry-pi-5 --device-experts=2 -o "$work/x.llmpart"
refused 'experts from storage, apart' 'hot-experts: error: it is for experts in memory, not --device-experts' \
  "$LLMPART" compile "$model" --device=$device --device-experts=2 --hot-experts=2 -o "$work/x.llmpart"
refused 'files of two runs' 'error: --activations and --experts write files of two runs' \
  "$LLMPART" calibrate "$work/profiled.llmpart" --data="$work/documents.jsonl" --experts="$work/x" --activations="$work/y"
finish
