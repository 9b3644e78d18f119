# A fleet in its three forms, its gate, lengths from files, and what a wrong specification is told.
. "$LP_SOURCE/tests/e2e/lib.sh"
cat >"$work/spec.yaml" <<'END'
decoder: { layers: 16, hidden: 2048, ffn: 8192, heads: 32, kv_heads: 8, vocab: 32000 }
load: { rate: 12 }
lengths: [{ isl: 64, osl: 32, share: 3 }, { isl: 256, osl: 64 }]
classes:
  - { name: phones, share: 0.6, device: snapdragon-8-gen3, link: lte, limits: { ttft: { p95: 500ms }, tpot: { p95: 60ms } } }
  - { name: laptops, share: 0.4, device: apple-m4, link: wifi, limits: { answer: { p99: 60s } } }
machines: [l4, { machine: h100, usd_per_hour: 2 }]
dtypes: { device: int4, cloud: f16 }
kv_dtype: f16
requests: 1000
spare: 1
END
fleet() { "$LLMPART" fleet "$@" 2>"$work/err" || fail "fleet $*: exit status $?: $(head -n 3 "$work/err")"; }
fleet "$work/spec.yaml" -o "$work/one.json" -o text -o "$work/one.csv" >"$work/text"
fleet "$work/spec.yaml" -o json >"$work/two.json"
cmp "$work/one.json" "$work/two.json" || fail 'the same specification gives two fleets'
grep -q '^phones: 60 % of requests, snapdragon-8-gen3 over lte: all in the cloud, on ' "$work/text" || fail "phones: $(cat "$work/text")"
grep -q '^laptops: .*: all on the device$' "$work/text" || fail "laptops: $(cat "$work/text")"
grep -q '^[0-9]* x .*, 1 of them spare: .*; one fewer breaks \|with fewer machines the work does not fit' "$work/text" || fail "pools: $(cat "$work/text")"
grep -q '^next faster: [0-9]* x .*, USD [0-9.]* a month: .* now .*, limit ' "$work/text" || fail "no faster fleet: $(cat "$work/text")"
grep -q '^a request/s costs USD [0-9.]* a month in the mean, one more at least USD [0-9.]*$' "$work/text" || fail "no price: $(cat "$work/text")"
same 'rows' 3 "$(wc -l <"$work/one.csv" | tr -d ' ')"
same 'fields of the CSV' 1 "$(awk -F, '{ print NF }' "$work/one.csv" | sort -u | wc -l | tr -d ' ')"
"${LP_PYTHON:-python3}" - "$work/one.json" >"$work/found" 2>&1 <<'END' || fail "the front: $(cat "$work/found")"
import json, sys
report = json.load(open(sys.argv[1]))
front, fleet = report["neighbours"]["front"], report["fleet"]
assert [f["machines"] - fleet["machines"] for f in front] == [1, 2, 3, 4, 5, 6], front
usd = [fleet["usd_per_month"], *(f["usd_per_month"] for f in front)]
assert all(a < b for a, b in zip(usd, usd[1:])) and abs(usd[1] - report["neighbours"]["faster"]["usd_per_month"]) < 1e-3, usd
strain = [f["value_ms"] / f["limit_ms"] for f in front]
assert max(strain) <= 1 and strain[-1] < strain[0] and all(b < 1.02 * a for a, b in zip(strain, strain[1:])), strain
END
number() { sed -n "s/^ *\"$1\": \([-0-9.e+]*\),*$/\1/p" "$work/one.json" | head -n 1; }
usd=$(sed -n '/"fleet": {/,/}/s/ *"usd_per_month": \([0-9.e+-]*\),/\1/p' "$work/one.json")
bound=$(number lower_bound)
awk -v usd="$usd" -v bound="$bound" -v gap="$(number gap)" 'BEGIN { exit !(bound > 0 && bound <= usd && gap - (1 - bound / usd) < 1e-6) }' ||
  fail "USD $usd, at least $bound, gap $(number gap)"
awk -F, -v usd="$usd" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR > 1 && $at["pool"] != "" && !($at["pool"] in seen) { sum += $at["usd_per_month"]; seen[$at["pool"]] }
  NR > 1 && $at["class"] == "phones" && ($at["ttft_p95_ms"] > 500 || $at["tpot_p95_ms"] > 60) { exit 1 } END { exit !(sum > usd * 0.999999 && sum < usd * 1.000001) }' "$work/one.csv" ||
  fail "the pools do not add up to USD $usd: $(cat "$work/one.csv")"

