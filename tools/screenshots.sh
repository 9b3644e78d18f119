#!/bin/sh
# Takes the pictures of the pages for the documents, with headless Chromium: screenshots.sh [OUT] writes to OUT
# (docs/images). LLMPART names the command, which measures this machine; nothing else should run on it.
# screenshots.sh --strip OUT only draws README's plan, of which nothing is measured.
set -eu
cd "$(dirname "$0")/.."
source=$PWD
only=
[ "${1:-}" != --strip ] || { only=$1; shift; }
out=${1:-docs/images}
llmpart=$(realpath "${LLMPART:-build/release/tools/llmpart}")
browser=$(command -v chromium) || { echo "screenshots: the Debian package 'chromium' is not installed" >&2; exit 1; }
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
cp examples/default-model/model.onnx examples/default-model/tokenizer.json "$work"
sed "s/^requests: .*/requests: 4000/" examples/edge-cloud-6g/loaded-edge.yaml >"$work/simulation.yaml"
browse() { # browse OPTION .. URL
  "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars --user-data-dir="$work/profile" \
    --virtual-time-budget=3000 "$@" 2>/dev/null
}

# The strips of the plan of README's first command, as one picture with its own colours.
awk '/^```sh$/ { found = 1; next } found && /^```$/ { exit } found' README.md | sed "s|--plan-only|& --report=$work/strip.html|" >"$work/readme.sh"
PATH=$(dirname "$llmpart"):$PATH sh "$work/readme.sh" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
cat >>"$work/strip.html" <<'HTML'
<script>
const strips = [...document.querySelectorAll("svg")].slice(0, 2), [, , width, height] = strips[0].getAttribute("viewBox").split(" ").map(Number);
const whole = make("svg", { viewBox: `0 0 ${width} ${2 * (height + 8)}` }), colours = document.querySelector("style").textContent.match(/^(@media[^\n]*\n *)?:root [^}]*}( })?/gm);
whole.append(document.createElementNS(whole.namespaceURI, "style"));
whole.firstChild.textContent = `${colours.slice(0, 2).join(" ")} text { font: 12px sans-serif; fill: var(--ink); } .soft { fill: var(--soft); }`;
strips.forEach((strip, i) => {
  const part = make("g", { transform: `translate(0 ${i * (height + 8)})` }, make("text", { x: 62, y: 12, "font-weight": 600 }, data.stages[i].name));
  part.append(...strip.childNodes);
  whole.append(part);
});
document.body.replaceChildren(make("pre", {}, new XMLSerializer().serializeToString(whole).replace(/\d+\.\d{3,}/g, (n) => Number(n).toFixed(1)).replace(/\n */g, " ")));
</script>
HTML
browse --window-size=1100,900 --dump-dom "file://$work/strip.html" | sed -n 's/.*<body><pre>\(.*\)<\/pre>.*/\1/p' |
  sed 's/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g' >"$out/strip.svg"
[ -z "$only" ] || exit 0

cd "$work"
# A plan beside the fastest of some runs, because other work on this machine can only slow a run down.
pair="--device=host --cloud=host,price_usd_per_s=1e-4 --link=wifi --device-memory=6MiB --tpot=100ms --isl=4 --osl=48"
# shellcheck disable=SC2086 # a list of options
"$llmpart" compile model.onnx $pair -o m.llmpart
for i in 1 2 3 4 5; do
  "$llmpart" run m.llmpart --prompt="Once upon a time" -n 48 --ignore-eos --link=rtt=4ms,up=200Mbit/s,down=200Mbit/s -o json >"run$i.json"
done
fastest=$(grep -H '"total_ms"' run?.json | sed 's/:.*: */ /; s/,$//' | sort -k 2 -g | head -n 1 | cut -d ' ' -f 1)
# shellcheck disable=SC2086 # a list of options
"$llmpart" compile model.onnx $pair --measured="$fastest" --plan-only --report=plan.html
cat >sweep.yaml <<'YAML'
model: model.onnx
machines: [{device: [jetson-orin, raspberry-pi-5], cloud: [a100, l4]}]
links: [wifi, lte, "rtt=20ms,up=10Mbit/s,down=50Mbit/s"]
workloads: {isl: 32, osl: 128, batch: 1}
slas: [{tpot: 50ms}, {ttft: 1s, tpot: 100ms}]
schedulers: [exact, layer, cloud-only]
sessions: 16
device_memory: 6MiB
YAML
"$llmpart" sweep sweep.yaml -o sweep.html
"$llmpart" simulate simulation.yaml --runs=5 -o simulation.html
awk '/<!-- file: fleet.yaml -->/ { found = 1; next } found && /^```$/ { exit } found && !/^```/' "$source/docs/guide/capacity.md" >fleet.yaml
"$llmpart" fleet fleet.yaml -o fleet.html

shot() { # shot PAGE OUT WIDTH,HEIGHT [option ...]
  page=$1 picture=$2 window=$3
  shift 3
  browse --window-size="$window" --screenshot="$out/$picture.png" "$@" "file://$work/$page.html"
}
shot plan plan 1100,1000
shot sweep sweep 1100,760
shot fleet fleet 1100,900
shot simulation simulation 1100,760
ls -l "$out"
