#!/bin/sh
# identical.sh OLD NEW [WORK]: compares what two builds of the command write. For a change that must not alter any
# output: compiles every model of the tests with both commands and compares bundles, IR dumps, code and reports file by
# file. Prints the files that differ and their number; the exit status is 1 when there are any. LP_KEEP=DIR keeps both
# versions of a model that differs.
set -eu
cd "$(dirname "$0")/../.."
old=$(realpath "$1") new=$(realpath "$2")
work=${3:-$(mktemp -d)}
mkdir -p "$work"
split="--device=jetson-nano --cloud=v100s --link=wifi --isl=64 --osl=16 --scheduler=cut --cut=1 --march=x86-64-v3"

produce() { # produce COMMAND MODEL OUT: everything that a command makes of a model, or how it refuses
  command=$1 model=$2 out=$3
  mkdir -p "$out"
  write() { # write FILE [OPTION ...]
    file=$1
    shift
    "$command" compile "$model" "$@" -o "$out/$file" >"$out/$file.said" 2>&1 || echo "exit status $?" >>"$out/$file.said"
  }
  # shellcheck disable=SC2086 # $split is a list of options
  {
    write split.llmpart $split
    write narrow.llmpart $split --dtype-device=int8 --dtype-cloud=f16
    write cuda.llmpart $split --backend-cloud=cuda
    write opencl.llmpart $split --backend-device=opencl
    write halves $split --emit=onnx
    write whole.llmpart --device=jetson-nano --march=x86-64-v3 --dtype-device=int4
    write report.json --device=jetson-nano --cloud=v100s --link=wifi --isl=64 --osl=16 --emit=report \
      --report="$out/report.txt" --report="$out/report.csv" --report="$out/report.html"
    for form in layer-ir op-ir placed-ir llvm-ir; do write $form.mlir $split --emit=$form; done
  }
  "$command" support "$model" >"$out/support.txt" 2>&1 || true
  "$command" import "$model" >"$out/import.mlir" 2>&1 || true
  find "$out" -type f -exec env LC_ALL=C sed -i "s,$out/,," {} + # messages name the output
}

total=0 differing=0
for model in examples/*/model.onnx tests/models/*/model.onnx tests/models/families/*/model.onnx; do
  name=$(dirname "$model" | tr / _)
  rm -rf "$work/old" "$work/new"
  produce "$old" "$model" "$work/old"
  produce "$new" "$model" "$work/new"
  count=$(find "$work/old" -type f | wc -l)
  total=$((total + count))
  echo "$name: $count files" >&2
  found=$(diff -rq "$work/old" "$work/new") && continue
  differing=$((differing + $(printf '%s\n' "$found" | wc -l)))
  printf '%s\n' "$found" | sed "s,^,$name: ,"
  [ -z "${LP_KEEP:-}" ] || { mkdir -p "$LP_KEEP/$name" && cp -r "$work/old" "$work/new" "$LP_KEEP/$name"; }
done
echo "$total files compared, $differing differ"
[ "$differing" -eq 0 ]
