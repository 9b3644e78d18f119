# `llmpart simulate` of a fleet's report: it agrees with what the search predicts, breaks the limit that the search says
# one machine fewer breaks, and refuses reports and scenarios with faults.
. "$LP_SOURCE/tests/e2e/lib.sh"
"$LLMPART" help --words | grep -qx fleet || skip 'llmpart was built without the compiler'
cat >"$work/spec.yaml" <<'END'
decoder: { layers: 32, hidden: 4096, ffn: 14336, heads: 32, kv_heads: 8, vocab: 128256, context: 8192 }
load: { rate: 16 }
lengths: [{ isl: 256, osl: 64, share: 0.7 }, { isl: 1024, osl: 128, share: 0.3 }]
classes:
  - { name: phones, share: 0.6, device: snapdragon-8-gen3, link: 5g, limits: { ttft: { p95: 2s }, tpot: { p95: 100ms } } }
  - { name: tablets, share: 0.2, device: apple-m4, link: lte, limits: { tpot: { p50: 40ms }, ttft: { p95: 2s } } }
  - { name: laptops, share: 0.2, device: apple-m4, link: wifi, limits: { ttft: { p95: 8s }, tpot: { p95: 60ms } } }
machines: [l4, a30]
dtypes: { device: int4, cloud: f16 }
kv_dtype: f16
requests: 20000
spare: 1
END
cd "$work" || exit 1
"$LLMPART" fleet spec.yaml -o fleet.json 2>err || fail "fleet: $(head -n 2 err)"
"$LLMPART" fleet spec.yaml -o fleet.csv 2>err || fail "fleet: $(head -n 2 err)"
simulate() { "$LLMPART" simulate "$@" 2>err || fail "simulate $*: exit status $?: $(head -n 3 err)"; }

# field FILE NAME ROW..: the field of the row that begins with these fields.
field() {
  file=$1 name=$2 row=$3
  awk -F, -v name="$name" -v row="$row," 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } index($0, row) == 1 { print $at }' "$file"
}
near() { # near WHAT TOLERANCE WANTED FOUND
  awk -v most="$2" -v wanted="$3" -v found="$4" 'BEGIN { exit !(wanted > 0 && found / wanted < 1 + most && found / wanted > 1 - most) }' ||
    fail "$1: predicted $3, simulated $4"
}

# The needed machines have the predicted percentiles, and one fewer breaks the limit that the search names.
printf 'fleet: fleet.json\nruns: 4\nseed: 5\nrequests: 30000\nvary: { spare: [-1, 0, 1] }\n' >spare.yaml
simulate spare.yaml -o spare.csv
for class in phones tablets laptops; do
  for figure in ttft tpot answer; do
    near "$class: $figure p50" 0.05 "$(field fleet.csv ${figure}_p50_ms $class)" "$(field spare.csv ${figure}_p50_ms 0,$class)"
    near "$class: $figure p95" 0.15 "$(field fleet.csv ${figure}_p95_ms $class)" "$(field spare.csv ${figure}_p95_ms 0,$class)"
  done
  same "$class within its limits" '1 1' "$(field spare.csv keeps_limits 0,$class) $(field spare.csv keeps_limits 1,$class)"
