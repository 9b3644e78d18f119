#!/bin/sh
# Makes the router's model from nothing: environment, training, export.
# Usage: sh examples/router-model/train.sh [WORKDIR] [MINUTES]
# WORKDIR (default: build/router-model) keeps the environment.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$here/../../build/router-model}
minutes=${2:-40}
mkdir -p "$work"
[ -x "$work/venv/bin/python" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet -r "$here/requirements.txt"
"$work/venv/bin/python" "$here/learn.py" --out "$here/model.onnx" --minutes "$minutes"
