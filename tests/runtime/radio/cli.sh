# llmpart radio: values, tables, faults.
. "$LP_SOURCE/tests/e2e/lib.sh"
near() { # near WHAT WANTED FOUND: within 1e-3
  awk -v a="$2" -v b="$3" 'BEGIN { exit !(b != "" && a - b < 1e-3 && b - a < 1e-3) }' || fail "$1: wanted $2, found $3"
}
near pathloss 83.1382 "$("$LLMPART" radio pathloss --scenario=UMa --los --d2d=100 --hbs=25 --hut=1.5 --fc=3.5)"
near defaults 103.0375 "$("$LLMPART" radio pathloss --nlos --d2d=100)"
near los 0.3477 "$("$LLMPART" radio los --d2d 100)"
near o2i 26.8498 "$("$LLMPART" radio o2i --high-loss)"
near capacity 3 "$("$LLMPART" radio capacity --sinr=8.45098 --blocks=1 --block-hz=1)"
near negative 0.1375 "$("$LLMPART" radio capacity --sinr=-10 --blocks=1 --block-hz=1)"
near cap 2 "$("$LLMPART" radio capacity --sinr=50 --blocks=1 --block-hz=1 --cap=2)"

printf 'name,d2d, los\na,100,los\nb,100,NLOS\n\n' >"$work/t.csv"
same table 'name,d2d,los,pathloss_db a,100,los,83.13815668 b,100,NLOS,103.0375236' \
  "$("$LLMPART" radio pathloss --csv="$work/t.csv" | tr '\n' ' ' | sed 's/ $//')"
printf 'sinr\n10\n10\n' >"$work/users.csv"
"$LLMPART" radio pf --csv="$work/users.csv" -o csv >"$work/pf.csv"
awk -F, 'NR > 1 && ($3 < 0.4995 || $3 > 0.5005) { exit 1 } END { exit NR != 3 }' "$work/pf.csv" || fail "pf: $(cat "$work/pf.csv")"
for bad in --beta=3 --users=100001 --blocks=10001; do
  status=0
  "$LLMPART" radio pf --sinr=10 "$bad" >"$work/out" 2>&1 || status=$?
  [ "$status" = 2 ] || fail "radio pf $bad: exit status $status, wanted 2"
done
"$LLMPART" radio pf --users=20 --sinr=-30 --rayleigh --intervals=1000 -o json >"$work/pf.json"
awk -v g="$(number "$work/pf.json" fading_gain)" 'BEGIN { exit !(g > 3.526 && g < 3.670) }' || fail "diversity: $(head -n 4 "$work/pf.json")"
"$LLMPART" radio drop two-cell --users=40 --intervals=10 -o csv >"$work/a.csv"
"$LLMPART" radio drop two-cell --users=40 --intervals=10 -o "$work/b.csv"
cmp -s "$work/a.csv" "$work/b.csv" || fail 'drop: two runs differ'
[ "$(wc -l <"$work/a.csv")" = 41 ] || fail "drop: $(wc -l <"$work/a.csv") lines"
"$LLMPART" radio show uma-3gpp >"$work/mine.yaml"
"$LLMPART" radio show "$work/mine.yaml" | cmp -s - "$work/mine.yaml" || fail 'show does not read back'

printf 'd2d,los\n100,los\nfar,los\n' >"$work/bad.csv"
refused 'bad row' "bad.csv:3:1: error: 'd2d' is 'far', not a number" "$LLMPART" radio pathloss --csv="$work/bad.csv"
printf 'd2d,los\n100\n' >"$work/bad.csv"
refused 'short row' 'bad.csv:2: error: has 1 fields, but the header has 2' "$LLMPART" radio pathloss --csv="$work/bad.csv"
refused 'profile' "unknown radio profile 'uma-3gp'" "$LLMPART" radio drop uma-3gp
grep -q "did you mean 'uma-3gpp'" "$work/err" || fail 'profile: no nearest name'
wanted_status=2
refused 'no distance' "'--d2d' is not given" "$LLMPART" radio pathloss --los
refused 'los or not' "give one of '--los' and '--nlos'" "$LLMPART" radio pathloss --d2d=100
refused 'scenario' "unknown scenario 'UMb'" "$LLMPART" radio pathloss --los --d2d=100 --scenario=UMb
refused 'action' "cannot do 'paint'" "$LLMPART" radio paint
refused 'number' "'x' is not a number" "$LLMPART" radio capacity --sinr=x
finish
