# check-plan confirms a fleet's bound from the report, and refuses each changed number. $1: the program of forge.c.
. "$LP_SOURCE/tests/e2e/lib.sh"
cat >"$work/spec.yaml" <<'END'
decoder: { layers: 16, hidden: 2048, ffn: 8192, heads: 32, kv_heads: 8, vocab: 32000 }
load: { rate: 3000 }
lengths: [{ isl: 64, osl: 32, share: 3 }, { isl: 256, osl: 64 }]
classes:
  - { name: phones, share: 0.6, device: snapdragon-8-gen3, link: lte, limits: { ttft: { p95: 900ms }, tpot: { p95: 60ms } } }
  - { name: laptops, share: 0.3, device: apple-m4, link: wifi, limits: { answer: { p99: 60s } } }
  - { name: boards, share: 0.1, device: raspberry-pi-5, link: wifi, limits: { tpot: { p50: 40ms, p99: 80ms }, ttft: { p95: 50ms } } }
machines:
  - { machine: l4, reserved_usd_per_hour: 0.5, spot: { usd_per_hour: 0.1, losses_per_hour: 60, restart: 1s, most: 3 } }
  - { machine: t4, most: 40 }
  - { machine: h100, usd_per_hour: 2, spot: { usd_per_hour: 0.9, losses_per_hour: 2, restart: 10min } }
dtypes: { device: int4, cloud: f16 }
kv_dtype: f16
requests: 1000
spare: 1
END
"$LLMPART" fleet "$work/spec.yaml" -o "$work/fleet.json" || fail 'there is no fleet'
"$LLMPART" check-plan "$work/fleet.json" >"$work/out" || fail 'an honest fleet is refused'
grep -q "fleet.json: USD $(awk '/"fleet": {/ { in_fleet = 1 } in_fleet && /"usd_per_month"/ { printf "%.2f", $2; exit }' "$work/fleet.json") a month, at least USD .* is proved" "$work/out" ||
  fail "it does not say what is proved: $(cat "$work/out")"
awk '/"count"/ { count = $2 + 0 } /"spot": [1-9]/ { spot = $2 + 0; mixed = mixed || spot < count } END { exit !mixed }' "$work/fleet.json" || fail 'no pool has machines of both kinds'
"$LLMPART" simulate "$work/fleet.json" >"$work/judged.json" || fail 'simulate'
grep -q '"failures_per_month": [1-9]' "$work/judged.json" || fail "no spot machine is lost: $(grep failures "$work/judged.json")"
printf 'fleet: fleet.json\nvary: { losses_every: [30, 120] }\nlosses: { restart: 2s }\n' >"$work/losses.yaml"
"$LLMPART" simulate "$work/losses.yaml" >"$work/lost.json" || fail 'simulate other losses'
grep '"failures_per_month": [1-9]' "$work/lost.json" | awk -F: '{ print $2 + 0 }' | paste -s -d ' ' |
  awk '{ often = $1 / (3 * 730 * 3600 / 32); rare = $2 / (3 * 730 * 3600 / 122); exit !(NF == 2 && often > 0.5 && often < 1.6 && rare > 0.2 && rare < 2.5) }' ||
  fail "other losses: $(grep failures "$work/lost.json")"
same 'USD by the simulation' "$(sed -n '/"fleet": {/,/}/s/ *"usd_per_month": \([0-9.e+-]*\),/\1/p' "$work/fleet.json")" \
  "$(sed -n 's/ *"usd_per_month": \([0-9.e+-]*\),/\1/p' "$work/judged.json" | head -n 1)"
