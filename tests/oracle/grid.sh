# A part of the grid (grid.py): no report contradicts HiGHS. Needs a Python with requirements.txt (LP_PYTHON).
set -eu
python=${LP_PYTHON:-$LP_SOURCE/../venv/bin/python}
if ! "$python" -c 'import highspy, onnx' 2>/dev/null; then
  echo 'skipped: there is no Python with highspy and onnx (LP_PYTHON)'
  exit 77
fi
mkdir -p "$LP_BUILD/grid"
exec "$python" tests/oracle/grid.py "$LLMPART" "$LP_BUILD/grid/part.md" --models "$LP_BUILD/grid" --every 11 --judge 4 --seconds 20
