#!/bin/sh
# Takes the pictures of the pages for the documents, with headless Chromium: screenshots.sh [OUT] writes to OUT
# (docs/images). LLMPART names the command, which measures this machine; nothing else should run on it.
set -eu
cd "$(dirname "$0")/.."
source=$PWD
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
  "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars --user-data-dir="$work/profile" \
    --virtual-time-budget=3000 --window-size="$window" --screenshot="$out/$picture.png" "$@" "file://$work/$page.html" 2>/dev/null
}
shot plan plan 1100,1000
shot sweep sweep 1100,760
shot fleet fleet 1100,900
shot simulation simulation 1100,760
ls -l "$out"
