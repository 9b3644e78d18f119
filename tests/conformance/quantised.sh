# Every stored case of tests/models/check_quant.py gives ONNX Runtime's results.
. "$LP_SOURCE/tests/e2e/lib.sh"
"$LLMPART" verify --suite="$LP_SOURCE/tests/conformance/quantised" --jobs=2 >"$work/out" 2>&1 ||
  fail "exit status $?: $(grep -v ' passed$' "$work/out")"
grep -qE '^[1-9][0-9]* passed, 0 failed, 0 unsupported$' "$work/out" || fail "not all passed: $(tail -n 3 "$work/out")"
finish