# Reserved machines are cheaper, some of the spot market cheaper again, and their losses ask for more of them.
priced() { # priced TEXT: USD a month with these keys of the machine
  sed "s/^machines: .*/machines: [{ machine: l4, usd_per_hour: 1$1 }]/" "$work/spec.yaml" >"$work/priced.yaml"
  fleet "$work/priced.yaml" -o "$work/priced.json"
  "$LLMPART" check-plan "$work/priced.json" >"$work/out" || fail "check-plan refuses '$1': $(cat "$work/out")"
  sed -n '/"fleet": {/,/}/s/ *"usd_per_month": \([0-9.e+-]*\),/\1/p' "$work/priced.json"
}
plain=$(priced '')
same 'half the price' "$(awk -v usd="$plain" 'BEGIN { print usd / 2 }')" "$(priced ', reserved_usd_per_hour: 0.5' | awk '{ print $1 + 0 }')"
same 'a reserved price that is no better' "$plain" "$(priced ', reserved_usd_per_hour: 2')"
same 'a spot market that is no better' "$plain" "$(priced ', spot: { usd_per_hour: 1, losses_per_hour: 0.1, restart: 1min }')"
rare=$(priced ', spot: { usd_per_hour: 0.1, losses_per_hour: 0.01, restart: 1s }') often=$(priced ', spot: { usd_per_hour: 0.1, losses_per_hour: 1, restart: 5min }')
same 'machines that are hardly lost' "$(awk -v usd="$plain" 'BEGIN { print usd / 10 }')" "$(echo "$rare" | awk '{ print $1 + 0 }')"
awk -v a="$rare" -v b="$often" -v c="$plain" 'BEGIN { exit !(a < b && b < c) }' || fail "losses: $rare, $often, $plain"
fleet "$work/priced.yaml" >"$work/text"
grep -q '^[0-9]* x l4, 1 of them spare, [0-9]* of the spot market, so that 99.9 % of the time [0-9]* are there' "$work/text" || fail "spot machines: $(cat "$work/text")"

# Limits on the result.
fleet "$work/spec.yaml" --fail-if='usd_per_month < 1' -o csv >/dev/null
wanted_status=4
refused 'a fleet over the limit' 'usd_per_month' "$LLMPART" fleet "$work/spec.yaml" --fail-if='usd_per_month > 1 and machines >= 2' -o "$work/kept.csv"
changed() { sed "$1" "$work/spec.yaml" >"$work/bad.yaml"; }
wanted_status=3
sed 's/^requests/budget: 100\nrequests/' "$work/spec.yaml" >"$work/over.yaml"
sed 's/^requests/objective: latency\nbudget: 9000\nrequests/' "$work/spec.yaml" >"$work/fast.yaml"
changed 's/p95: 60ms/p95: 1ms/'
refused 'limits that nothing keeps' "no candidate keeps the limits of class 'phones', even without other requests: at best, tpot p95 is .* over 1.00 ms" \
  "$LLMPART" fleet "$work/bad.yaml"
changed 's/p95: 60ms/p95: 15ms/; s/^machines: .*/machines: [{ machine: l4, most: 2 }]/; s/rate: 12/rate: 500/'
refused 'too few machines' "no number of machines keeps the limits of all classes" "$LLMPART" fleet "$work/bad.yaml"

# A budget is kept or refused, and spent on tighter limits; private layers stay on the device.
refused 'a budget that is too small' "the cheapest fleet that keeps all limits costs USD $(printf %.2f "$usd") a month, the budget is USD 100.00; no fleet of the space costs less than" \
  "$LLMPART" fleet "$work/over.yaml"
