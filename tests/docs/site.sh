# The website (tools/site.sh) is built, and its links lead somewhere.
. "$LP_SOURCE/tests/e2e/lib.sh"
python=${LP_PYTHON:-python3}
"$python" -c 'import mkdocs' 2>/dev/null || skip "$python lacks mkdocs (tests/python/requirements.txt)"
LP_PYTHON=$python sh "$LP_SOURCE/tools/site.sh" "$work/site" >"$work/out" 2>&1 || { fail "tools/site.sh: $(tail -n 5 "$work/out")"; finish; }
"$python" "$LP_SOURCE/tests/docs/site.py" "$work/site" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
finish
