# Two compilations of the same input give the same bytes, from another folder, under another name and locale too; no
# path of this machine is in them.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx
mkdir -p "$work/elsewhere"
cp "$model" "$work/elsewhere/model.onnx"
for options in "-O2 --device=jetson-nano --march=native" "-O2 $pair --scheduler=cut --cut=1" "-O2 $pair --pin=layer.*.linear=cloud"; do
  case $options in *--cut=1) part quick ;; *linear*) part soak ;; *) part long ;; esac || continue
  # shellcheck disable=SC2086 # a list of options
  compile "$model" "$work/first.llmpart" $options
  # shellcheck disable=SC2086
  (cd "$work/elsewhere" && LC_ALL=C.UTF-8 TZ=Asia/Tokyo "$LLMPART" compile model.onnx $options -o second.llmpart 2>/dev/null)
  diff -rq "$work/first.llmpart" "$work/elsewhere/second.llmpart" || fail "two compilations with $options differ"
  grep -rlF -e "$LP_SOURCE" -e "$work" "$work/first.llmpart" && fail 'a bundle holds a path of this machine'
done
for what in llvm-ir report placed-ir; do
  case $what in llvm-ir) part long ;; *) part quick ;; esac || continue
  for i in 1 2; do
    # shellcheck disable=SC2086
    "$LLMPART" compile "$model" $pair --scheduler=cut --cut=1 --emit=$what -o "$work/$what-$i" 2>"$work/err" ||
      fail "--emit=$what: $(head -n 2 "$work/err")"
  done
  [ -s "$work/$what-1" ] || fail "--emit=$what writes nothing"
  cmp -s "$work/$what-1" "$work/$what-2" || fail "--emit=$what writes different bytes"
done
finish