fleet "$work/fast.yaml" -o "$work/fast.json" -o text >"$work/text"
"$LLMPART" check-plan "$work/fast.json" >"$work/out" || fail "check-plan refuses tighter limits: $(cat "$work/out")"
grep -q '^all limits are 0[.][0-9]* times those of the file: tighter ones cost more than USD 9000.00 a month$' "$work/text" || fail "no scale: $(cat "$work/text")"
changed 's/name: phones,/name: phones, private_layers: 4,/; s/p95: 500ms/p95: 5s/; s/p95: 60ms/p95: 600ms/'
unset wanted_status
fleet "$work/bad.yaml" -o "$work/private.json"
"$LLMPART" check-plan "$work/private.json" >"$work/out" || fail "check-plan refuses private layers: $(cat "$work/out")"
if grep -q '"runs": "cloud"' "$work/private.json"; then fail 'private layers in the cloud'; fi
wanted_status=4
sed 's/"private_layers": 4/"private_layers": 16/' "$work/private.json" >"$work/forged.json"
refused 'private layers that left' 'has the digest' "$LLMPART" check-plan "$work/forged.json"

# Two fleets: the dearer one is worse, and only what was asked for and the pools are settings.
unset wanted_status
sed 's/rate: 12/rate: 480/' "$work/spec.yaml" >"$work/more.yaml"
fleet "$work/more.yaml" -o "$work/more.json"
"$LLMPART" diff "$work/one.json" "$work/more.json" --max-regression=5% >"$work/found" 2>&1
same 'a dearer fleet' 4 $?
grep -q '^usd_per_month .* WORSE$' "$work/found" || fail "no worse cost: $(cat "$work/found")"
grep -q '^  rate_per_s: 12 -> 480$' "$work/found" || fail "no rate: $(cat "$work/found")"
! grep 'neighbours\|digest\|one_more\|  fleet\.' "$work/found" || fail 'results as settings'
"$LLMPART" diff "$work/one.json" "$work/two.json" --max-regression=0% >"$work/found" 2>&1 || fail "equal fleets differ: $(cat "$work/found")"

# An early exit gives two of five tokens: fewer machines serve; the proof holds, and the bundle has it.
cat >"$work/plain.yaml" <<'END'
decoder: { layers: 32, hidden: 4096, ffn: 14336, heads: 32, kv_heads: 8, vocab: 128256, context: 8192 }
load: { rate: 100 }
lengths: [{ isl: 64, osl: 256 }]
classes: [{ name: laptops, device: apple-m4, link: wifi, limits: { ttft: { p95: 3s }, tpot: { p95: 40ms } } }]
machines: [a30]
dtypes: { device: int4, cloud: f16 }
kv_dtype: f16
requests: 20000
END
(cat "$work/plain.yaml" && echo 'exits: { layer: 12, asks: 0.6 }') >"$work/exits.yaml"
for spec in plain exits; do
  fleet "$work/$spec.yaml" -o "$work/$spec.json"
  "$LLMPART" check-plan "$work/$spec.json" >"$work/out" || fail "check-plan refuses $spec: $(cat "$work/out")"
  sed -n '/"fleet": {/,/}/s/ *"usd_per_month": \([0-9.e+-]*\),/\1/p' "$work/$spec.json"
done | paste -s | awk '{ exit !($2 < 0.9 * $1 && $2 > 0) }' || fail 'exits save nothing'
grep -q '"runs": "exits"' "$work/exits.json" || fail 'no class has exits'
echo '{"schema": "llmpart.calibration/1", "cloud_request_rate": 0.6, "exits": [{"layer": 6, "alone": []}, {"layer": 12, "alone": []}]}' >"$work/calibration.json"
(cat "$work/plain.yaml" && echo 'exits: { calibration: calibration.json }') >"$work/measured.yaml"
fleet "$work/measured.yaml" -o "$work/calibrated.json"
same 'the fleet of a calibration' "$(grep -v '"spec"\|"digest"' "$work/exits.json")" "$(grep -v '"spec"\|"digest"' "$work/calibrated.json")"
"$LLMPART" simulate "$work/exits.json" -o csv >"$work/judged.csv" || fail 'simulate exits'
same 'limits by the simulation' 1 "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { print $at["keeps_limits"] }' "$work/judged.csv")"
fleet "$work/exits.yaml" --deploy="$work/deployed"
grep -q -- ' --cut=12 --exits=12 ' "$work/deployed/compile.sh" || fail "no exits: $(cat "$work/deployed/compile.sh")"

