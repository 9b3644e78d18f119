# The pages of sweeps, simulations, fleets and measurements in headless Chromium: they draw what the tables have, and
# the command of a chosen point of a front makes that row's plan.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/e2e/browser.sh"
cd "$work" || exit 1
cp "$LP_SOURCE/tests/models/llama/model.onnx" .
circles() { grep -c "^<circle.*class=\"\([a-z]* \)*$1[ \"]" dom; } # circles CLASS

# Fronts: a machine too small for the model pays for the cloud, and one that is large enough pays nothing.
cat >sweep.yaml <<'END'
model: model.onnx
machines: [{device: jetson-nano, cloud: [v100s, a100]}]
links: [wifi, lte]
workloads: {isl: 16, osl: 8, batch: 1}
slas: [{}, {ttft: 100ms, tpot: 60ms}]
schedulers: [exact, cloud-only]
sessions: [1, 4]
device_memory: 200kB
END
"$LLMPART" sweep sweep.yaml -o sweep.html -o sweep.csv || fail 'sweep'
open_page sweep.html ''
grep -q '<svg' dom || skip "chromium does not run here: $(tail -n 1 log)"
same 'charts of a workload' 2 "$(grep -c '^<svg' dom)"
! grep -Eq '>(-0|NaN|undefined)[ <]' dom || fail 'labels that are no numbers'
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } { print $at }' sweep.csv; }
fits_screens sweep.html
open_page sweep.html ''
on_fronts=$(($(column front_tpot | grep -c yes) + $(column front_ttft | grep -c yes)))
same 'points of fronts' "$on_fronts" "$(circles dot)"
same 'other points' $((2 * $(column feasible | grep -c yes) - on_fronts)) "$(circles faint)"
same 'rings: rows of one session' "$((2 * $(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $at["feasible"] == "yes" && $at["sessions"] == 1' sweep.csv | wc -l)))" "$(circles ring)"
same 'colours of pairs' 2 "$(grep '^<circle' dom | grep -o 'var(--c[0-9])' | sort -u | wc -l)"
open_page sweep.html 'const dots = document.querySelectorAll("circle.dot"); dots[dots.length - 1].dispatchEvent(new Event("click"));'
chosen=$(sed -n 's/.*<p>row \([0-9]*\): .*/\1/p; s/.*>row \([0-9]*\): [^<]*<\/p>.*/\1/p' dom | head -n 1)
command=$(sed -n 's/.*<pre class="command">llmpart \(.*\) -o plan.llmpart<\/pre>.*/\1/p' dom | sed 's/&amp;/\&/g')
[ -n "$chosen" ] && [ -n "$command" ] || fail "no command: $(grep -o 'class="command".*' dom | head -c 200)"
sh -c "'$LLMPART' $command --plan-only --report=plan.json" 2>err || fail "the chosen command: $command: $(cat err)"
awk -F, -v row="$chosen" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == row + 2 { printf "%.9g %.9g\n", $at["ttft_ms"], $at["tpot_ms"] }' sweep.csv >want
sed -n '/^  "plan": {/,/}/p' plan.json >plan.part
printf '%.9g %.9g\n' "$(number plan.part ttft_ms)" "$(number plan.part tpot_ms)" >found
same 'the plan of the chosen command' "$(cat want)" "$(cat found)"

# Without the limit the device alone is free of charge: the front is on the axis' own line for 0.
sed -i '/device_memory/d' sweep.yaml
"$LLMPART" sweep sweep.yaml -o free.html || fail 'sweep'
open_page free.html ''
grep -q '>0</text>' dom || fail 'no line for a cost of 0'

# Bands of a simulation: one for each line of a figure that varies.
sed -e 's/requests: .*/requests: 300/' -e 's/warm_up: .*/warm_up: 50/' "$LP_SOURCE/examples/edge-cloud-6g/length.yaml" >length.yaml
"$LLMPART" simulate length.yaml --runs=2 -o length.html -o length.csv || fail 'simulate'
open_page length.html ''
fits_screens length.html
open_page length.html ''
figures=$(grep -c '^<svg' dom) lines=$(awk -F, 'NR > 1 { print $1 "," $2 }' length.csv | sort -u | wc -l)
[ "$figures" -ge 2 ] || fail "only $figures figures"
same 'bands' $((figures * lines)) "$(grep -c 'class="band"' dom)"
same 'rows of the table' "$(($(wc -l <length.csv) - 1))" "$(($(grep -c '^<tr' dom) - 1))"

# A plan over places: a box for each run of layers, a row for each operator, and what the tables say.
"$LLMPART" compile model.onnx --place=phone=jetson-nano --place=edge=l4 --place=server=h100 --link=wifi --device-memory=400kB --plan-only \
  --report=places.html --report=places.csv --report=places.json || fail 'places'