"$1" "$work/fleet.json" 3 >"$work/out" || fail "changed numbers pass: $(tail -n 5 "$work/out")"
"$1" "$work/fleet.json" 3 sign >"$work/out" || fail "changed numbers with a new digest pass: $(tail -n 5 "$work/out")"
# Another layout says the same; a text or a verdict that is another one does not.
tr -s ' \n' ' ' <"$work/fleet.json" >"$work/flat.json"
"$LLMPART" check-plan "$work/flat.json" >"$work/out" || fail "another layout is refused"
wanted_status=4
sed 's/"complete": true/"complete": false/' "$work/fleet.json" >"$work/forged.json"
refused 'another verdict' 'has the digest' "$LLMPART" check-plan "$work/forged.json"
sed '/^  "digest"/d; s/^  },$/&/' "$work/fleet.json" | sed '$!N; s/},\n}/}\n}/; P; D' >"$work/forged.json"
refused 'no digest' 'has the digest .none.' "$LLMPART" check-plan "$work/forged.json"
awk '/"certificate": {/ { inside = 1 } inside && /"kept_s"/ && !done { sub(/"kept_s": [0-9.e+-]*/, "\"kept_s\": 1"); done = 1 } { print }' "$work/fleet.json" >"$work/forged.json"
refused 'a price above the time of a pass' 'price 0 of l4 is more than a pass takes' "$LLMPART" check-plan "$work/forged.json"
bound=$(sed -n 's/^ *"lower_bound": \([0-9.e+]*\),/\1/p' "$work/fleet.json")
usd=$(sed -n '/"fleet": {/,/}/s/ *"usd_per_month": \([0-9.e+-]*\),/\1/p' "$work/fleet.json")
higher=$(awk -v bound="$bound" -v usd="$usd" 'BEGIN { printf "\"lower_bound\": %.9g/; s/\"gap\": [0-9.e-]*/\"gap\": %.12g", 1.03 * bound, 1 - 1.03 * bound / usd }')
sed "s/\"lower_bound\": $bound/$higher/" "$work/fleet.json" >"$work/forged.json"
refused 'a bound that is not proved' 'fleet.lower_bound is .*, only .* is proved' "$LLMPART" check-plan "$work/forged.json"

# Machines that come and go with the hours: the report's USD are those of a count hour by hour, each number of the day
# is proved, and a simulated day costs as much, but for the part of `drain` that answers leave.
unset wanted_status
cat >"$work/day.yaml" <<'END'
decoder: { layers: 16, hidden: 2048, ffn: 8192, heads: 32, kv_heads: 8, vocab: 32000 }
load: { rate: 6, diurnal: [3, 3, 3, 3, 2, 2, 2, 4, 4, 4, 6, 6, 8, 8, 6, 6, 10, 10, 4, 4, 2, 0, 0, 1] }
by_hour: { cold_start: 10min, drain: 1min }
lengths: [{ isl: 512, osl: 256 }]
classes: [{ name: boards, device: raspberry-pi-5, link: wifi, limits: { tpot: { p95: 60ms }, ttft: { p95: 900ms } } }]
machines:
  - machine: "l4,compute_utilisation=0.05"
    usd_per_hour: 0.8
    reserved_usd_per_hour: 0.6
    spot: { usd_per_hour: 0.3, losses_per_hour: 0.2, restart: 5min, most: 4 }
kv_dtype: f16
requests: 1000
spare: 1
END
sed '/^by_hour/d' "$work/day.yaml" >"$work/peak.yaml"
for spec in day peak; do
  "$LLMPART" fleet "$work/$spec.yaml" -o "$work/$spec.json" || fail "there is no fleet of $spec"
  "$LLMPART" check-plan "$work/$spec.json" >"$work/out" || fail "the fleet of $spec is refused"
done
"$LLMPART" simulate "$work/day.json" >"$work/judged.json" || fail 'simulate a day'
"${LP_PYTHON:-python3}" - "$work/day.json" "$work/peak.json" "$work/judged.json" >"$work/found" 2>&1 <<'END' || fail "the day: $(cat "$work/found")"
import json, sys
day, peak, judged = (json.load(open(path)) for path in sys.argv[1:])
pool, (judge,) = day["pools"][0], judged["points"][0]["pools"]
option, hours = day["certificate"]["options"][pool["option"]], [n + pool["spare"] for n in pool["by_hour"]]
on_spot = max(hours) - (pool["count"] - pool["spot"])  # without those that stand in for lost ones
usd = 24 * (pool["stay"] * option["usd_per_hour"] + (pool["spot"] - on_spot) * option["spot"]["usd_per_hour"])
for rank in range(pool["stay"], max(hours)):  # each machine above those that stay
    wanted = [n > rank for n in hours]
    paid = sum(wanted) + sum(wanted[h] and not wanted[h - 1] for h in range(24)) * 11 / 60
    usd += paid * (option["spot"]["usd_per_hour"] if rank < pool["stay"] + on_spot else option["usd_by_hour"])