# Drafts: of three that hold with 80 % each, 1 + 0.8 + 0.64 + 0.512 tokens come from four rows. Refused ones cost device
# and cloud, so that this takes more of the device than an exit that leaves as many tokens to the cloud.
(cat "$work/plain.yaml" && echo 'exits: { layer: 12, drafts: 3, accepts: 0.8 }') >"$work/drafts.yaml"
sed 's/"alone": \[\]}\]/"alone": [{"theta": 0, "exit_rate": 1, "agreement": 0.8}]}]/' "$work/calibration.json" >"$work/agreement.json"
(cat "$work/plain.yaml" && echo 'exits: { calibration: agreement.json, drafts: 3 }') >"$work/measured.yaml"
(cat "$work/plain.yaml" && echo "exits: { layer: 12, asks: $(awk 'BEGIN { printf "%.12g", 1 / 2.952 }') }") >"$work/sure.yaml"
for spec in drafts measured sure; do
  sed 's/name: laptops,/& private_layers: 12,/' "$work/$spec.yaml" >"$work/kept.yaml"
  fleet "$work/kept.yaml" -o "$work/$spec.json" -o text >"$work/$spec.text"
  "$LLMPART" check-plan "$work/$spec.json" >"$work/out" || fail "check-plan refuses $spec: $(cat "$work/out")"
done
same 'the fleet of an agreement' "$(grep -v '"spec"\|"digest"' "$work/drafts.json")" "$(grep -v '"spec"\|"digest"' "$work/measured.json")"
grep -q '^laptops: .*: drafts, 12 of 32 layers on the device, ' "$work/drafts.text" || fail "no drafts: $(cat "$work/drafts.text")"
"$LLMPART" simulate "$work/drafts.json" -o "$work/judged.json" || fail 'simulate drafts'
"${LP_PYTHON:-python3}" - "$work/drafts.json" "$work/sure.json" "$work/judged.json" >"$work/found" 2>&1 <<'END' || fail "drafts: $(cat "$work/found")"
import json, sys
drafts, sure, judged = (json.load(open(path)) for path in sys.argv[1:])
(class_, other), pool = (of["classes"][0] for of in (drafts, sure)), drafts["pools"][0]
user, option = class_["user"], drafts["certificate"]["options"][pool["option"]]
assert class_["runs"] == "drafts" and other["runs"] == "exits", (class_, other)
for of in (user, option):
    assert abs(of["asks"] * 2.952 - 1) < 1e-8 and of["question_rows"] == 4, of
assert abs(user["device_token_ms"] / other["user"]["device_token_ms"] - 4 / 2.952) < 1e-6, (user, other["user"])
assert class_["times"]["tpot_ms"]["p95"] > other["times"]["tpot_ms"]["p50"] * 1.1, (class_["times"], other["times"])
tpot = judged["points"][0]["classes"][0]["tpot_ms"]["p50"]
assert abs(tpot / class_["times"]["tpot_ms"]["p50"] - 1) < 0.02, judged
END
wanted_status=4
sed '/"certificate"/,$s/"question_rows": 4.0/"question_rows": 2.0/' "$work/drafts.json" >"$work/forged.json"
refused 'fewer rows than tokens' 'rows of a question of cut of [0-9]* is 2, should be 2.952' "$LLMPART" check-plan "$work/forged.json"
unset wanted_status

# The deepest splits leave 15 % of a limit to the queue at least.
wanted_status=3
sed 's/name: laptops,/& private_layers: 12,/' "$work/plain.yaml" >"$work/bad.yaml"
refused 'a limit without room for a queue' "no candidate leaves room for a queue within the limits of class 'laptops': at best, tpot p95 is 3[4-9].* ms on a30, and the limit 40.0 ms" \
  "$LLMPART" fleet "$work/bad.yaml"
unset wanted_status

# Turns of the longest prompt that is to be on time: with other turns these machines break the limit.
cat >"$work/turns.yaml" <<'END'
decoder: { layers: 32, hidden: 4096, ffn: 14336, heads: 32, kv_heads: 8, vocab: 128256, context: 8192 }
load: { rate: 60 }
lengths: [{ isl: 300, osl: 100, share: 96.5 }, { isl: 4000, osl: 100, share: 3 }, { isl: 20000, osl: 100, share: 0.5 }]
classes: [{ name: all, device: raspberry-pi-5, link: lan, limits: { ttft: { p99: 1s } } }]
machines: [a100]
dtypes: { device: int4, cloud: f16 }
kv_dtype: f16
requests: 20000
END
fleet "$work/turns.yaml" -o "$work/turns.json"
same 'rows of a turn' 4000 "$(sed -n 's/^ *"prompt_turn": \([0-9]*\),/\1/p' "$work/turns.json")"
for turn in 128 4000 1048576; do
  printf 'fleet: turns.json\nrequests: 40000\nprompt_turn: %s\nvary: { prompt_stretch: [1.4, 2, 4] }\n' $turn >"$work/turn.yaml"
  "$LLMPART" simulate "$work/turn.yaml" -o csv >"$work/judged.csv" || fail "simulate turns of $turn"
  awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR > 1 { any = any || $at["keeps_limits"] } END { print any + 0 }' "$work/judged.csv"
