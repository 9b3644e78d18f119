#!/bin/sh
# pack.sh BUILD OUT [MODEL.onnx [DTYPE ...]]: puts into the folder OUT what run.sh needs on a machine with a GPU that
# has neither the compiler nor a network: the conformance suite's recorded cases, the default model in each type with
# the tokens that the cpu backend generates, bundles without their weights, and the programs. Without a model it is
# LLaMA2-7B's shape (written by the Python of LP_PYTHON, with a sparse file of weights) in f16 and int4; its bundles
# need 17 GB of disk for a while.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
model=${3:-}
[ $# -lt 4 ] && types="f16 int4" || { shift 3; types=$*; }
work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

rm -rf "$out/cases" "$out/tokens" "$out/ranks" "$out/bundles"
mkdir -p "$out/cases" "$out/tokens" "$out/ranks" "$out/bundles" "$out/bin"
for name in ${LP_PACK_SUITES:-elementwise products experts quant attention rows moves decoder joined}; do
  (cd "$source" && CK_FORK=no LP_TEST_GPU=driver LP_TEST_RECORD="$out/cases" XDG_CACHE_HOME=/dev/null LD_LIBRARY_PATH="$build/tests/gpu/fake" \
    "$build/tests/backend/test_backend_$name") >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
done
for program in gpu/check_cases gpu/bench_bundle gpu/bench_steps gpu/run_ranks e2e/sequences; do # their libraries, all but C's
  cp "$build/tests/$program" "$out/bin"
  ldd "$build/tests/$program" | awk '$3 ~ /^\// && $1 !~ /^lib(c|m|dl|pthread|rt)\.so/ { print $3 }'
done | sort -u | xargs -I{} cp -L {} "$out/bin"
cp "$source"/tests/gpu/run.sh "$source"/tests/gpu/baselines.py "$out"

small=$source/examples/default-model/model.onnx lists=$source/tests/models/default/tokens.json
rows() { sed -n "s/^ *\"$1\": \[\[\(.*\)\]\],*\$/\1/p" "$lists" | sed 's/\], \[/\n/g' | tr -d ' '; } # rows KEY: lines of 1,2,3
rows prompts >"$work/prompts"
rows tokens | tr '\n' , | cut -d , -f -71 >>"$work/prompts" # so many rows that tensor cores multiply them
for dtype in ${LP_PACK_TOKENS:-f32 f16 bf16 int8 int4 f16-int8 f16-int4}; do # a type of weights, or -TYPE of caches
  case $dtype in f32) cache=f32 ;; *-*) cache=${dtype#*-} ;; *) cache=f16 ;; esac
  for backend in cpu cuda; do
    "$build/tools/llmpart" compile "$small" --device=jetson-nano --cloud=a100 --link=lan --scheduler=cloud-only --march=native \
      --backend-cloud=$backend --dtype-cloud="${dtype%-*}" --kv-dtype="$cache" --activations=f32 -o "$work/$backend.llmpart" 2>/dev/null
  done
  while read -r ids; do
    "$build/tools/llmpart" run "$work/cpu.llmpart" --tokens="$ids" -n 16 --ignore-eos --in-process -o json 2>/dev/null |
      awk -v ids="$ids" '/"tokens": \[/ { inside = 1; next } inside && /\]/ { print ids, line; exit } inside { gsub(/[^0-9]/, ""); line = line (line == "" ? "" : ",") $0 }'
  done <"$work/prompts" >"$out/tokens/$dtype.want"
  mv "$work/cuda.llmpart" "$out/tokens/$dtype.llmpart"
  rm -r "$work/cpu.llmpart"
done
for dtype in f32 int8; do # the same tokens by two ranks
  [ -e "$out/tokens/$dtype.want" ] || continue
  "$build/tools/llmpart" compile "$small" --device=jetson-nano --cloud=a100 --link=lan --scheduler=cloud-only --march=native --ranks=2 \
    --backend-cloud=cuda --dtype-cloud=$dtype --kv-dtype="$([ $dtype = f32 ] && echo f32 || echo f16)" --activations=f32 -o "$out/ranks/$dtype.llmpart" 2>/dev/null
  cp "$out/tokens/$dtype.want" "$out/ranks"
done

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
