# The study of P1 runs from one command and finds the decrement that its page states for decode on Group-L.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v protoc >/dev/null || skip 'there is no protoc'
command -v python3 >/dev/null || skip 'there is no python3'
sh "$LP_SOURCE/examples/cloud-device/study.sh" "$LLMPART" "$work/study" >"$work/out" 2>"$work/err" || fail "it failed: $(head -n 3 "$work/err")"
same 'Group-L at 0.73, published, decode' '11.9%' "$(awk '$1 == "L" && $2 == "0.73" && $3 == "published" { print $5 }' "$work/out")"
same 'Group-H at 0.39, published, decode' '20.4%' "$(awk '$1 == "H" && $2 == "0.39" && $3 == "published" { print $5 }' "$work/out")"
[ "$(grep -c 'exact.*16 of 16' "$work/out")" = 4 ] || fail "the exact plans do not all keep the SLA"
for figure in times decrement; do
  [ -s "$work/study/$figure.svg" ] || fail "there is no $figure.svg"
done
finish
