# A sweep reports the figures that `compile` reports for each combination, for any number of threads, and continues
# after it was killed.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx
cp "$model" "$work/model.onnx"

cat >"$work/spec.yaml" <<'END'
model: model.onnx
machines:
  - { device: jetson-nano, cloud: [v100s, a100] }
links: [wifi, "rtt=20ms,up=10Mbit/s,down=50Mbit/s"]
workloads: { isl: [16, 64], osl: 32 }
slas: [{ ttft: none }, { ttft: 500ms, tpot: 0.001ms }]
schedulers: [exact, layer, greedy, cloud-only, device-only]
sessions: [1, 8]
END
sweep() { "$LLMPART" sweep "$@" 2>"$work/err" || fail "sweep $*: exit status $?: $(head -n 3 "$work/err")"; }
sweep "$work/spec.yaml" -o csv --threads=2 >"$work/two.csv"
sweep "$work/spec.yaml" -o "$work/one.csv" -o "$work/one.json" -o "$work/one.html" --threads=1
cmp "$work/two.csv" "$work/one.csv" || fail 'the rows depend on the threads'
[ -e "$work/spec.yaml.journal" ] && fail 'the journal is left behind'
same 'rows' 161 "$(wc -l <"$work/one.csv" | tr -d ' ')"
grep -q '"schema": "llmpart.sweep/1"' "$work/one.json" || fail 'the JSON has no schema'
same 'rows of the JSON' 160 "$(grep -c '{"row":' "$work/one.json")"
same 'rows in the page' "$(($(wc -l <"$work/one.csv") - 1))" "$(sed -n 's/^<script type="application\/json" id="data">.*"rows":\[\[\(.*\)\]\]}.*/\1/p' "$work/one.html" | sed 's/\],\[/\n/g' | wc -l)"

# compared [option ...] PATTERN: the row and the report say the same
compared() {
  pattern=$1
  shift
  "$LLMPART" compile "$model" --device=jetson-nano --cloud=a100 --isl=64 --osl=32 --objective=cost "$@" --emit=report -o json >"$work/report.json" 2>"$work/err"
  sed -n '/^  "plan": {/,/^  }/p' "$work/report.json" >"$work/plan.json"
  row=$(grep -E "$pattern" "$work/one.json")
  same "rows of $pattern" 1 "$(echo "$row" | wc -l | tr -d ' ')"
  for key in ttft_ms tpot_ms cost_usd bytes_up device_memory_bytes cloud_memory_bytes; do
    same "$pattern: $key" "$(number "$work/plan.json" "$key")" "$(echo "$row" | sed -n "s/^.*, \"$key\": \([^,]*\),.*\$/\1/p")"
  done
}
of='"cloud": "a100", "link": "wifi", "sla_quantile": null, "isl": 64, "osl": 32, "batch": 1, "sla_ttft_ms": '
for scheduler in exact layer greedy cloud-only device-only; do
  compared "$of"'null, .*"scheduler": "'$scheduler'", "sessions": 8' --link=wifi --scheduler=$scheduler --sessions=8
done
compared "$of"'500, .*"scheduler": "exact", "sessions": 1,.*"feasible": false' --link=wifi --ttft=500ms --tpot=0.001ms

# Links that vary are planned for a quantile of their states, as `compile --sla-quantile` does.
mkdir "$work/traces"
awk 'BEGIN { print "rtt_ms,up_bps,down_bps"; for (i = 1; i <= 20; i++) printf "%d,%d,%d\n", i, 1e6 * (21 - i), 2e6 * (21 - i) }' >"$work/traces/trace.csv"
sed 's|model: model.onnx|model: ../model.onnx|; s|^links: .*|links: [trace.csv, "uma-3gpp,rtt=20ms", wifi]|; $a sla_quantile: 0.8' "$work/spec.yaml" >"$work/traces/vary.yaml"
sweep "$work/traces/vary.yaml" -o "$work/one.json"
of='"cloud": "a100", "link": "trace.csv", "sla_quantile": 0.8[0-9]*, "isl": 64, "osl": 32, "batch": 1, "sla_ttft_ms": '
compared "$of"'null, .*"scheduler": "exact", "sessions": 8' --link="$work/traces/trace.csv" --sla-quantile=0.8 --sessions=8
of='"cloud": "a100", "link": "uma-3gpp,rtt=20ms", "sla_quantile": 0.8[0-9]*, "isl": 64, "osl": 32, "batch": 1, "sla_ttft_ms": '
compared "$of"'null, .*"scheduler": "exact", "sessions": 8' --link=uma-3gpp,rtt=20ms --sla-quantile=0.8 --sessions=8
same 'rows of a link that does not vary' 80 "$(grep -c '"link": "wifi", "sla_quantile": null' "$work/one.json")"
sed 's|^links: .*|links: [wifi]|' "$work/traces/vary.yaml" >"$work/traces/fixed.yaml"
refused 'a quantile of links that do not vary' "fixed.yaml:[0-9]+:15: error: 'sla_quantile' is for links that vary" "$LLMPART" sweep "$work/traces/fixed.yaml"
sed 's|: 0.8|: 1.5|' "$work/traces/vary.yaml" >"$work/traces/above.yaml"
refused 'a probability above 1' "above.yaml:[0-9]+:15: error: .*sla_quantile" "$LLMPART" sweep "$work/traces/above.yaml"