done | paste -s -d ' ' >"$work/found"
same 'turns that keep the limit' '0 1 0' "$(cat "$work/found")"

# KV caches in codes take 34 or 18 bytes for 32 elements, in fleets and sweeps, where code reads them.
cat >"$work/kv.yaml" <<'END'
decoder: { layers: 16, hidden: 2048, ffn: 8192, heads: 32, kv_heads: 8, vocab: 32000 }
load: { rate: 2 }
lengths: [{ isl: 64, osl: 64 }]
classes: [{ name: all, device: raspberry-pi-5, link: lan, limits: { ttft: { p95: 3s }, tpot: { p95: 80ms } } }]
machines: [epyc-9654]
dtypes: { cloud: int8 }
requests: 200
END
cat >"$work/kv_sweep.yaml" <<'END'
decoder: { layers: 16, hidden: 2048, ffn: 8192, heads: 32, kv_heads: 8, vocab: 32000 }
machines: [{ device: raspberry-pi-5, cloud: epyc-9654 }]
links: [lan]
workloads: { isl: 64, osl: 64 }
dtypes: { cloud: int8 }
END
for type in f32 f16 int8 int4; do
  (cat "$work/kv.yaml" && echo "kv_dtype: $type") >"$work/kv_$type.yaml"
  (cat "$work/kv_sweep.yaml" && echo "kv_dtype: $type") >"$work/kvs_$type.yaml"
  fleet "$work/kv_$type.yaml" -o "$work/kv.json"
  "$LLMPART" sweep "$work/kvs_$type.yaml" -o "$work/kv.csv" 2>"$work/err" || fail "sweep: $(cat "$work/err")"
  sed -n 's/^ *"session_bytes": \([0-9.e+]*\),/\1/p' "$work/kv.json"
  awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { print $at["cloud_memory_bytes"] + $at["device_memory_bytes"] }' CONVFMT=%.15g OFMT=%.15g "$work/kv.csv"
done >"$work/bytes"
paste -s -d ' ' "$work/bytes" | awk '{ unit = $3 / 64; exit !(NF == 8 && unit > 0 && $1 == 128 * unit && $5 == 34 * unit && $7 == 18 * unit &&
  ($2 - $4) / 64 == ($4 - $6) / 30 && ($6 - $8) / 16 == ($4 - $6) / 30 && $4 > $6) }' || fail "bytes of caches: $(cat "$work/bytes")"
sed 's/heads: 32/heads: 128/' "$work/kv_int8.yaml" >"$work/bad.yaml"
refused 'heads that blocks do not fill' 'bad.yaml:[0-9]+:[0-9]+: error: .*have blocks of 32 elements, and a head has 16' "$LLMPART" fleet "$work/bad.yaml"

# Lengths from files. Two requests in 10 s, and lengths of one kind, are the same load as a table.
printf 'time_s,input,output\n0,64,32\n5,64,32\n10,64,32\n' >"$work/ours.csv"
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-12-31 23:59:55.5000000,64,32\n2024-01-01 00:00:00.5,64,32\n2024-01-01 00:00:05.5000000,64,32\n' >"$work/azure.csv"
tr , ';' <"$work/ours.csv" >"$work/semicolons.csv"
echo '[[64, 1]]' >"$work/prompts.json"
echo '{"cdf": [[32, 1.0]]}' >"$work/answers.json"
count=0
for lengths in '[{ isl: 64, osl: 32 }]' '{ trace: ours.csv }' '{ trace: semicolons.csv }' '{ trace: azure.csv }' '{ prompts: prompts.json, answers: answers.json }'; do
  load='{ users: 720, per_user_hour: 1 }'
  case $lengths in *trace*) load='{}' ;; esac
  sed "s/^lengths: .*/lengths: $lengths/; s/^load: .*/load: $load/" "$work/spec.yaml" >"$work/files.yaml"
  count=$((count + 1))
  fleet "$work/files.yaml" -o "$work/made.json"
  grep -v '"spec"\|"of"\|"mean_usd\|"least_usd\|"digest"' "$work/made.json" >"$work/$count.json" # a user is no request/s
  cmp "$work/1.json" "$work/$count.json" || fail "lengths '$lengths' give another fleet"
