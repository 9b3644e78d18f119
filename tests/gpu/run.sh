#!/bin/sh
# run.sh [PACK]: on a machine with an NVIDIA GPU, runs the conformance suite's recorded cases (some of them once more
# under compute-sanitizer where it is there and works), generates the default model's tokens in each type, alone and in
# passes of several sequences, measures the bundles, copies, and PyTorch where there is one, and prints one table.
# PACK is a folder that pack.sh made; the default is this script's own. Needs the driver and NVRTC, but no compiler and
# no network. Without a GPU it says so and ends with exit status 77.
# Prompts are measured with cuBLASLt if it is there (the CUDA toolkit's, or PyTorch's), and with llmpart's own kernels
# only; rows say which of them computed the products.
# Each figure with a target is compared with it: exit status 1 when one misses its target, or anything fails.
#   LP_PROMPT, LP_STEPS, LP_BATCH, LP_DEPTH   of the measurements (2048, 64, 32, 512)
#   LP_BASELINES  options of baselines.py; "no": leave it out
set -u
pack=$(cd "${1:-$(dirname "$0")}" && pwd)
prompt=${LP_PROMPT:-2048} steps=${LP_STEPS:-64} batch=${LP_BATCH:-32} depth=${LP_DEPTH:-512}
work=$(mktemp -d "${TMPDIR:-/tmp}/lp_gpu.XXXXXX")
trap 'rm -rf "$work"' EXIT
[ -x "$pack/bin/bench_bundle" ] || { echo "run.sh: $pack holds no bin/bench_bundle: make it with pack.sh"; exit 1; }

