# The deployment of examples/deployment, with a short load: no request is lost or answered wrongly while a worker and a
# link are away, and the log and the page have the routes and their reasons.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v curl >/dev/null && command -v python3 >/dev/null && command -v openssl >/dev/null || skip 'curl, python3 or openssl is missing'
CLIENTS=4 REQUESTS=6 sh "$LP_SOURCE/examples/deployment/deployment.sh" "$work/out" >"$work/log" 2>&1
status=$?
[ "$status" != 77 ] || skip "$(sed 's/.*skipped: //' "$work/log")"
[ "$status" = 0 ] || fail "exit status $status: $(tail -n 20 "$work/log")"
for event in 'killed worker 1' 'worker 1 is back' 'cut the link' 'the link is mended' ' 0 lost, 0 wrong'; do
  grep -q "$event" "$work/log" || fail "not in the log: $event"
done
grep -q '"asked":"auto",.*"decided_by":"rule"' "$work/out/requests.log" || fail 'the log has no decisions'
grep -q '"schema":"llmpart.status/1".*"decided_by":"rule"' "$work/out/status.json" || fail 'the page has no decisions'
finish