done
grep -q '"rate_per_s": 0.2,' "$work/1.json" || fail "the rate: $(head -n 4 "$work/1.json")"

# Regions: the best of all ways to give two classes one of two regions, each planned with the links and prices there.
regional() { # regional CALLS MAIL PRICE: a specification without regions; a link that is - leaves its class out
  echo 'decoder: { layers: 16, hidden: 2048, ffn: 8192, heads: 32, kv_heads: 8, vocab: 32000 }'
  echo "load: { rate: $([ "$1" = - ] || [ "$2" = - ] && echo 60 || echo 120) }"
  echo 'lengths: [{ isl: 256, osl: 64 }]'
  echo 'classes:'
  [ "$1" = - ] || echo "  - { name: calls, device: raspberry-pi-5, link: \"$1\", limits: { ttft: { p95: 120ms }, tpot: { p95: 60ms } } }"
  [ "$2" = - ] || echo "  - { name: mail, device: raspberry-pi-5, link: \"$2\", limits: { ttft: { p95: 3s }, tpot: { p95: 40ms } } }"
  echo "machines: [{ machine: l4, usd_per_hour: $3 }]"
  printf 'dtypes: { device: int4, cloud: f16 }\nkv_dtype: f16\nrequests: 1000\n'
}
usd_of() { "$LLMPART" fleet "$1" -o json 2>/dev/null | sed -n '/"fleet": {/,/}/s/ *"usd_per_month": \([0-9.e+-]*\),/\1/p'; }
far='5g,rtt=180ms' wifi_far='wifi,rtt=180ms'
regional 5g wifi 1 >"$work/near.yaml" && (cat "$work/near.yaml" && echo 'regions: [{ name: near, price: 1.5 }, { name: far, rtt: 180ms }]') >"$work/regions.yaml"
for case in "5g wifi 1.5" "$far $wifi_far 1" "5g - 1.5" "- $wifi_far 1" "- wifi 1.5" "$far - 1"; do
  # shellcheck disable=SC2086 # three words
  regional $case >"$work/plain.yaml"
  usd_of "$work/plain.yaml" | grep . || echo inf
done | paste -s -d ' ' >"$work/found"
read -r both_near both_far calls_near mail_far mail_near calls_far <"$work/found"
same 'calls from far away' inf "$calls_far"
least=$(awk -v a="$both_near" -v b="$both_far" -v c="$calls_near" -v d="$mail_far" -v e="$mail_near" -v f="$calls_far" 'BEGIN {
  n = split(a " " b " " c + d " " (f == "inf" ? "inf" : e + f), usd, " "); for (i = 1; i <= n; i++) if (usd[i] != "inf" && (best == "" || usd[i] + 0 < best)) best = usd[i] + 0; print best }')
