# docs/ops.md equals the output of docs/make_ir_ops.awk for ir/ops.def, and has every operator of it that is not ONNX's.
set -eu
cd "$LP_SOURCE"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -f docs/make_ir_ops.awk ir/ops.def >"$work/ops.md"
grep -v '^LP_ONNX(' ir/ops.def | grep -o '^LP_[A-Z]*([A-Za-z_]*, "[^"]*"' | sed 's/.*"\(.*\)"/\1/' >"$work/names"
[ -s "$work/names" ] || { echo 'no operator was found in ir/ops.def'; exit 1; }
while read -r name; do
  grep -qF "\`$name\`" "$work/ops.md" || { echo "'$name' has no page"; exit 1; }
done <"$work/names"
diff -u docs/ops.md "$work/ops.md" || {
  echo 'docs/ops.md is stale: awk -f docs/make_ir_ops.awk ir/ops.def >docs/ops.md'
  exit 1
}
