# The study of P1 runs from one command and finds the decrement that its page states for decode on Group-L.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v protoc >/dev/null || skip 'there is no protoc'
command -v python3 >/dev/null || skip 'there is no python3'
sh "$LP_SOURCE/examples/cloud-device/study.sh" "$LLMPART" "$work/study" >"$work/out" 2>"$work/err" || fail "it failed: $(head -n 3 "$work/err")"
same 'Group-L at 0.73, published, decode' '11.8%' "$(awk '$1 == "L" && $2 == "0.73" && $3 == "published" { print $5 }' "$work/out")"
same 'Group-H at 0.39, published, decode' '20.3%' "$(awk '$1 == "H" && $2 == "0.39" && $3 == "published" { print $5 }' "$work/out")"
[ "$(grep -c 'exact.*16 of 16' "$work/out")" = 4 ] || fail "the exact plans do not all keep the SLA"
# Whole requests give the paper's means within 0.7 points.
awk '$3 == "requests" { off = $4 - ($1 == "L" ? 11.6 : 20.7); if (off < -0.7 || off > 0.7) bad = 1; rows++ } END { exit bad || rows != 2 }' "$work/out" ||
  fail "the means over whole requests: $(grep requests "$work/out")"
[ "$(wc -l <"$work/study/requests.csv")" = 129 ] || fail 'there are not 64 pairs of each group'
# By the paper's count, products and attention, they are the paper's, and so are its times and its Table I.
grep -q 'figure 3: within .*e-.* % of Table I' "$work/out" || fail "Figure 3: $(grep 'figure 3' "$work/out")"
awk '$1 == "figure" && $2 == "6:" && $4 < 4 { met = 1 } END { exit !met }' "$work/out" || fail "Figure 6: $(grep 'figure 6' "$work/out")"
awk '$1 == "figure" && $2 == "7:" { off = $5 - $9; if (off < -0.15 || off > 0.15) bad = 1; rows++ } END { exit bad || rows != 2 }' "$work/out" ||
  fail "Figure 7: $(grep 'figure 7' "$work/out")"
for figure in times decrement requests figure3 figure4 figure6 figure7; do
  [ -s "$work/study/$figure.svg" ] || fail "there is no $figure.svg"
done
finish
