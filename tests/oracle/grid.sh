# A part of the grid (grid.py): no report contradicts HiGHS. And a case in which memory is so tight that the search for
# the fastest plan needs the cheapest one to begin with, one in which HiGHS finds no plan within the tolerance that is
# much faster, one with dear messages, whose gap is 31 % unless they are counted, and one in which prefill's activations
# leave decode less memory, whose gap is 4.8 % unless they are told apart. Needs a Python with requirements.txt
# (LP_PYTHON).
set -eu
python=${LP_PYTHON:-$LP_SOURCE/../venv/bin/python}
if ! "$python" -c 'import highspy, onnx' 2>/dev/null; then
  echo 'skipped: there is no Python with highspy and onnx (LP_PYTHON)'
  exit 77
fi
mkdir -p "$LP_BUILD/grid"
"$python" tests/oracle/grid.py "$LLMPART" "$LP_BUILD/grid/part.md" --models "$LP_BUILD/grid" --every 11 --judge 4 --seconds 20
"$LLMPART" compile "$LP_BUILD/grid/13b/model.onnx" --device=snapdragon-8s-gen3-p1 --cloud=a100 --link=5g --isl=2048 --sessions=64 \
  --objective=latency --plan-only --report="$LP_BUILD/grid/fastest.json" >/dev/null
"$LLMPART" compile "$LP_BUILD/grid/7b/model.onnx" --device=snapdragon-8s-gen3-p1 --cloud=a100-p1 --link=wifi --ttft=3s --plan-only \
  --report="$LP_BUILD/grid/within.json" >/dev/null
"$python" tests/oracle/plan_milp.py "$LP_BUILD/grid/within.json" --fastest --worst 1.2 --seconds 20
"$LLMPART" compile "$LP_BUILD/grid/7b/model.onnx" --device=snapdragon-8s-gen3-p1,memory=12GiB --cloud=a100 --link=5g --isl=512 \
  --ttft=51873ms --tpot=178.805ms --tolerance=0 --plan-only --report="$LP_BUILD/grid/dear.json" >/dev/null
"$python" tests/oracle/plan_milp.py "$LP_BUILD/grid/dear.json" --gap 0.02 --seconds 20
"$LLMPART" compile "$LP_BUILD/grid/7b/model.onnx" --device=snapdragon-8s-gen3-p1,memory=12GiB --cloud=a100 --link=wifi --isl=2048 \
  --tolerance=0 --plan-only --report="$LP_BUILD/grid/rooms.json" >/dev/null
"$python" tests/oracle/plan_milp.py "$LP_BUILD/grid/rooms.json" --gap 0.005 --seconds 10
