# docs/operators.md equals the output of docs/make_operators.py for ir/ops.def and docs/suites.json.
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
