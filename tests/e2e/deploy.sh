# A fleet's deployment: the folder is whole or absent, and our own server, worker, systemd and Kubernetes' schemas take
# what is in it.
. "$LP_SOURCE/tests/e2e/lib.sh"
python=${LP_PYTHON:-python3}
mkdir "$work/it's"
cat >"$work/it's/spec.yaml" <<END
model: $LP_SOURCE/examples/default-model/model.onnx
load: { rate: 20000 }
lengths: [{ isl: 16, osl: 8 }]
classes:
  - { name: "Phones, old", share: 0.6, device: "raspberry-pi-5,memory=5MiB", link: lan, limits: { ttft: { p95: 500ms }, tpot: { p95: 60ms } } }
  - { name: laptops, share: 0.2, device: raspberry-pi-5, link: wifi, limits: { answer: { p99: 60s } } }
  - { name: watches, share: 0.2, device: "raspberry-pi-5,memory=1MiB", link: wifi, limits: { answer: { p99: 60s } } }
machines: [{ machine: host, usd_per_hour: 1 }]
requests: 500
spare: 1
END
deployed=$work/deployed
for folder in "$deployed" "$work/again"; do
  (cd "$work/it's" && "$LLMPART" fleet spec.yaml --deploy="$folder" -o json) >"$work/fleet.json" 2>"$work/err" ||
    fail "fleet --deploy: $(head -n 3 "$work/err")"
done
diff -r "$deployed" "$work/again" >"$work/found" || fail "the same fleet gives two deployments: $(head -n 3 "$work/found")"
cmp "$work/fleet.json" "$deployed/fleet.json" || fail 'the report is another one'
same 'what is there' './compile.sh ./fleet.json ./kubernetes/pool-0-host.yaml ./kubernetes/pool-1-host.yaml ./pool-1-host.serve.yaml ./systemd/llmpart-pool-0-host.service ./systemd/llmpart-pool-1-host.service' \
  "$(cd "$deployed" && find . -type f | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//')"
cut=$(sed -n 's/.*"device_layers": \([0-9]*\),/\1/p' "$work/fleet.json" | head -n 1)
grep -q -- "--device='raspberry-pi-5,memory=5MiB' --cloud='host' --link='lan' --cut=$cut " "$deployed/compile.sh" ||
  fail "the cut of $cut layers: $(cat "$deployed/compile.sh")"
count=$(sed -n 's/^  replicas: //p' "$deployed/kubernetes/pool-0-host.yaml")
same 'replicas' "$(sed -n 's/^      "count": \([0-9]*\),/\1/p' "$work/fleet.json" | head -n 1)" "$count"

# A server's prediction is the report's without the links: all requests have one length here, so that a link takes the
# same of each, and at each percentile.
"$python" - "$work/fleet.json" "$deployed/pool-1-host.serve.yaml" >"$work/found" 2>&1 <<'END' || fail "the prediction: $(cat "$work/found")"
import json, re, sys
report, text = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
told = {key: [float(ms) for ms in re.findall(r"p\d\d: ([\d.e+-]+)ms", text.split(f"  {key}: ")[1].split("}")[0])] for key in ("ttft", "tpot")}
classes = [c for c in report["classes"] if c["pool"] == 1]
pool = report["pools"][1]
rate = report["rate_per_s"] * sum(c["share"] for c in classes) / pool["needed"]
assert abs(float(re.search(r"rate: (\S+)", text)[1]) / rate - 1) < 1e-6 and classes, (rate, text)
assert abs(float(re.search(r"busy: (\S+)", text)[1]) / pool["busy"] - 1) < 1e-6, text
for c in classes:
    for key, ms in told.items():
        link = [list(c["times"][key + "_ms"].values())[k] - ms[k] for k in range(3)]
        assert len(ms) == 3 and min(link) > (1e-3 if key == "ttft" else -1e-6) and max(link) - min(link) < 1e-6 * max(ms) + 1e-9, (key, ms, link)
END