done
near 'busy' 0.05 "$(field fleet.csv busy phones)" "$(field spare.csv busy 0,phones)"
near 'USD a month' 1e-6 "$(field fleet.csv usd_per_month phones)" "$(field spare.csv usd_per_month 1,phones)"
binds=$(sed -n 's/.*"one fewer breaks \([a-z]* p[0-9]*\) of \([a-z]*\)".*/\1 \2/p' fleet.json | head -n 1)
[ -n "$binds" ] || fail 'no limit binds'
broken=${binds##* }
same "$broken with one machine fewer" 0 "$(field spare.csv keeps_limits "-1,$broken")"

# The first fleet of the front has one machine more.
front() { sed -n '/"front"/,$s/^ *"'"$1"'": "*\([^",]*\)"*,*/\1/p' fleet.json | head -n 1; }
near 'the first fleet of the front' 0.15 "$(front value_ms)" "$(field spare.csv "$(front figure)_$(front quantile)_ms" "1,$(front class)")"

# The report by itself; the same whatever the threads; other runs have other numbers, and an interval.
simulate fleet.json --runs=3 --threads=1 >one.json
simulate fleet.json --runs=3 --threads=2 >two.json
cmp one.json two.json || fail 'threads change the results'
simulate fleet.json --runs=3 --seed=9 >three.json
cmp -s one.json three.json && fail 'the seed changes nothing'
grep -q '"ttft_half95_ms": {"p50": [0-9]' one.json || fail 'several runs give no interval'

# Each number may be varied.
vary() { # vary KEY VALUES [line ...]: to $work/vary.csv
  printf 'fleet: fleet.json\nrequests: 5000\nvary: { %s: [%s] }\n' "$1" "$2" >vary.yaml
  shift 2
  printf '%s\n' "$@" >>vary.yaml
  simulate vary.yaml -o vary.csv
}
rises() { # rises KEY FIELD SMALLER LARGER
  awk -v a="$(field vary.csv "$2" "$3,phones")" -v b="$(field vary.csv "$2" "$4,phones")" 'BEGIN { exit !(a < b && a > 0) }' ||
    fail "$1: $2 does not rise from $3 to $4: $(cat vary.csv)"
}
vary rate 3,12 && rises rate tpot_p50_ms 3 12
vary replicas 3,9 && rises replicas usd_per_month 3 9 && rises replicas tpot_p50_ms 9 3
vary sessions 4,64 && rises sessions ttft_p95_ms 64 4
vary prompt_turn 1,1024 && rises prompt_turn ttft_p95_ms 1024 1
vary prompt_stretch 1,8 && rises prompt_stretch ttft_p99_ms 8 1
failing='failures: { every: 2min, restart: 1min }'
vary every 120,100000 "$failing" && rises every ttft_p99_ms 100000 120
vary restart 1,300 "$failing" && rises restart ttft_p99_ms 1 300
scaling='autoscale: { target: 8, cold_start: 30s, keep: 1min }'
vary target 4,64 "$scaling" && rises target usd_per_month 64 4
vary least 1,3 'rate: 1' "$scaling" && rises least machines 1 3
vary cold_start 1,300 'diurnal: [1,9,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]' 'rate: 1' "$scaling" && rises cold_start ttft_p99_ms 1 300
vary keep 1,600 'rate: 8' "$scaling" && rises keep machines 1 600

# Faults.
bad() { # bad WHAT PATTERN SED: the report, changed
  sed "$3" fleet.json >bad.json
  cmp -s fleet.json bad.json && fail "$1: nothing is changed"
  refused "$1" "bad.json: error: $2" "$LLMPART" simulate "$work/bad.json" -o "$work/made/out.json"
}
bad 'another schema' 'this is no fleet' 's/llmpart.fleet\/1/llmpart.fleet\/2/'
bad 'a pool that is not there' 'classes\[0\].pool: ' 's/"pool": 0/"pool": 7/'
bad 'no rows' 'certificate.options\[[0-9]*\].rows' 's/"rows":/"rowes":/'
bad 'rows that fall' 'certificate.options\[[0-9]*\].rows\[2\]: ' 's/"rows": \[1.0, 2.0, 4.0/"rows": [1.0, 2.0, 2.0/'
bad 'too few times' 'certificate.options\[[0-9]*\].token_s: has 1 numbers; wanted 11' 's/"token_s": \[.*\],/"token_s": [1.0],/'
bad 'an option that is not there' 'pools\[0\].option: ' 's/"option": [0-9]*/"option": 999/'
bad 'a negative rate' 'rate_per_s' 's/"rate_per_s": /"rate_per_s": -/'
bad 'no sessions' 'pools\[0\].sessions' 's/"sessions": [0-9]*/"sessions": 0/'
bad 'lengths of nothing' 'lengths: has no request' '/"lengths"/,/classes/s/\[\([0-9.]*, [0-9.]*\), [0-9.]*\]/[\1, 0]/'
faulty() { # faulty WHAT PATTERN LINE ...: a scenario
  what=$1 pattern=$2
  shift 2
  printf '%s\n' "$@" >bad.yaml
  refused "$what" "bad.yaml:$pattern" "$LLMPART" simulate "$work/bad.yaml" -o "$work/made/out.json"
}
faulty 'an unknown number' "2:9: error: unknown key 'replica'" 'fleet: fleet.json' 'vary: { replica: [1] }'
faulty 'a report that is absent' "1:8: error: 'fleet': .*none.json: error: cannot open" 'fleet: none.json'
faulty 'two numbers' "2:24: error: 'vary' takes one key" 'fleet: fleet.json' 'vary: { replicas: [1], rate: [1] }'
faulty 'failures that are not there' "2:7: error: to vary 'every', there must be 'failures'" 'fleet: fleet.json' 'vary: { every: [1] }'
faulty 'a short day' "2:10: error: 'diurnal' has 2 factors" 'fleet: fleet.json' 'diurnal: [1, 2]'
faulty 'no cold start' '2:12: error: .*cold_start' 'fleet: fleet.json' 'autoscale: { target: 1 }'
refused 'no report' 'nosuch.json: error: ' "$LLMPART" simulate "$work/nosuch.json"
wanted_status=2 refused 'a figure' 'as json, csv or html' "$LLMPART" simulate "$work/fleet.json" -o svg
finish
