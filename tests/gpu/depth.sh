# depth.sh MODEL.onnx: GPU code does not grow with the number of equal layers, only its tables of weights and buffers
# do; emitting only the code reads no weights.
. "$LP_SOURCE/tests/e2e/lib.sh"
# shellcheck disable=SC2086 # a list of options
plan "$1" "$work/report" $pair
depth=$(layers "$work/report")
[ "$depth" -ge 7 ] || fail "$1 has $depth layers, too few to compare"

emit() { # emit MODEL LAYERS: the code of the last LAYERS layers in one file
  # shellcheck disable=SC2086 # a list of options
  compile "$1" "$work/$2.cu" $pair --scheduler=cut --cut=$((depth - $2)) --emit=cuda
  # without what a line of a table names, and the loops' counts
  grep -v '^    .*// ' "$work/$2.cu" | sed '/static const int slot/,/};/d' >"$work/$2.code"
}
emit "$1" 5
emit "$1" $((depth - 1))
same 'lines of code' "$(wc -l <"$work/5.code")" "$(wc -l <"$work/$((depth - 1)).code")"
# the first and the last layer may differ from those between them
grep -Eq "i < ($((depth - 3))|$((depth - 2))|$((depth - 1))); i\+\+" "$work/$((depth - 1)).code" || fail 'no loop over the layers'
rows=$(grep -c '^    .*// ' "$work/5.cu")
[ "$(grep -c '^    .*// ' "$work/$((depth - 1)).cu")" -gt "$rows" ] || fail 'the tables do not grow: nothing was compared'
finish
