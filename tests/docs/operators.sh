# docs/operators.md equals the output of docs/make_operators.py for ir/ops.def and docs/suites.json, and names every
# operator of ONNX that ir/ops.def has.
set -eu
command -v python3 >/dev/null || { echo 'operators: skipped: there is no python3'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/docs" "$work/ir"
cp "$LP_SOURCE/docs/make_operators.py" "$LP_SOURCE/docs/suites.json" "$work/docs"
cp "$LP_SOURCE/ir/ops.def" "$work/ir"
python3 "$work/docs/make_operators.py"
diff -u "$LP_SOURCE/docs/operators.md" "$work/docs/operators.md" || {
  echo 'docs/operators.md is stale: python3 docs/make_operators.py'
  exit 1
}
sed -n 's/^LP_ONNX([A-Za-z0-9_]*, "\([^"]*\)".*/\1/p' "$LP_SOURCE/ir/ops.def" | sed 's/^onnx\.//' >"$work/names"
[ -s "$work/names" ] || { echo 'no operator was found in ir/ops.def'; exit 1; }
while read -r name; do
  grep -qF "\`$name\`" "$work/docs/operators.md" || { echo "docs/operators.md lacks '$name'"; exit 1; }
done <"$work/names"
