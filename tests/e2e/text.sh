# text.sh MODEL.onnx: mlir-opt accepts every dump of the IR, and llmpart opt prints it again unchanged.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1
command -v mlir-opt-19 >/dev/null || skip 'there is no mlir-opt-19'

check() { # check WHAT FILE
  [ -s "$2" ] || { fail "$1: nothing was printed: $(head -n 3 "$work/err")"; return; }
  mlir-opt-19 --allow-unregistered-dialect "$2" >/dev/null 2>"$work/err" ||
    fail "$1: mlir-opt refuses it: $(head -n 2 "$work/err")"
  "$LLMPART" opt "$2" >"$work/again.mlir" 2>"$work/err" || fail "$1: opt refuses it: $(head -n 2 "$work/err")"
  cmp -s "$2" "$work/again.mlir" || fail "$1: opt prints it differently: $(diff "$2" "$work/again.mlir" | head -n 4)"
}

"$LLMPART" import "$model" -o "$work/onnx.mlir" 2>"$work/err"
check 'import' "$work/onnx.mlir"
"$LLMPART" import "$model" --emit=layer-ir -o "$work/layers.mlir" 2>"$work/err"
check 'import --emit=layer-ir' "$work/layers.mlir"
for stage in layer-ir op-ir placed-ir; do
  # shellcheck disable=SC2086 # a list of options
  "$LLMPART" compile "$model" $pair --scheduler=cut --cut=1 --emit=$stage -o "$work/$stage.mlir" 2>"$work/err"
  check "--emit=$stage" "$work/$stage.mlir"
done
"$LLMPART" compile "$model" --device=jetson-nano --emit=op-ir --locations -o "$work/located.mlir" 2>"$work/err"
mlir-opt-19 --allow-unregistered-dialect "$work/located.mlir" >/dev/null 2>"$work/err" ||
  fail "--locations: mlir-opt refuses it: $(head -n 2 "$work/err")"
"$LLMPART" opt --locations "$work/located.mlir" >"$work/again.mlir" 2>"$work/err"
cmp -s "$work/located.mlir" "$work/again.mlir" ||
  fail "--locations: opt prints it differently: $(diff "$work/located.mlir" "$work/again.mlir" | head -n 4)"

compile "$model" "$work/one.llmpart" && check 'plan.mlir of the bundle' "$work/one.llmpart/plan.mlir"
finish