assert abs(usd * 730 / 24 / day["fleet"]["usd_per_month"] - 1) < 1e-7, (usd * 730 / 24, day["fleet"])
assert 0 < pool["stay"] and 0 < pool["spot"] and pool["stay"] + on_spot < max(hours) and len(set(hours)) > 3, pool
assert max(day["by_hour"]["rate_per_s"]) == day["rate_per_s"] == peak["rate_per_s"] and peak["by_hour"] is None
assert pool["needed"] == peak["pools"][0]["needed"] and peak["fleet"]["usd_per_month"] > 1.2 * day["fleet"]["usd_per_month"]
assert 0.99 < judge["usd_per_month"] / day["fleet"]["usd_per_month"] < 1, judge
rises = sum(max(0, hours[h] - hours[h - 1]) for h in range(24))
machines = (sum(hours) + rises / 6) / 24 + pool["spot"] - on_spot
assert machines < judge["machines"] < machines + rises / 60 / 24, (machines, judge)
assert judged["points"][0]["keeps_limits"]
END
"$1" "$work/day.json" 3 >"$work/out" || fail "changed numbers of a day pass: $(tail -n 5 "$work/out")"
"$1" "$work/day.json" 3 sign >"$work/out" || fail "changed numbers of a day with a new digest pass: $(tail -n 5 "$work/out")"

# Where all machines stay, each hour takes its own energy. The month's is within 2 % of that of two simulated days, in
# which the first fifth of the requests is not counted, and less than that of a month of the busiest hour.
unset wanted_status
sed 's/spare: 1/spare: 0/; s/requests: 1000/requests: 20000/; /spot:/d; s/compute_utilisation=0.05/&,idle_power=16W/' "$work/peak.yaml" >"$work/stay.yaml"
"$LLMPART" fleet "$work/stay.yaml" -o "$work/stay.json" || fail 'there is no fleet that stays'
"$LLMPART" check-plan "$work/stay.json" >"$work/out" || fail 'the fleet that stays is refused'
printf 'fleet: stay.json\nrequests: 829440\n%s\n' "$(sed -n 's/.*\(diurnal: .*\]\) }/\1/p' "$work/stay.yaml")" >"$work/judge.yaml"
"$LLMPART" simulate "$work/judge.yaml" >"$work/judged.json" || fail 'simulate a day of machines that stay'
"$LLMPART" simulate "$work/stay.json" >"$work/busiest.json" || fail 'simulate the busiest hour'
"${LP_PYTHON:-python3}" - "$work/stay.json" "$work/judged.json" "$work/busiest.json" >"$work/found" 2>&1 <<'END' || fail "the energy of a day: $(cat "$work/found")"
import json, sys
stay, judged, busiest = (json.load(open(path)) for path in sys.argv[1:])
(judge,), (most,), (pool,), fleet = judged["points"][0]["pools"], busiest["points"][0]["pools"], stay["pools"], stay["fleet"]
for found, wanted in ((fleet["kwh_per_month"], judge["busy_kwh_per_month"]), (fleet["idle_kwh_per_month"], judge["idle_kwh_per_month"]), (pool["busy"], judge["busy"])):
    assert abs(found / wanted - 1) < 0.02, (found, wanted)
assert fleet["kwh_per_month"] < 0.95 * most["busy_kwh_per_month"], (fleet, most)
assert stay["by_hour"] is None and abs(stay["mean_rate_per_s"] - 6) < 1e-9, stay
END
"$1" "$work/peak.json" 3 sign >"$work/out" || fail "changed numbers of machines that stay with a new digest pass: $(tail -n 5 "$work/out")"

# The least energy: of two machines alike the frugal one, though it costs more; and the cloud for a class whose device
# takes more. The total is proved, and a simulation takes as much.
cat >"$work/energy.yaml" <<'END'
decoder: { layers: 16, hidden: 2048, ffn: 8192, heads: 32, kv_heads: 8, vocab: 32000 }
load: { rate: 100 }
lengths: [{ isl: 256, osl: 64 }]
classes:
  - { name: boards, device: "raspberry-pi-5,power=8W", link: wifi, limits: { tpot: { p95: 40ms }, ttft: { p95: 900ms } } }
  - { name: laptops, device: "apple-m4,power=90W", link: wifi, limits: { tpot: { p95: 40ms }, ttft: { p95: 5s } } }