# An autoscaler of machines that come and go keeps those of the hour with the fewest.
sed "s/^load: .*/load: { rate: 2000, diurnal: [$(yes 4, | head -n 20 | tr -d '\n')5, 9, 9, 9] }\nby_hour: { cold_start: 1min }/" "$work/it's/spec.yaml" >"$work/it's/day.yaml"
(cd "$work/it's" && "$LLMPART" fleet day.yaml --deploy="$work/day" -o json) >"$work/day.json" 2>"$work/err" || fail "a day: $(head -n 3 "$work/err")"
"$python" - "$work/day.json" "$work/day/kubernetes/pool-0-host.yaml" >"$work/found" 2>&1 <<'END' || fail "replicas of a day: $(cat "$work/found")"
import json, re, sys
pool, text = json.load(open(sys.argv[1]))["pools"][0], open(sys.argv[2]).read()
found = [int(re.search(rf"{key}Replicas: (\d+)", text)[1]) for key in ("min", "max")]
assert found == [min(pool["by_hour"]) + 1, max(pool["by_hour"]) + 1] and found[0] > 2 and found[0] < found[1], (found, pool)
END

# Nothing is written over, and nothing is left of a failure.
cp -r "$deployed" "$work/before"
refused 'a folder with files' "$deployed: error: the folder is not empty" \
  "$LLMPART" fleet "$work/it's/spec.yaml" --deploy="$deployed" -o "$work/made/fleet.json"
diff -r "$deployed" "$work/before" || fail 'a refused deployment changed the folder'
refused 'a file' 'fleet.json: error: cannot be replaced' "$LLMPART" fleet "$work/it's/spec.yaml" --deploy="$work/fleet.json" -o "$work/made.json"
wanted_status=4 refused 'a fleet over its limit' usd_per_month \
  "$LLMPART" fleet "$work/it's/spec.yaml" --deploy="$work/made/folder" --fail-if='usd_per_month > 1' -o "$work/made.json"
(trap '' XFSZ; ulimit -f 1; exec "$LLMPART" fleet "$work/it's/spec.yaml" --deploy="$work/made/folder" -o csv) 2>"$work/err" >/dev/null && fail 'files of 4 KiB fit into 512 bytes'
[ -z "$(ls -A "$work/made")" ] || fail "a disk that is full leaves $(ls -A "$work/made")"
sed 's/memory=1MiB/memory=5.1MiB/' "$work/it's/spec.yaml" >"$work/two.yaml"
wanted_status=3 refused 'two devices in one cut' "pool 0 serves 'Phones, old' on .* and 'watches' on .* in one cut" \
  "$LLMPART" fleet "$work/two.yaml" --deploy="$work/made/folder" -o "$work/made.json"
mkdir "$work/empty"
(cd "$work/it's" && "$LLMPART" fleet spec.yaml --deploy="$work/empty" -o csv) >/dev/null 2>"$work/err" || fail "an empty folder: $(cat "$work/err")"
diff -r "$deployed" "$work/empty" >/dev/null || fail 'an empty folder gets another deployment'

