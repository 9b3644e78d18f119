#!/bin/sh
# Regenerates the study of "Efficient Deployment of Large Language Model across Cloud-Device Systems": figures and
# tables into OUT (default build/study). Needs protoc, Python 3 and a built llmpart; reads no weights.
# usage: study.sh [LLMPART] [OUT]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
llmpart=${1:-$root/build/release/tools/llmpart}
out=${2:-$root/build/study}
[ -x "$llmpart" ] || { echo "study: there is no $llmpart; build it first, or name another" >&2; exit 1; }
mkdir -p "$out"
awk -f "$root/tests/e2e/llama7b.awk" |
  protoc --encode=onnx.ModelProto --proto_path="${ONNX_PROTO:-/usr/include}" onnx/onnx.proto >"$out/llama2-7b.onnx"
python3 "$here/study.py" "$llmpart" "$out"
python3 "$here/figures.py" "$llmpart" "$out"