machines:
  - { machine: "l4,power=300W,idle_power=100W", usd_per_hour: 0.5 }
  - { machine: "l4,power=90W,idle_power=30W", usd_per_hour: 1, reserved_usd_per_hour: 0.8, spot: { usd_per_hour: 0.2, losses_per_hour: 1, restart: 1min } }
dtypes: { device: int4, cloud: f16 }
kv_dtype: f16
requests: 20000
objective: cost
END
unset wanted_status
sed 's/objective: cost/objective: energy/' "$work/energy.yaml" >"$work/frugal.yaml"
sed 's/power=90W\", link/power=0.1W", link/' "$work/frugal.yaml" >"$work/alone.yaml"
for spec in energy frugal alone; do
  "$LLMPART" fleet "$work/$spec.yaml" -o "$work/$spec.json" || fail "there is no fleet of $spec"
  "$LLMPART" check-plan "$work/$spec.json" >"$work/out" || fail "the fleet of $spec is refused"
done
"$LLMPART" simulate "$work/frugal.json" >"$work/judged.json" || fail 'simulate'
"${LP_PYTHON:-python3}" - "$work/energy.json" "$work/frugal.json" "$work/alone.json" "$work/judged.json" >"$work/found" 2>&1 <<'END' || fail "energy: $(cat "$work/found")"
import json, sys
cost, frugal, alone, judged = (json.load(open(path)) for path in sys.argv[1:])
total = lambda r: sum(r["fleet"][key] for key in ("kwh_per_month", "idle_kwh_per_month", "device_kwh_per_month"))
runs = lambda r: [c["runs"] for c in r["classes"]]
assert runs(cost)[1] == runs(alone)[1] == "device" and runs(frugal)[1] == "cloud", (runs(cost), runs(frugal), runs(alone))
assert cost["fleet"]["kwh_lower_bound"] is None and [p["machine"] for p in frugal["pools"]] == ["l4,power=90W,idle_power=30W"]
assert 0.7 * total(frugal) < frugal["fleet"]["kwh_lower_bound"] <= total(frugal) < total(cost), (frugal["fleet"], cost["fleet"])
assert cost["fleet"]["lower_bound"] <= frugal["fleet"]["lower_bound"] * (1 + 1e-9) and frugal["pools"][0]["spot"] == 0
joules = frugal["certificate"]["alone_j"]  # each request of a class on its device
assert abs(alone["fleet"]["device_kwh_per_month"] / (50 * joules[1] / 900 * 730 / 1000) - 1) < 1e-6, (alone["fleet"], joules)
point = judged["points"][0]
found = sum(p["busy_kwh_per_month"] + p["idle_kwh_per_month"] for p in point["pools"]) + sum(c["device_busy_kwh_per_month"] for c in point["classes"])
assert abs(found / total(frugal) - 1) < 0.05, (found, total(frugal))
END
wanted_status=4
bound=$(sed -n 's/^ *"kwh_lower_bound": \([0-9.e+]*\),/\1/p' "$work/frugal.json")
sed "s/\"kwh_lower_bound\": $bound/\"kwh_lower_bound\": $(awk -v bound="$bound" 'BEGIN { print 1.001 * bound }')/" "$work/frugal.json" >"$work/forged.json"
refused 'energy that is not proved' 'fleet.kwh_lower_bound is .*, only .* is proved' "$LLMPART" check-plan "$work/forged.json"
"$1" "$work/frugal.json" 3 >"$work/out" || fail "changed numbers of energy pass: $(tail -n 5 "$work/out")"
unset wanted_status
sed 's/idle_power=30W/idle_power=91W/' "$work/frugal.yaml" >"$work/bad.yaml"
refused 'more when idle' "the objective 'energy' wants of 'l4,power=90W,idle_power=91W' a power, and an idle_power that is at most as high" "$LLMPART" fleet "$work/bad.yaml"
sed 's/rate: 100/rate: 100, diurnal: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]/' "$work/frugal.yaml" >"$work/bad.yaml"
refused 'the energy of a busiest hour' "the objective 'energy' wants 'by_hour'" "$LLMPART" fleet "$work/bad.yaml"
finish
