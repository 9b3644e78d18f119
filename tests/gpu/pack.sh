#!/bin/sh
# pack.sh BUILD OUT [MODEL.onnx [DTYPE ...]]: puts into the folder OUT what run.sh needs on a machine with a GPU that
# has neither the compiler nor a network: the conformance suite's recorded cases, bundles without their weights, and
# three programs. Without a model it is LLaMA2-7B's shape (written by the Python of LP_PYTHON, with a sparse file of
# weights) in f16 and int4; its bundles need 17 GB of disk for a while.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
model=${3:-}
[ $# -lt 4 ] && types="f16 int4" || { shift 3; types=$*; }
work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

rm -rf "$out/cases" "$out/bundles"
mkdir -p "$out/cases" "$out/bundles" "$out/bin"
for name in ${LP_PACK_SUITES:-elementwise products quant attention rows moves decoder}; do
  (cd "$source" && CK_FORK=no LP_TEST_GPU=driver LP_TEST_RECORD="$out/cases" XDG_CACHE_HOME=/dev/null LD_LIBRARY_PATH="$build/tests/gpu/fake" \
    "$build/tests/backend/test_backend_$name") >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
done
cp "$build/tests/gpu/check_cases" "$build/tests/gpu/bench_bundle" "$build/tests/gpu/bench_steps" "$out/bin"
for program in check_cases bench_bundle bench_steps; do # all but the C library
  ldd "$build/tests/gpu/$program" | awk '$3 ~ /^\// && $1 !~ /^lib(c|m|dl|pthread|rt)\.so/ { print $3 }'
done | sort -u | xargs -I{} cp -L {} "$out/bin"
cp "$source"/tests/gpu/run.sh "$source"/tests/gpu/baselines.py "$out"

if [ -z "$model" ]; then
  "${LP_PYTHON:-python3}" "$source/tests/models/llama7b.py" --out "$work/model" --weights sparse
  model=$work/model/model.onnx
fi
for dtype in $types; do
  bundle=$out/bundles/$dtype.llmpart
  "$build/tools/llmpart" compile "$model" --device=jetson-nano --cloud=v100s,memory=1TiB --link=lan --scheduler=cloud-only \
    --backend-cloud=cuda --dtype-cloud="$dtype" --kv-dtype=f16 -o "$bundle"
  weights=$bundle/cloud/weights.safetensors
  header=$(od -An -t u8 -N 8 "$weights" | tr -d ' ')
  wc -c <"$weights" >"$bundle/cloud/weights.bytes"
  head -c $((header + 8)) "$weights" >"$bundle/cloud/weights.head"
  # what the weights will hold is not known yet: run.sh puts their sum in
  awk -v old="$(sha256sum "$weights" | cut -d ' ' -f 1)" '/"crc32c"/ { next } { sub(old, "SUM") } { line[++n] = $0 }
    END { for (i = 1; i <= n; i++) { if (line[i + 1] ~ /^ *}/) sub(/,$/, "", line[i]); print line[i] } }' "$bundle/manifest.json" >"$work/manifest"
  mv "$work/manifest" "$bundle/manifest.json"
  rm "$weights"
done
du -sh "$out" | sed 's/\t/ in /'
