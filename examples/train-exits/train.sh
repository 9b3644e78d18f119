#!/bin/sh
# Trains exit heads for SmolLM2-135M-Instruct from nothing: environment, text, training, export, and what it brought.
# Usage: sh examples/train-exits/train.sh [WORKDIR] [MINUTES]
# WORKDIR (default: build/train-exits) keeps all that is made; MINUTES (10) count only the training. LLMPART names
# the command.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
work=${1:-$root/build/train-exits}
minutes=${2:-10}
llmpart=${LLMPART:-$root/build/release/tools/llmpart}
[ -x "$llmpart" ] || { echo "train.sh: there is no $llmpart; build it first, or set LLMPART" >&2; exit 1; }
mkdir -p "$work"
if [ -z "${PYTHON:-}" ]; then
  [ -x "$work/venv/bin/python" ] || python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet -r "$here/requirements.txt"
fi
py=${PYTHON:-$work/venv/bin/python}
[ -s "$work/text/train.jsonl" ] || "$py" "$here/generate.py" --out "$work/text"
"$py" "$here/train.py" --text "$work/text" --out "$work/exits.pt" --minutes "$minutes"
"$py" "$here/attach.py" --exits "$work/exits.pt" --out "$work/model"
[ -s "$work/plain/model.onnx" ] || "$py" "$root/examples/smollm2/export.py" --out "$work/plain"
for kind in plain model; do
  "$llmpart" compile "$work/$kind/model.onnx" --device=host --cloud=host --link=wifi --exits=10,20 -o "$work/$kind.llmpart"
  "$llmpart" calibrate "$work/$kind.llmpart" --data="$work/text/heldout.jsonl" --at=0.5,0.6,0.7,0.8,0.9,0.95,0.99 -o json >"$work/$kind.json"
done
"$py" "$here/compare.py" --before "$work/plain.json" --after "$work/model.json" --card "$here/README.md"
