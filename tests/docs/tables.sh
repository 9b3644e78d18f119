# The tables of the three studies and of examples/capacity are those of a run: quick what follows by formula, and that a
# changed cell is found; long the capacity sweep; soak the studies, an hour of one core.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v python3 >/dev/null || skip 'there is no python3'
check() { # check NAME: the page's tables are those of the run
  python3 "$LP_SOURCE/examples/tables.py" --llmpart "$LLMPART" --out "$work/tables" --check "$1" >"$work/out" 2>&1 || fail "$1: $(head -c 4000 "$work/out")"
}
found() { # found WHAT TEXT: the copy's check fails and says TEXT
  if python3 "$work/examples/tables.py" --llmpart "$LLMPART" --check "${3:-cloud-edge}" ${4:+--from="$4"} >"$work/out" 2>&1; then
    fail "$1 is not noticed"
  fi
  grep -qF -- "$2" "$work/out" || fail "$1: $(cat "$work/out")"
}
if part quick; then
  check formulas
  mkdir "$work/examples"
  cp -R "$LP_SOURCE/examples/tables.py" "$LP_SOURCE/examples/cloud-edge" "$work/examples"
  page=$work/examples/cloud-edge/README.md
  # The page agrees with its own tables; measured seconds may differ, shares may not.
  cp "$page" "$work/run.md"
  python3 "$work/examples/tables.py" --llmpart "$LLMPART" --check cloud-edge --from="$work/run.md" >"$work/out" || fail "itself: $(cat "$work/out")"
  sed -i '/^| theta 0.5 |/s/| 0\.102 |/| 0.999 |/' "$work/run.md"
  python3 "$work/examples/tables.py" --llmpart "$LLMPART" --check cloud-edge --from="$work/run.md" >"$work/out" || fail "other seconds: $(cat "$work/out")"
  sed -i '/^| theta 0.5 |/s/| 10\.0 % |/| 12.0 % |/' "$work/run.md"
  found 'another rate' "asks the cloud: the page has '10.0 %', the run '12.0 %'" cloud-edge "$work/run.md"
  sed -i 's/| Alpaca | 20.58 | 112,128 /| Alpaca | 20.58 | 112,129 /' "$page"
  found 'another byte' '112,129' formulas
fi
if part long; then
  check capacity
fi
if part soak; then
  command -v protoc >/dev/null && check cloud-device
  check edge-cloud-6g
  check cloud-edge
fi
finish