same 'USD of regions' "$least" "$(usd_of "$work/regions.yaml" | awk '{ print $1 + 0 }')"
fleet "$work/regions.yaml" -o text -o "$work/regions.json" --deploy="$work/in_regions" >"$work/text"
"$LLMPART" check-plan "$work/regions.json" >"$work/out" || fail "check-plan refuses regions: $(cat "$work/out")"
grep -q '^mail: .* over wifi,rtt=180ms: .*' "$work/text" && grep -q '^[0-9]* x l4 in far: ' "$work/text" && grep -q '^[0-9]* x l4 in near: ' "$work/text" || fail "regions: $(cat "$work/text")"
grep -hq 'nodeSelector: { llmpart.io/machine: "l4", topology.kubernetes.io/region: "far" }' "$work"/in_regions/kubernetes/*.yaml || fail 'no region of nodes'
sed 's/name: far, rtt: 180ms/name: far, rtt: 180ms, links: { calls: 5g, mail: wifi }/' "$work/regions.yaml" >"$work/near.yaml"
regional 5g wifi 1 >"$work/plain.yaml"
same 'a region with the links of the classes' "$(usd_of "$work/plain.yaml")" "$(usd_of "$work/near.yaml")"
sed 's/links: { calls: 5g/links: { call: 5g/' "$work/near.yaml" >"$work/bad.yaml"
unset wanted_status
refused 'an unknown class' "bad.yaml:11:.* error: unknown key 'call'" "$LLMPART" fleet "$work/bad.yaml"
sed 's/rtt: 180ms/links: { mail: nosuch }/' "$work/regions.yaml" >"$work/bad.yaml"
refused 'an unknown link' "bad.yaml:11:.* error: 'link': .*nosuch" "$LLMPART" fleet "$work/bad.yaml"
sed 's/price: 1.5/price: 0/' "$work/regions.yaml" >"$work/bad.yaml"
refused 'machines for nothing' 'bad.yaml:11:.* error: .*price' "$LLMPART" fleet "$work/bad.yaml"

# The curve of a day from a trace of two days: a request an hour, and another one in each hour from 12 to 18.
awk 'BEGIN { print "time_s,input,output"; for (h = 0; h < 48; h++) for (i = 0; i < 1 + (h % 24 >= 12 && h % 24 < 18); i++) print 3600 * h + 900 + 1800 * i ",64,32" }' >"$work/days.csv"
hours='1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1'
for load in trace "[$hours]"; do
  sed "s/^lengths: .*/lengths: { trace: days.csv }/; s/^load: .*/load: { rate: 40, diurnal: $load }\nby_hour: { cold_start: 5min }/; s/lte/5g/" "$work/spec.yaml" >"$work/days.yaml"
  fleet "$work/days.yaml" -o json | grep -v '"digest"' >"$work/days.$count.json"
  count=$((count + 1))
done
"${LP_PYTHON:-python3}" - "$work/days.$((count - 2)).json" "$work/days.$((count - 1)).json" >"$work/found" 2>&1 <<'END' || fail "the day of a trace: $(cat "$work/found")"
import json, sys
of_trace, told = (json.loads(open(path).read().rstrip().rstrip("}").rstrip().rstrip(",") + "}") for path in sys.argv[1:])
rates = [of["by_hour"]["rate_per_s"] for of in (of_trace, told)]
assert abs(sum(rates[0]) / 24 - 40) < 1e-6 and abs(rates[1][13] / rates[1][0] - 2) < 1e-6, rates
# The trace begins and ends within an hour, of which it has a part: that hour has the request in less time.
assert all(abs(a / b - 1) < 0.06 for a, b in zip(*(r[1:23] for r in rates))), rates
END

