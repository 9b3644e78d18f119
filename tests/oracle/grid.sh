# A part of the grid (grid.py): no report contradicts HiGHS. And a case in which prefill's activations leave decode
# less memory, whose gap is 4.8 % unless they are told apart. The soak takes a larger part of the grid, a case in which
# memory is so tight that the search for the fastest plan needs the cheapest one to begin with, one in which HiGHS finds
# no plan within the tolerance that is much faster, and one with dear messages, whose gap is 31 % unless they are
# counted. Needs a Python with requirements.txt (LP_PYTHON).
set -eu
python=${LP_PYTHON:-$LP_SOURCE/../venv/bin/python}
if ! "$python" -c 'import highspy' 2>/dev/null; then
  echo 'skipped: there is no Python with highspy (LP_PYTHON)'
  exit 77
fi
case ${LP_PART-soak} in
*long*) part='--every 41 --judge 3 --seconds 8' name=long ;;
*) part='--every 11 --judge 4 --seconds 20' name=soak ;;
esac
models=$LP_BUILD/grid-$name # the two may run at once
mkdir -p "$models"
# shellcheck disable=SC2086 # a list of options
"$python" tests/oracle/grid.py "$LLMPART" "$models/part.md" --models "$models" $part

plan() { # plan NAME MODEL [option ...]: the report NAME.json
  report=$models/$1.json model=$models/$2/model.onnx
  shift 2
  "$LLMPART" compile "$model" --device=snapdragon-8s-gen3-p1"$memory" --objective=cost "$@" --plan-only --report="$report" >/dev/null
}
memory=,memory=12GiB
plan rooms 7b --cloud=a100 --link=wifi --isl=2048 --tolerance=0
"$python" tests/oracle/plan_milp.py "$models/rooms.json" --gap 0.005 --seconds 10
[ $name = soak ] || exit 0
plan dear 7b --cloud=a100 --link=5g --isl=512 --ttft=51873ms --tpot=178.805ms --tolerance=0
"$python" tests/oracle/plan_milp.py "$models/dear.json" --gap 0.025 --seconds 20
memory=
plan fastest 13b --cloud=a100 --link=5g --isl=2048 --sessions=64 --objective=latency
plan within 7b --cloud=a100-p1 --link=wifi --ttft=3s
"$python" tests/oracle/plan_milp.py "$models/within.json" --fastest --worst 1.2 --seconds 20