open_page places.html ''
fits_screens places.html
open_page places.html ''
same 'strips of places' 2 "$(grep -c '^<svg' dom)"
same 'boxes of layers' "$(grep -o '"layers": "[^"]*", "places": \[[^]]*\]' places.json | sed 's/.*places": //' | grep -o '"[^"]*"' | wc -l)" "$(grep -o '<rect' dom | wc -l)"
same 'rows of operators' "$(($(wc -l <places.csv) - 1))" "$(sed -n '/id="operators"/,$p' dom | grep -c '<td class="left">op\.')"
! grep -Eq '>(-0|NaN|undefined)[ <]' dom || fail 'figures that are no numbers'

# A fleet: a square for each machine, a mark for each limit, and what a slider says of the load's work.
cat >fleet.yaml <<'END'
decoder: { layers: 16, hidden: 2048, ffn: 8192, heads: 32, kv_heads: 8, vocab: 32000 }
load: { rate: 60 }
lengths: [{ isl: 64, osl: 32, share: 3 }, { isl: 256, osl: 64 }]
classes:
  - { name: <b>phones</b>, share: 0.6, device: snapdragon-8-gen3, link: lte, limits: { ttft: { p95: 500ms }, tpot: { p95: 60ms } } }
  - { name: laptops, share: 0.4, device: apple-m4, link: wifi, limits: { answer: { p99: 60s } } }
machines: [{ machine: l4, usd_per_hour: 1 }]
dtypes: { device: int4, cloud: f16 }
kv_dtype: f16
requests: 1000
spare: 1
END
"$LLMPART" fleet fleet.yaml -o fleet.html -o fleet.json || fail 'fleet'
open_page fleet.html ''
fits_screens fleet.html
open_page fleet.html 'const knob = document.querySelector(`[aria-label="requests in the busiest hour"]`); knob.value = 1; knob.dispatchEvent(new Event("input"));'
same 'machines' "$(number fleet.json machines)" "$(grep -o 'class="machine"' dom | wc -l)"
same 'marks of limits' 3 "$(grep -o '<title>limit of' dom | wc -l)"
same 'limits that hold' 3 "$(sed -n '/id="classes"/,/The next fleets/p' dom | grep -o '<td class="good wrap">' | wc -l)"
grep -q '&lt;b&gt;phones&lt;/b&gt;' dom || fail 'the name of a class'
! grep -Eq '>(-0|NaN|undefined|null)[ <]' dom || fail 'figures that are no numbers'
count=$(number fleet.json count)
needed=$(awk -v busy="$(number fleet.json utilisation)" -v count="$count" 'BEGIN { n = busy * (count - 1) * 10; print int(n) + (n > int(n)) + 1 }')
[ "$needed" -gt "$count" ] || fail "ten times the load needs only $needed machines"
sed -n '/id="least"/,$p' dom | grep -Fq "<tr><td class=\"\">l4</td><td class=\"\">$needed</td><td class=\"\">\$$((needed * 730))</td>" ||
  fail "not $needed machines for ten times the load: $(sed -n '/id="least"/,$p' dom | head -n 3)"

# A day: a line of machines and one of what the load keeps busy, and the work of the busiest hour behind the slider.
sed 's/rate: 60/rate: 600, diurnal: [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4, 5, 5, 2, 1, 1, 1]/' fleet.yaml >day.yaml
echo 'by_hour: { cold_start: 3min }' >>day.yaml
"$LLMPART" fleet day.yaml -o day.html -o day.json || fail 'fleet by the hour'
fits_screens day.html
open_page day.html ''
same 'hours of the day' 1 "$(grep -o 'class="title">Machines by the hour' dom | wc -l)"
! grep -Eq '>(-0|NaN|undefined|null)[ <]' dom || fail 'figures of a day that are no numbers'
least=$(sed -n '/id="least"/,$p' dom | sed -n 's/.*<td class="">l4<\/td><td class="">\([0-9]*\)<.*/\1/p' | head -n 1)
{ [ "$least" -le "$(number day.json count)" ] && [ "$least" -gt "$(($(number day.json count) / 2))" ]; } || fail "least machines of a day: $least of $(number day.json count)"

# Its simulation: bands over what is varied, a row for each class and value.
printf 'fleet: fleet.json\nrequests: 400\nruns: 2\nvary: { spare: [0, 1] }\n' >judge.yaml
"$LLMPART" simulate judge.yaml -o judge.html -o judge.csv || fail 'simulate'
open_page judge.html ''
fits_screens judge.html
open_page judge.html ''
same 'charts of a simulation' 4 "$(grep -c '^<svg' dom)"
same 'rows of classes' "$(wc -l <judge.csv)" "$(sed -n '/id="classes"/,/Machines/p' dom | grep -c '^<tr')"
! grep -Eq '>(-0|NaN|undefined|null)[ <]' dom || fail 'figures that are no numbers'

# A measurement.
compile model.onnx one.llmpart || finish
"$LLMPART" bench one.llmpart -p 4 -n 4 -r 2 -t 1 -o html >bench.html || fail 'bench'
open_page bench.html ''
fits_screens bench.html
open_page bench.html ''
same 'tests' 2 "$(circles dot)"
grep -q '<td class="left">tg4</td>' dom || fail 'no row of the table'
finish
