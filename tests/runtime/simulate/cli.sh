# llmpart simulate: the examples, traces, formats, faults.
. "$LP_SOURCE/tests/e2e/lib.sh"
examples=$LP_SOURCE/examples/edge-cloud-6g
for scenario in "$examples"/*.yaml; do
  base=$(basename "$scenario" .yaml)
  grep -q router "$scenario" && ! "$LLMPART" route --help >/dev/null 2>&1 && continue
  sed -e 's/requests: .*/requests: 400/' -e 's/warm_up: .*/warm_up: 100/' -e 's/after: [0-9]*/after: 200/' -e 's/users: [0-9]*, intervals: [0-9]*/users: 30, intervals: 20/' -e "s,vary: { users.*,vary: { users: [10\, 20] }," \
    -e "s,service: \./,service: $examples/," "$scenario" >"$work/$base.yaml"
  "$LLMPART" simulate "$work/$base.yaml" --runs=2 -o "$work/$base.html" -o "$work/$base.json" -o "$work/$base.csv" || fail "$base: $?"
  "$LLMPART" simulate "$work/$base.yaml" --runs=2 | cmp -s - "$work/$base.json" || fail "$base: two runs differ"
  grep -q '^<script type="application/json" id="data">{' "$work/$base.html" || fail "$base: the page has no data"
  grep -q '"schema": "llmpart.simulate/1"' "$work/$base.json" || fail "$base: no schema"
done
same policies 'class cloud-only policy queue-aware' "$(cut -d, -f1 "$work/loaded-edge.csv" | sort -u | tr '\n' ' ' | sed 's/ $//')"

printf 'time_s,class,tokens\n0,a,1000\n0.5,b,\n20,a,500\n' >"$work/trace.csv"
printf 'simulate: t\narrivals: { trace: trace.csv }\ncounting: paper\ntasks: [{ class: a, tokens: 1 }, { class: b, tokens: 750 }]\nedge: { slots: 1 }\npolicies: [edge-only]\n' >"$work/t.yaml"
# 13.5633; 13.5633 - 0.5 + 10.23; 23.7933 - 20 + 6.8967
same trace 15.8488889 "$("$LLMPART" simulate "$work/t.yaml" -o csv | awk -F, 'NR == 2 { print $5 }')"

printf 'time_s,class\n1,a\n0,a\n' >"$work/trace.csv"
refused 'back in time' "trace.csv:3:1: error: 'time_s' is 0, but the request before came at 1" "$LLMPART" simulate "$work/t.yaml"
printf 'time_s,class\n1,c\n' >"$work/trace.csv"
refused 'no such class' "trace.csv:2:3: error: 'c' is not a class of the scenario" "$LLMPART" simulate "$work/t.yaml"
printf 'simulate: t\narrivals: { poisson: much }\ntasks: [{ class: a, tokens: 1 }]\n' >"$work/t.yaml"
refused 'key' "t.yaml:2:22: error: 'poisson' is 'much', not a number from" "$LLMPART" simulate "$work/t.yaml"
printf 'time_s,class,tokens,place\n0,a,1000,cloud\n100,a,1000,edge\n' >"$work/trace.csv"
printf 'simulate: t\narrivals: { trace: trace.csv }\ncounting: paper\nbackhaul: 0\ntasks: [{ class: a, tokens: 1 }]\npolicies: [edge-only]\n' >"$work/t.yaml"
same 'named places' '22.6166667 0.5 0.5' "$("$LLMPART" simulate "$work/t.yaml" -o csv | awk -F, 'NR == 2 { print $5, $17, $20 }')"
printf 'time_s,class,place\n0,a,split\n' >"$work/trace.csv"
refused 'no split' "t.yaml: error: request 1 of the trace names the split, and there is none" "$LLMPART" simulate "$work/t.yaml"
printf 'time_s,class,place\n0,a,moon\n' >"$work/trace.csv"
refused 'no such place' "trace.csv:2:5: error: 'moon' is not edge, cloud or split" "$LLMPART" simulate "$work/t.yaml"
refused 'no file' 'none.yaml: error: cannot open' "$LLMPART" simulate "$work/none.yaml"
printf 'time_s,class,tokens,edge_success,cloud_success\n0,a,100,0,1\n60,a,100,1,1\n120,a,100,1,0\n' >"$work/trace.csv"
printf 'simulate: t\narrivals: { trace: trace.csv }\ntasks: [{ class: a, quality: true, tokens: 1 }]\npolicies: [edge-only, cloud-only]\n' >"$work/t.yaml"
same labels '0.666666667 0.666666667' "$("$LLMPART" simulate "$work/t.yaml" -o csv | awk -F, 'NR > 1 { printf "%s%s", $9, NR == 2 ? " " : "" }')"
for figure in delay reward quality regret learning-reward learning-quality learning-regret; do
  "$LLMPART" simulate "$work/t.yaml" --figure=$figure -o svg >"$work/f.svg" || fail "$figure: $?"
  grep -q '</svg>' "$work/f.svg" || fail "$figure: no figure"
done
wanted_status=2
refused 'figure' "there is no figure 'dela'" "$LLMPART" simulate "$work/t.yaml" --figure=dela -o svg
refused 'format' "'-o x.pdf' is neither json, csv, html, svg" "$LLMPART" simulate "$work/t.yaml" -o x.pdf
finish
