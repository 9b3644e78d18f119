# The device's share of an answer: its energy depends on the link, its cost breaks ties, and what is unknown is said.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx

plan() { # plan OUT.json [option ...]
  out=$1
  shift
  "$LLMPART" compile "$model" --cloud=a100-p1 --objective=cost --plan-only --report="$work/report.txt" -o "$out" "$@" 2>"$work/err" || fail "$*: $(cat "$work/err")"
  "$LLMPART" check-plan "$out" >"$work/out" 2>&1 || fail "$*: refused: $(head -n 3 "$work/out")"
}

# The busy energy of one plan is the same over any link, its energy for the device is not. The checker adds it up.
for link in lan wifi lte; do
  plan "$work/$link.json" --device=raspberry-pi-5 --scheduler=cut --cut=1 --link=$link
  same "the busy energy over $link" "$(number "$work/lan.json" energy_j)" "$(number "$work/$link.json" energy_j)"
done
awk -v lan="$(number "$work/lan.json" device_energy_j)" -v wifi="$(number "$work/wifi.json" device_energy_j)" -v lte="$(number "$work/lte.json" device_energy_j)" \
  'BEGIN { exit !(0 < lan && lan < wifi && wifi < lte) }' || fail "energy over lan, wifi and lte: $(number "$work/lan.json" device_energy_j) $(number "$work/wifi.json" device_energy_j) $(number "$work/lte.json" device_energy_j)"
grep -Eq '^energy +[0-9.]+ J of the device: .* for its radio; [0-9.]+ J of the cloud$' "$work/report.txt" || fail "the text: $(grep ^energy "$work/report.txt")"
grep -Eq '^cost +[0-9.]+ USD/Mreq with the device' "$work/report.txt" || fail "the text: $(grep ^cost "$work/report.txt")"

# A figure that a file lacks is named, and what depends on it is null.
plan "$work/5g.json" --device=raspberry-pi-5 --scheduler=cut --cut=1 --link=5g
grep -q '"device_energy_j": null' "$work/5g.json" || fail 'the energy of an unknown radio'
grep -q "the rest is unknown: the link's file gives no radio" "$work/report.txt" || fail "the text: $(grep ^energy "$work/report.txt")"
plan "$work/nano.json" --device=jetson-nano --scheduler=cut --cut=1 --link=lan
grep -q "the device's file gives no idle_power" "$work/report.txt" || fail "the text: $(grep ^energy "$work/report.txt")"

# A spoiled figure is found.
sed 's/^    "device_radio_j": .*/    "device_radio_j": 1,/' "$work/lte.json" >"$work/spoiled.json"
"$LLMPART" check-plan "$work/spoiled.json" >"$work/out" 2>&1 && fail 'a wrong radio is not found'
grep -q 'device_radio_j is 1' "$work/out" || fail "a wrong radio: $(cat "$work/out")"

# The objective with the device is the cost and a share of the latency, which the checker knows.
plan "$work/total.json" --device=raspberry-pi-5 --link=lan --objective=total-cost
grep -Eq '"objective": "cost\+[0-9.e-]+\*latency"' "$work/total.json" || fail 'the objective'
refused 'a device without figures' 'total-cost needs' "$LLMPART" compile "$model" --device=jetson-nano --cloud=a100-p1 --objective=total-cost --plan-only

# Two devices that cost nothing per second: one front has the faster one only, the other also the one that is cheaper.
cat >"$work/buy.yaml" <<EOF
model: $model
machines: { device: ["apple-m4", "apple-m4,purchase_usd=1,memory_utilisation=0.4"], cloud: a100-p1 }
links: lan
workloads: { isl: 32, osl: 16 }
schedulers: [device-only]
EOF
fronts() { "$LLMPART" sweep "$work/buy.yaml" -o csv --journal="$work/journal.$1" 2>"$work/err" | sed -n 's/.*,\([a-z]*\),[a-z]*$/\1/p' | tr '\n' ' '; }
same 'the front by what is paid per second' 'yes no ' "$(fronts 1)"
echo 'rank_by: total_cost_per_mtok_usd' >>"$work/buy.yaml"
same 'the front by the total cost' 'yes yes ' "$(fronts 2)"
finish
