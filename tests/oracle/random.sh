# Random problems of middle size (random_plans.py): HiGHS contradicts no bound and finds no cheaper plan. LP_SEED draws
# others. Needs a Python with requirements.txt (LP_PYTHON).
set -eu
python=${LP_PYTHON:-$LP_SOURCE/../venv/bin/python}
if ! "$python" -c 'import highspy' 2>/dev/null; then
  echo 'skipped: there is no Python with highspy (LP_PYTHON)'
  exit 77
fi
case ${LP_PART-} in *long*) count=4 ;; *) count=16 ;; esac
"$python" tests/oracle/random_plans.py "$LLMPART" --count $count --seconds 5 --seed "${LP_SEED:-1}" --folder "$LP_BUILD/random-plans-$count"
