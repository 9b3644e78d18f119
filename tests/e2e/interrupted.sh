# A compilation that is told to end leaves neither its output nor temporary files, and does not change existing ones.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/examples/default-model/model.onnx
place=$work/place TMPDIR=$work/tmp
export TMPDIR
mkdir "$place" "$TMPDIR"

begun() { ls -A "$place" "$TMPDIR" | grep -q '^\.kept\|^\.new\|llmpart-'; }

interrupt() { # interrupt SIGNAL STATUS NAME
  "$LLMPART" compile "$model" --device=jetson-nano -o "$place/$3.llmpart" >"$work/said" 2>&1 &
  compiler=$!
  for _ in $(seq 500); do
    begun && break
    sleep 0.01
  done
  sleep 0.1 # between making a folder and noting its name for removal lie some microseconds
  kill -s "$1" "$compiler"
  wait "$compiler"
  status=$?
  [ "$status" = "$2" ] || fail "$1: exit status $status, wanted $2"
  [ ! -s "$work/said" ] || fail "$1: it said $(head -n 2 "$work/said")"
  [ -z "$(ls -A "$TMPDIR")" ] || fail "$1: it left $(ls -A "$TMPDIR") in the temporary folder"
}

interrupt TERM 143 new
interrupt HUP 129 new
[ -z "$(ls -A "$place")" ] || fail "it left $(ls -A "$place")"
compile "$model" "$place/kept.llmpart" -O1 || finish
interrupt TERM 143 kept
same 'what is there' kept.llmpart "$(ls -A "$place")"
"$LLMPART" run "$place/kept.llmpart" --check --tokens=1 -n 1 >/dev/null 2>"$work/err" || fail "what was there is broken: $(cat "$work/err")"
finish
