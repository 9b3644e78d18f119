#!/bin/sh
# identical.sh OLD NEW [WORK]: two builds of the command write the same bytes. For a change that must alter no output: compiles every model
# of the tests with both commands and compares bundles, IR dumps and reports file by file. Prints what differs and a count; exit status 1
# when anything does.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
old=$(realpath "$1") new=$(realpath "$2")
work=${3:-$(mktemp -d)}
mkdir -p "$work"
cd "$source"
nano="--device=jetson-nano --cloud=v100s --link=wifi --isl=64 --osl=16"

produce() { # produce COMMAND MODEL OUT: everything that one command makes of one model
  mkdir -p "$3"
  make() { # make NAME ARGUMENT ...: what the command writes to NAME, or its refusal
    name=$1
    shift
    "$@" -o "$3/$name" >"$3/$name.said" 2>&1 || echo "exit status $?" >>"$3/$name.said"
  }
  run() { # run NAME [OPTION ...]
    name=$1
    shift
    "$command" compile "$model" "$@" -o "$out/$name" >"$out/$name.said" 2>&1 || echo "exit status $?" >>"$out/$name.said"
  }
  command=$1 model=$2 out=$3
  run split.llmpart $nano --scheduler=cut --cut=1 --march=x86-64-v3
  run one.llmpart --device=jetson-nano --march=x86-64-v3
  run half.llmpart $nano --scheduler=cut --cut=1 --march=x86-64-v3 --dtype-device=int8 --dtype-cloud=f16
  run four.llmpart --device=jetson-nano --march=x86-64-v3 --dtype-device=int4
  run cuda.llmpart $nano --scheduler=cut --cut=1 --backend-cloud=cuda --march=x86-64-v3
  run opencl.llmpart $nano --scheduler=cut --cut=1 --backend-device=opencl --march=x86-64-v3
  for form in layer-ir op-ir placed-ir llvm-ir asm; do run $form.txt $nano --scheduler=cut --cut=1 --march=x86-64-v3 --emit=$form; done
  for format in txt json csv html; do run report.$format $nano --emit=report --report="$out/own.$format"; done
  run halves.onnx $nano --scheduler=cut --cut=1 --emit=onnx
  "$command" support "$model" >"$out/support.txt" 2>&1 || true
  "$command" import "$model" >"$out/import.txt" 2>&1 || true
}

total=0 differing=0
for model in examples/default-model/model.onnx examples/router-model/model.onnx tests/models/*/model.onnx tests/models/families/*/model.onnx; do
  [ -e "$model" ] || continue
  name=$(dirname "$model" | tr / _)
  for side in old new; do
    eval "command=\$$side"
    rm -rf "$work/$side"
    produce "$command" "$model" "$work/$side"
    find "$work/$side" -type f -exec sed -i "s,$work/$side/,," {} + 2>/dev/null || true
  done
  count=$(find "$work/old" -type f | wc -l)
  total=$((total + count))
  if ! found=$(diff -rq "$work/old" "$work/new"); then
    differing=$((differing + $(printf '%s\n' "$found" | wc -l)))
    printf '%s\n' "$found" | sed "s,^,$name: ,"
    [ -z "${LP_KEEP:-}" ] || { mkdir -p "$LP_KEEP/$name"; cp -r "$work/old" "$work/new" "$LP_KEEP/$name"; }
  fi
  echo "$name: $count files compared" >&2
done
echo "$total files compared, $differing differ"
[ "$differing" -eq 0 ]
