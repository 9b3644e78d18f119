# One trace through serve and through simulate (tests/bench/replay.py): it runs, every request is answered at the place
# that it names, and both tables have the same rows. Times are not compared.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v python3 >/dev/null || skip 'there is no python3'
"$LLMPART" serve --help >/dev/null 2>&1 || skip 'there is no serve'
python3 "$LP_SOURCE/tests/bench/replay.py" "$LLMPART" "$LP_SOURCE/examples/default-model/model.onnx" "$1" --quick --seconds=2 --rounds=1 \
  --keep="$work/replay" >"$work/out" 2>"$work/err" || fail "it failed: $(tail -n 3 "$work/err")"
for place in all edge cloud split; do
  awk -F'|' -v place=" $place " '$2 == " named " && $3 == place { found++; if ($4 + 0 != $5 + 0) bad = 1 } END { exit bad || found != 1 }' "$work/out" ||
    fail "requests to $place: $(cat "$work/out")"
done
grep -q '^| quickest | all |' "$work/out" || fail "the router's requests: $(cat "$work/out")"
# The scenario that it wrote gives the same result again.
for i in 1 2; do
  "$LLMPART" simulate "$work/replay/replay.yaml" -o "$work/$i.json" || fail 'the scenario does not run'
done
cmp -s "$work/1.json" "$work/2.json" || fail 'two simulations differ'
finish