# Our server reads its file, and lacks only the bundle.
refused 'a deployment that is not compiled' 'bundles/pool-1-host.llmpart/manifest.json: error: cannot open' env LLMPART_KEY=k "$LLMPART" serve "$deployed/pool-1-host.serve.yaml"
if command -v systemd-analyze >/dev/null; then
  for unit in "$deployed"/systemd/*; do
    sed "s,^ExecStart=/usr/bin/llmpart ,ExecStart=$LLMPART ," "$unit" >"$work/$(basename "$unit")"
    said=$(systemd-analyze verify --man=no "$work/$(basename "$unit")" 2>&1) || fail "verify: exit status $?"
    same "what systemd says of $unit" '' "$said"
  done
else
  echo 'deploy: note: systemd-analyze is not there'
fi
part long || finish

# The commands compile, and the units' own command lines run what they compiled.
LLMPART=$LLMPART sh "$deployed/compile.sh" -O0 --march=native >"$work/out" 2>"$work/err" || fail "compile.sh: $(tail -n 3 "$work/err")"
same 'bundles' 'class-1-laptops.llmpart pool-0-host.llmpart pool-1-host.llmpart' "$(ls "$deployed/bundles" | tr '\n' ' ' | sed 's/ $//')"
started_by() { # started_by UNIT: the arguments of its command, for this machine
  sed -n 's,^ExecStart=/usr/bin/llmpart ,,p' "$1" | sed "s,/srv/llmpart,$deployed,; s,%d/,$work/,; s,0\.0\.0\.0:[0-9]*,127.0.0.1:0,g"
}
metric() { sed -n 's/.*metric: { name: \([a-z_]*\).*/\1/p' "$deployed/kubernetes/$1.yaml"; }
openssl rand -hex 32 >"$work/link.key" && chmod 600 "$work/link.key"
: >"$work/listening"
export LLMPART_METRICS_KEY=m LLMPART_KEY=k
# shellcheck disable=SC2046 # arguments
"$LLMPART" $(started_by "$deployed/systemd/llmpart-pool-0-host.service") 2>"$work/listening" &
worker=$! started="$started $!"
await listens_or_ended
[ -n "$address" ] || fail "the worker: $(cat "$work/listening")"
split=$(tokens "$deployed/bundles/pool-0-host.llmpart" 1,2,3 8 --cloud="$address" --key-file="$work/link.key")
same 'the split and the device' "$(tokens "$deployed/bundles/class-1-laptops.llmpart" 1,2,3 8)" "$split"
figures=$(sed -n 's,^.*http://\([0-9.:]*\).*,\1,p; s,.*metrics[^0-9]*\([0-9.]*:[0-9]*\).*,\1,p' "$work/listening" | head -n 1)
curl -sf -H 'Authorization: Bearer m' "http://$figures/metrics" | grep -q "^$(metric pool-0-host){of=\"sessions\"}" || fail "the worker has no $(metric pool-0-host): $(cat "$work/listening")"
curl -sf "http://$figures/readyz" >/dev/null || fail 'the worker is not ready'
kill "$worker"
: >"$work/listening"
# shellcheck disable=SC2046
"$LLMPART" $(started_by "$deployed/systemd/llmpart-pool-1-host.service") --listen=127.0.0.1:0 2>"$work/listening" &
worker=$! started="$started $!"
await listens_or_ended
for path in $(grep -o 'path: /[a-z]*, port: main' "$deployed/kubernetes/pool-1-host.yaml" | sed 's/path: \(.*\), port.*/\1/' | sort -u); do
  curl -sf "http://$address$path" >/dev/null || fail "the server's $path: $(cat "$work/listening")"
done
curl -sf -H 'Authorization: Bearer k' "http://$address/metrics" | grep -q "^$(metric pool-1-host) " || fail "the server has no $(metric pool-1-host)"
curl -sf -H 'Authorization: Bearer k' --json '{"model": "edge", "prompt": "Once", "max_tokens": 4}' "http://$address/v1/completions" | grep -q '"text"' ||
  fail 'the server gives no text'

"$python" -c 'import kubernetes_validate, yaml' 2>/dev/null || skip "$python lacks kubernetes-validate (tests/fleet/requirements.txt)"
valid() { "$python" -m kubernetes_validate --strict "$@" >"$work/found" 2>&1; }
valid "$deployed"/kubernetes/*.yaml || fail "Kubernetes: $(grep -v passed "$work/found")"
same 'objects' "$(printf 'deployment\nhorizontalpodautoscaler\npoddisruptionbudget\nservice')" "$(sed -n 's/.*resource \([a-z]*\)\/pool-0.*/\1/p' "$work/found" | sort)"
for fault in 's/replicas: [0-9]*/replicas: many/' 's/maxUnavailable/mostUnavailable/' 's/averageValue:/average:/' 's/containerPort: \([0-9]*\)/containerPort: "\1"/'; do
  sed "$fault" "$deployed/kubernetes/pool-0-host.yaml" >"$work/bad.yaml"
  valid "$work/bad.yaml" && fail "Kubernetes does not notice $fault"
done
finish
