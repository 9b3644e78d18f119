# One in six of the node tests that PyPI's onnx generates. No result is wrong, and a test is unsupported only where
# docs/suites.json, which docs/operators.md shows, counts unsupported tests of one of its operators. The counts are
# those of onnx 1.23, so the Python of the long tests (LP_PYTHON) must have this version.
. "$LP_SOURCE/tests/e2e/lib.sh"
python=${LP_PYTHON:-python3}
version=$("$python" -c 'import onnx; print(onnx.__version__)' 2>/dev/null)
case $version in 1.23.*) ;; *) skip "$python has onnx '$version', and the counts are of 1.23" ;; esac
"$python" "$LP_SOURCE/tests/models/onnx_node.py" "$work/all" >"$work/out" 2>&1 || fail "$(tail -n 3 "$work/out")"
mkdir "$work/nodes"
for folder in $(ls "$work/all" | awk 'NR % 6 == 1'); do
  mv "$work/all/$folder" "$work/nodes/"
done
"$LLMPART" verify --suite="$work/nodes" --time-limit=300s -o json >"$work/found.json" 2>"$work/err"
status=$?
"$python" - "$LP_SOURCE/docs/suites.json" "$work/found.json" "$work/nodes" <<'EOF' || fail "wrong or newly unsupported"
import json
import pathlib
import sys

import onnx

table, found = (json.load(open(path)) for path in sys.argv[1:3])
counts = next(suite["operators"] for suite in table if suite["title"] == "ONNX 1.23, generated")
gaps = {name.rsplit(".", 1)[1] for name, (_, _, unsupported) in counts.items() if unsupported}
lost = []
for test in found["tests"]:
    operators = {node.op_type for node in onnx.load(pathlib.Path(sys.argv[3], test["name"], "model.onnx")).graph.node}
    if test["status"] not in ("passed", "unsupported") or (test["status"] == "unsupported" and not operators & gaps):
        lost.append(f"{test['name']}: {test['status']}: {test['reason']}")
print(*lost, sep="\n")
sys.exit(bool(lost) or len(found["tests"]) < 300)
EOF
[ "$status" = 0 ] || fail "exit status $status: $(head -n 3 "$work/err")"
finish
