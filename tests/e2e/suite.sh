# The part of ONNX's own node tests that moves data. None may give a wrong result.
. "$LP_SOURCE/tests/e2e/lib.sh"
suite=${LP_ONNX_NODE:-/usr/share/libonnx-testdata/data/node}
[ -d "$suite" ] || skip "there is no $suite"

passes() { # passes GLOB COUNT: at least COUNT tests pass and none is wrong
  "$LLMPART" verify --suite="$suite" --tests="$1" >"$work/out" || fail "$1: $(grep failed "$work/out")"
  count=$(grep -c ' passed' "$work/out")
  [ "$count" -gt "$2" ] || fail "$1: $((count - 1)) passed, wanted $2: $(grep unsupported "$work/out" | head -n 3)"
}

passes 'test_*_pad' 3
passes 'test_tri[lu]*' 18
passes 'test_shape*' 10
passes 'test_reshape_*' 9
passes 'test_slice*' 8
passes 'test_nonzero*' 1
finish