# NVRTC comes with the toolkit, or with PyTorch.
wheels=$(python3 -c 'import nvidia, pathlib
print(":".join(str(p) for root in nvidia.__path__ for p in sorted(pathlib.Path(root).glob("*/lib"))))' 2>/dev/null)
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$pack/bin:/usr/local/nvidia/lib64:/usr/local/cuda/lib64${wheels:+:$wheels}"

"$pack/bin/bench_bundle" --copy >"$work/copy" 2>"$work/err"
status=$?
[ $status != 77 ] || { echo "run.sh: skipped: $(head -n 1 "$work/err")"; exit 77; }
[ $status = 0 ] || { cat "$work/err"; exit 1; }
copy=$(cut -d '|' -f 3 "$work/copy")
failures=0
row() { printf '| %s | %s | %s | %s |\n' "$1" "$2" "${3:-}" "${4:-}" >>"$work/table"; } # row WHAT FOUND [WANTED [HELD]]
judge() { # judge WHAT FOUND WANTED NUMBER RELATION TARGET: a row, and a failure where the number is not as wanted
  held=$(awk -v n="$4" -v how="$5" -v t="$6" 'BEGIN { print n != "" && (how == "<" ? n + 0 < t : n + 0 >= t) ? "yes" : "no" }')
  [ "$held" = yes ] || failures=$((failures + 1))
  row "$1" "$2" "$3" "$held"
}
value() { sed -n "s/^$1|\([^|]*\)|.*/\1/p" "$2" | head -n 1; }             # value NAME FILE

# The ranks of a machine with a single GPU share it, which NCCL does since 2.30 when asked.
export NCCL_MULTI_RANK_GPU_ENABLE=1
echo "run.sh: conformance" >&2
check_cases() { # check_cases WHAT on|off: with cuBLASLt where it is there, or without
  held=yes
  LLMPART_CUBLAS=$2 "$pack/bin/check_cases" "$pack"/cases/*.case >"$work/cases" 2>"$work/err" ||
    { held=no failures=$((failures + 1)); cat "$work/cases" "$work/err"; }
  row "$1" "$(tail -n 1 "$work/cases")" '0 failed' $held
}
check_cases 'conformance' on
check_cases 'conformance, own kernels alone' off
generate() { # generate BUNDLE NAME PROGRAM ...: sets $equal and $all, the prompts with the right tokens and all
  bundle=$1 name=$2 equal=0 all=0
  shift 2
  while read -r ids want; do
    found=$(timeout 120 "$pack/bin/$@" "$bundle" 16 "$ids" 2>"$work/said" | tail -n 1) all=$((all + 1))
    if [ "$found" = "$want" ]; then equal=$((equal + 1)); else echo "run.sh: $name after $ids: wanted $want, found $found $(head -n 1 "$work/said")" >&2; fi
  done <"${bundle%.llmpart}.want"
  case $name in f32*) least=$all ;; *) least=$((all - 1)) ;; esac # rounded, two logits may be too close
}
for bundle in "$pack"/tokens/*.llmpart; do
  name=$(basename "$bundle" .llmpart)
  generate "$bundle" "$name" bench_bundle --tokens
  judge "tokens of the default model, $name" "$equal of $all prompts equal" "$least" $equal '>=' $least
  case $name in f32) near=1e-3 ;; bf16) near=0.5 ;; *) near=5e-2 ;; esac
  held=yes
  "$pack/bin/sequences" "$bundle" 64 $near >"$work/cases" 2>&1 || { held=no failures=$((failures + 1)); cat "$work/cases" >&2; }
  row "several sequences in one pass, $name" "$(tail -n 1 "$work/cases")" 'each as if alone' $held
done
for bundle in "$pack"/ranks/*.llmpart; do
  [ -e "$bundle" ] || continue
  name=$(basename "$bundle" .llmpart)
  generate "$bundle" "$name" run_ranks
  if grep -q 'there is none' "$work/said"; then
    row "tokens by two ranks, $name" 'no NCCL'
  elif grep -q 'Duplicate GPU' "$work/said"; then # older than 2.30
    row "tokens by two ranks, $name" "$(grep -o 'NCCL [0-9.]*[0-9]' "$work/said" | head -n 1): no two ranks on one GPU"
  else
    judge "tokens by two ranks, $name" "$equal of $all prompts equal" "$least" $equal '>=' $least
  fi
done
if command -v compute-sanitizer >/dev/null; then
  some=$(ls "$pack"/cases/*.case | awk 'NR % 16 == 1')
  for tool in memcheck racecheck; do
    # shellcheck disable=SC2086 # a list of files
    compute-sanitizer --tool $tool "$pack/bin/check_cases" $some >"$work/sanitizer" 2>&1
    row "compute-sanitizer, $tool" "$(grep -E 'SUMMARY|not supported' "$work/sanitizer" | tail -n 1 | tr -d =)" '0 errors'
  done
fi

baselines=$work/baselines
: >"$baselines"
if [ "${LP_BASELINES:-}" != no ] && python3 -c 'import torch' 2>/dev/null; then
  echo "run.sh: PyTorch" >&2
  # shellcheck disable=SC2086 # a list of options
  python3 "$pack/baselines.py" --prompt "$prompt" --depth "$depth" ${LP_BASELINES:-} >"$baselines" 2>"$work/err" || tail -n 3 "$work/err"
fi
matrix=$(value 'bf16 products' "$baselines")
row "copies within the GPU's memory, $(cut -d '|' -f 1 "$work/copy")" "$copy GB/s"
[ -z "$matrix" ] || row 'bf16 matrix products' "$matrix TFLOP/s"
sed -n 's/^\(eager\|compile\) \(.*\)|\(.*\)|\(.*\)$/| PyTorch \1, f16, \2 | \3 \4 | | |/p' "$baselines" >>"$work/table"

measure() { # measure PROGRAM ARGUMENT ...: what it prints of the bundle, in $work/row
  program=$1
  shift
  "$pack/bin/$program" "$work/bundle" "$@" >"$work/row" 2>"$work/err" || { failures=$((failures + 1)); cat "$work/err" >&2; }
}
column() { head -n 1 "$work/row" | cut -d '|' -f "$1"; }
share() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.1f", 100 * a / b }'; }
measure_prompt() { # measure_prompt on|off [TARGET]: with cuBLASLt, or without; sets $who did the products
  export LLMPART_CUBLAS=$1
  measure bench_bundle "$prompt" 0 0 1 3
  unset LLMPART_CUBLAS
  who=$(column 5)
  flops=$(awk -v p="$(column 2)" -v b="$bytes" -v d="$name" 'BEGIN { printf "%.2f", 2 * p * b / (d == "int4" ? 0.5625 : d == "int8" ? 1.0625 : 2) / 1e12 }')
  what="$name, prompt of $prompt, $who" found="$(column 2) tokens/s, $flops TFLOP/s"
  part=$(share "$flops" "${matrix:-0}")
  if [ -z "$matrix" ]; then
    row "$what" "$found, no rate of products to judge by" "${2:+$2 %}"
  elif [ -z "${2:-}" ]; then
    row "$what" "$found, $part % of products"
  else
    judge "$what" "$found, $part % of products" "$2 %" "$part" '>=' "$2"
  fi
}
for bundle in "$pack"/bundles/*.llmpart; do
  name=$(basename "$bundle" .llmpart)
  echo "run.sh: $name" >&2
  cp -r "$bundle" "$work/bundle"
  bytes=$(cat "$bundle/cloud/weights.bytes")
  "$pack/bin/bench_bundle" --weights "$work/bundle/cloud/weights.safetensors" "$bundle/cloud/weights.head" "$bytes"
  sum=$(sha256sum "$work/bundle/cloud/weights.safetensors" | cut -d ' ' -f 1)
  sed "s/SUM/$sum/; /^ \"seal\": /,\$d" "$bundle/manifest.json" >"$work/unsealed"
  printf ' "seal": "%s"\n}\n' "$(sha256sum <"$work/unsealed" | cut -d ' ' -f 1)" | cat "$work/unsealed" - >"$work/bundle/manifest.json"
  measure bench_bundle 0 "$steps" "$depth" 1 3
  rate=$(column 2) part=$(share "$(column 4)" "$copy")
  [ "$name" = int4 ] && wanted=70 || wanted=85
  judge "$name, decode" "$rate tokens/s, $(column 4) GB/s, $part % of copies" "$wanted %" "$part" '>=' $wanted
  measure bench_steps 1 "$steps" "$depth" 3
  overhead=$(value 'launch overhead' "$work/row")
  judge "$name, step but its kernels" "$overhead % of $(sed -n 's/^launch overhead|[^|]*|\([^|]*\)|.*/\1/p' "$work/row") ms" 'under 5 %' "$overhead" '<' 5
  measure bench_steps "$batch" "$steps" "$depth" 3
  times=$(awk -v m="$(column 2)" -v r="$rate" 'BEGIN { printf "%.1f", r ? m / r : 0 }')
  judge "$name, decode x $batch sessions" "$(column 2) tokens/s, $times times one" '20 times' "$times" '>=' 20
  measure_prompt on 65
  [ "$who" = 'own kernels' ] || measure_prompt off
  rm -rf "$work/bundle"
done

echo '| what | found | wanted | held |'
echo '| --- | --- | --- | --- |'
cat "$work/table"
[ $failures = 0 ]