# Faults have file, line and key.
unset wanted_status
bad() { # bad WHAT PATTERN SED: the spec, changed
  changed "$3"
  refused "$1" "bad.yaml:$2" "$LLMPART" fleet "$work/bad.yaml" -o "$work/made/out.csv"
}
bad 'an unknown key' "4:1: error: unknown key 'klasses'" 's/^classes/klasses/'
bad 'an unknown figure' "5:.*: error: unknown key 'ttfd'" 's/{ ttft:/{ ttfd:/'
bad 'an unknown percentile' "5:.*: error: unknown key 'p90'" 's/ttft: { p95/ttft: { p90/'
bad 'an unknown device' "5:.*: error: 'device': unknown machine 'snapdragon-9'" 's/snapdragon-8-gen3/snapdragon-9/'
bad 'a machine without a price' "7:12: error: 'apple-m1' has no price: give { machine: apple-m1, usd_per_hour" 's/\[l4,/[apple-m1,/'
bad 'most and spot' "7:.*: error: a machine with 'most' has no 'spot'" 's/usd_per_hour: 2/most: 2, spot: { usd_per_hour: 1, losses_per_hour: 1, restart: 1s }/'
bad 'machines that are away' "7:.*: error: a spot machine is away for 50 % of the time; at most 40 %" 's/usd_per_hour: 2/spot: { usd_per_hour: 1, losses_per_hour: 60, restart: 1min }/'
bad 'a spot market without losses' "7:.*: error: .*losses_per_hour" 's/usd_per_hour: 2/spot: { usd_per_hour: 1, restart: 1min }/'
bad 'an availability of all time' "1:15: error: .*availability" '1s/^/availability: 1\n/'
bad 'no limit' "5:.*: error: 'limits' sets none" 's/limits: { ttft.*60ms } }/limits: {}/'
bad 'no rate' "2:7: error: 'load' wants 'rate'" 's/rate: 12/users: 12/'
bad 'a rate and users' "2:7: error: 'load' wants 'rate'" 's/rate: 12/rate: 12, users: 10/'
bad 'a rate and users that give one' "2:7: error: 'load' wants 'rate'" 's/rate: 12/rate: 12, users: 10, per_user_hour: 1/'
bad 'a day of 3 hours' "2:.*: error: 'diurnal' has 3 factors" 's/rate: 12/rate: 12, diurnal: [1, 2, 3]/'
bad 'a curve of no trace' "2:.*: error: there is no trace that has each of the 24 hours" 's/rate: 12/rate: 12, diurnal: trace/'
bad 'hours without a curve' "1:.*: error: 'by_hour' wants a load with 'diurnal'" '1s/^/by_hour: { cold_start: 3min }\n/'
bad 'a start of an hour' "1:.*: error: .*cold_start" '1s/^/by_hour: { cold_start: 1h }\n/'
bad 'both a model and a shape' "1:1: error: expected 'model' .* and not both" '1s/^/model: a.onnx\n/'
bad 'an exit of nothing' "1:.*: error: .*asks" '1s/^/exits: { layer: 3, asks: 0 }\n/'
bad 'drafts without their chance' "1:8: error: 'exits' wants" '1s/^/exits: { layer: 3, drafts: 2 }\n/'
bad 'a chance without drafts' "1:8: error: 'exits' wants" '1s/^/exits: { layer: 3, asks: 0.5, accepts: 0.5 }\n/'
bad 'drafts that always hold' "1:.*: error: .*accepts" '1s/^/exits: { layer: 3, drafts: 2, accepts: 1 }\n/'
bad 'an exit after all layers' "1:8: error: the exit is after layer 16 of 16" '1s/^/exits: { layer: 16, asks: 0.5 }\n/'
bad 'a calibration that is absent' "1:8: error: 'calibration': .*none.json: error: cannot open" '1s/^/exits: { calibration: none.json }\n/'
bad 'a model that is absent' "1:8: error: 'model': .*none.onnx: error: cannot open" 's/^decoder: .*/model: none.onnx/'
bad 'more private layers than there are' "6:5: error: class 'laptops' has 17 private layers; the model has 16" 's/name: laptops,/name: laptops, private_layers: 17,/'
bad 'no trace' "3:19: error: 'trace': .*none.csv: error: cannot open" 's/^lengths: .*/lengths: { trace: none.csv }/'
bad 'no length' "3:10: error: .*lengths" 's/^lengths: .*/lengths: []/'
bad 'half of a distribution' "3:10: error: 'lengths' is a list of" 's/^lengths: .*/lengths: { prompts: prompts.json }/'
echo '[[64, 0.5], [32, 1]]' >"$work/prompts.json"
changed 's/^lengths: .*/lengths: { prompts: prompts.json, answers: answers.json }/'
refused 'a distribution that falls' "bad.yaml:3:21: error: 'prompts': .*prompts.json: error: \[1\]\[0\]" "$LLMPART" fleet "$work/bad.yaml"
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01 00:00:00.5,64,32\n2024-01-01 00:00:inf,64,32\n' >"$work/azure.csv"
changed 's/^lengths: .*/lengths: { trace: azure.csv }/'
refused 'a time without end' "azure.csv:3:1: error: '2024-01-01 00:00:inf' is not a time" "$LLMPART" fleet "$work/bad.yaml"
printf 'time_s,input\n0,64\n' >"$work/ours.csv"
changed 's/^lengths: .*/lengths: { trace: ours.csv }/'
refused 'a trace without a column' "ours.csv: error: there is no column 'output'" "$LLMPART" fleet "$work/bad.yaml"
wanted_status=2
refused 'an unknown format' "'xml' is none of text, json, csv, html" "$LLMPART" fleet "$work/spec.yaml" -o xml
refused 'an expression' "fail-if" "$LLMPART" fleet "$work/spec.yaml" --fail-if='usd <'
finish