# A shape without a file has the figures of a model of that shape.
cat >"$work/shape.yaml" <<'END'
decoder: { layers: 2, hidden: 24, ffn: 40, heads: 4, kv_heads: 2, vocab: 64, context: 128, dtype: bf16, tied: true }
machines: { device: [jetson-orin, raspberry-pi-5], cloud: [a100, v100] }
links: wifi
workloads: { isl: 64, osl: 16 }
kv_dtype: f16
dtypes: [{ device: int4, cloud: f16 }, { device: int8, cloud: bf16 }]
schedulers: [exact, cloud-only, device-only]
END
sed "s|^decoder: .*|model: $LP_SOURCE/tests/models/huggingface/llama3-bf16|" "$work/shape.yaml" >"$work/folder.yaml"
sweep "$work/shape.yaml" -o "$work/shape.csv"
sweep "$work/folder.yaml" -o "$work/folder.csv"
same 'rows of the shape' 25 "$(wc -l <"$work/shape.csv" | tr -d ' ')"
cmp "$work/shape.csv" "$work/folder.csv" || fail 'a shape and a model of this shape have different figures'

# A journal that ends within a line: the whole lines are kept.
sweep "$work/spec.yaml" -o "$work/kept.csv" --journal="$work/journal"
head -n 41 "$work/journal" >"$work/cut"
sed -n 42p "$work/journal" | cut -c 1-40 | tr -d '\n' >>"$work/cut"
sweep "$work/spec.yaml" -o "$work/again.csv" --journal="$work/cut" --stats
grep -q '160 rows, 40 of them from the journal' "$work/err" || fail "40 rows were finished: $(cat "$work/err")"
cmp "$work/one.csv" "$work/again.csv" || fail 'the sweep that went on says something else'
sed 's/32/33/' "$work/spec.yaml" >"$work/other.yaml"
sweep "$work/other.yaml" -o "$work/other.csv" --journal="$work/cut" --stats
grep -q 'is the journal of another sweep' "$work/err" && grep -q ' 0 of them from the journal' "$work/err" || fail 'another sweep took the rows up'

# Killed in the middle, it goes on.
cat >"$work/long.yaml" <<'END'
decoder: { layers: 48, hidden: 4096, ffn: 11008, heads: 32, vocab: 32000 }
machines: { device: jetson-orin, cloud: a100 }
links: [wifi, lan, lte]
workloads: { isl: [64, 256, 1024], osl: [16, 128] }
slas: { ttft: [1s, 2s, 4s], tpot: [50ms, 80ms] }
dtypes: { device: int4 }
END
"$LLMPART" sweep "$work/long.yaml" -o "$work/long.csv" --threads=1 2>/dev/null &
pid=$!
started="$started $pid"
begun() { [ -e "$work/long.yaml.journal" ] && [ "$(wc -l <"$work/long.yaml.journal")" -gt 5 ]; }
await begun || fail 'no row is finished after a minute'
kill -9 $pid
wait $pid 2>/dev/null
started=""
finished=$(($(wc -l <"$work/long.yaml.journal") - 1))
[ "$finished" -ge 5 ] && [ "$finished" -lt 108 ] || fail "$finished rows were finished when it was killed"
sweep "$work/long.yaml" -o "$work/long.csv" --stats
grep -q "108 rows, $finished of them from the journal" "$work/err" || fail "$finished rows were finished: $(cat "$work/err")"
same "rows of the long one" 109 "$(wc -l <"$work/long.csv" | tr -d ' ')"

# Faults have file, line and key.
bad() { # bad WHAT PATTERN SED: the spec, changed
  sed "$3" "$work/spec.yaml" >"$work/bad.yaml"
  refused "$1" "bad.yaml:$2" "$LLMPART" sweep "$work/bad.yaml" -o "$work/made/out.csv"
}
bad 'unknown key' "5:1: error: unknown key 'workload'" 's/^workloads/workload/'
bad 'a model that is absent' "1:8: error: 'model': .*none.onnx: error: cannot open" 's/^model: .*/model: none.onnx/'
bad 'unit error' "6:32: error: 'ttft': '500furlongs' is no" 's/500ms/500furlongs/'
bad 'negative bandwidth' "4:15: error: 'links': .*-1" 's/up=10Mbit/up=-1Mbit/'
bad 'unknown machine' "3:36: error: 'cloud': unknown machine 'v100x'" 's/v100s/v100x/'
bad 'no number' "5:20: error: 'isl' is 'sixteen'" 's/16,/sixteen,/'
bad 'unknown scheduler' "7:21: error: 'schedulers' is 'layers'" 's/layer,/layers,/'
bad 'nothing to sweep over' "8:11: error" 's/sessions: .*/sessions: []/'
bad 'no model' "2:1: error: .*expected 'model'" '1s/.*/ /'
refused 'a journal that is none' 'model.onnx: error: exists and is not the journal' "$LLMPART" sweep "$work/spec.yaml" --journal="$work/model.onnx" -o "$work/made/out.csv"
wanted_status=2
refused 'an unknown format' "'xml' is none of csv, json, html" "$LLMPART" sweep "$work/spec.yaml" -o xml
finish
