# llmpart worker --metrics: figures of sessions, contexts and refusals by Prometheus's own parser, readiness, and who
# may ask.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v curl >/dev/null || skip 'curl is not there'
model=$LP_SOURCE/tests/models/llama/model.onnx
lists=$LP_SOURCE/tests/models/llama/tokens.json
# shellcheck disable=SC2086 # a list of options
compile "$model" "$work/1.llmpart" $pair --scheduler=cut --cut=1 || finish
ids=$(row "$lists" prompts 3)
rows=$(length "$ids")

is_ready() { [ "$(code "$url/readyz")" = 200 ]; }
watch() { # watch BUNDLE [option ...]: a worker, with its figures at $url
  watched=$1
  shift
  serve "$work/$watched.llmpart" --metrics=127.0.0.1:0 "$@"
  url=$(sed -n 's/^metrics at \(.*\)\/metrics$/\1/p' "$work/listening")
  [ -n "$url" ] || fail "no metrics: $(cat "$work/listening")"
  await is_ready || fail "it is not ready: $(cat "$work/body")"
}
figures() { # figures WHAT EXPECTATION ...
  what=$1
  shift
  "$python" "$LP_SOURCE/tests/runtime/serve/metrics.py" "$url/metrics" "$@" >"$work/found" 2>&1 || fail "$what: $(cat "$work/found")"
}
closed() { "$python" "$LP_SOURCE/tests/runtime/serve/metrics.py" "$url/metrics" 'llmpart_worker_connections=0' >/dev/null 2>&1; }
code() { curl -sS --max-time 300 -o "$work/body" -D "$work/head" -w '%{http_code}' "$@"; }

if part quick; then # without a parser: readiness, a few figures, and the key
  watch 1
  same 'ready' '{"status":"ready"}' "$(curl -sS "$url/readyz")"
  tokens "$work/1.llmpart" "$ids" 4 --cloud="$address" >"$work/tokens"
  has() { curl -sS "$url/metrics" >"$work/figures" && grep -qx "llmpart_$figure" "$work/figures"; }
  for figure in 'worker_up 1' 'worker_opened_total{of="sessions"} 1' 'worker_pass_seconds_count 4'; do
    await has || fail "no $figure: $(grep "^llmpart_${figure%% *}" "$work/figures")"
  done
  same 'another host' 403 "$(code -H 'Host: evil.example' "$url/metrics")"
  kill -TERM "$worker"
  wait "$worker" || fail "the worker ends with $?"
  export LLMPART_METRICS_KEY=secret
  watch 1
  same 'without the key' 401 "$(code "$url/metrics")"
  same 'with the key' 200 "$(code -H 'Authorization: Bearer secret' "$url/metrics")"
  kill -TERM "$worker"
  wait "$worker" || fail "the worker ends with $?"
  unset LLMPART_METRICS_KEY
  refused 'beyond loopback' "'0.0.0.0:0' is not a loopback address, so a key is required" "$LLMPART" worker "$work/1.llmpart" --metrics=0.0.0.0:0
fi
part long || finish
python=${LP_PYTHON:-python3}
"$python" -c 'import prometheus_client.parser' 2>/dev/null || skip "$python lacks prometheus_client (tests/runtime/serve/requirements.txt)"
# shellcheck disable=SC2086 # a list of options
compile "$model" "$work/2.llmpart" $pair --scheduler=cut --cut=2 || finish
# shellcheck disable=SC2086 # a list of options
compile "$model" "$work/exits.llmpart" $pair --exits=1 || finish

watch 1
same 'ready' '{"status":"ready"}' "$(curl -sS "$url/readyz")"
figures 'before' 'llmpart_worker_up=1' 'llmpart_worker_opened_total{of="sessions"}=0' 'llmpart_worker_pass_seconds_count=0' \
  'llmpart_worker_kv_budget_bytes>0'
# Two sessions of a prompt and seven further tokens, each token a pass.
for _ in 1 2; do tokens "$work/1.llmpart" "$ids" 8 --cloud="$address" >"$work/tokens"; done
await closed || fail 'connections stay'
figures 'two sessions' 'llmpart_worker_opened_total{of="sessions"}=2' 'llmpart_worker_opened_total{of="contexts"}=0' \
  'llmpart_worker_first_answer_seconds_count{of="sessions"}=2' 'llmpart_worker_between_answers_seconds_count{of="sessions"}=14' \
  'llmpart_worker_queue_seconds_count{of="sessions"}=16' 'llmpart_worker_pass_seconds_count=16' 'llmpart_worker_pass_seconds_sum>0' \
  "llmpart_worker_pass_rows_sum=$((2 * (rows + 7)))" 'llmpart_worker_pass_rows_bucket{le="1"}=14' \
  'llmpart_worker_first_answer_seconds_sum{of="sessions"}>0' 'llmpart_worker_between_answers_seconds_sum{of="sessions"}>0' \
  'llmpart_worker_bytes_total{direction="received"}>1000' 'llmpart_worker_bytes_total{direction="sent"}>100' \
  'llmpart_worker_open{of="sessions"}=0' 'llmpart_worker_kv_bytes=0' 'llmpart_worker_waiting=0' 'llmpart_worker_failures_total=0'
"$LLMPART" run "$work/2.llmpart" --tokens="$ids" -n 2 --cloud="$address" >"$work/out" 2>&1 && fail 'another bundle is served'
figures 'another bundle' 'llmpart_worker_refused_total{reason="handshake"}=1' 'llmpart_worker_refused_total{reason="budget"}=0' \
  'llmpart_worker_failures_total=1'

# Who may ask.
same 'no such path' 404 "$(code "$url/other")"
same 'another method' 405 "$(code -d x "$url/metrics")"
grep -qi '^Allow: GET' "$work/head" || fail "405 without Allow: $(cat "$work/head")"
same 'another host' 403 "$(code -H 'Host: evil.example' "$url/metrics")"
same 'a probe of another host' 200 "$(code -H 'Host: evil.example' "$url/readyz")"
kill -TERM "$worker"
wait "$worker" || fail "the worker ends with $?"
curl -sS --max-time 5 "$url/readyz" >"$work/body" 2>&1 && fail 'the figures outlive the worker'
refused 'beyond loopback' "'0.0.0.0:0' is not a loopback address, so a key is required" "$LLMPART" worker "$work/1.llmpart" --metrics=0.0.0.0:0
wanted_status=2 refused 'no address' "'nowhere' is no address" "$LLMPART" worker "$work/1.llmpart" --metrics=nowhere
wanted_status=2 refused 'with --profile' 'error: --metrics has nothing' "$LLMPART" worker "$work/1.llmpart" --profile --metrics=127.0.0.1:0
LLMPART_METRICS_KEY='a key for figures'
export LLMPART_METRICS_KEY
watch 1
same 'without the key' 401 "$(code "$url/metrics")"
same 'a wrong key' 401 "$(code -H 'Authorization: Bearer a key for figureS' "$url/metrics")"
same 'with the key' 200 "$(code -H 'Authorization: Bearer a key for figures' "$url/metrics")"
same 'a probe without it' 200 "$(code "$url/readyz")"
kill -TERM "$worker"
unset LLMPART_METRICS_KEY

# Sessions that are refused.
watch 1 --context-budget=1KiB
"$LLMPART" run "$work/1.llmpart" --tokens="$ids" -n 2 --cloud="$address" >"$work/out" 2>&1 && fail 'a session beyond the budget is served'
figures 'the budget' 'llmpart_worker_refused_total{reason="budget"}>0' 'llmpart_worker_failures_total>0' 'llmpart_worker_kv_budget_bytes=1024'
kill -TERM "$worker"
watch 1 --connection-rows=$((rows - 1))
"$LLMPART" run "$work/1.llmpart" --tokens="$ids" -n 2 --cloud="$address" >"$work/out" 2>&1 && fail 'too many rows are served'
figures 'rows' 'llmpart_worker_refused_total{reason="rows"}>0'
kill -TERM "$worker"

# Contexts of early exits: each token is asked for.
watch exits
tokens "$work/exits.llmpart" "$ids" 6 --cloud="$address" --mode=threshold --theta=2 --codec=f32 >"$work/tokens"
await closed || fail 'connections stay'
figures 'a context' 'llmpart_worker_opened_total{of="contexts"}=1' 'llmpart_worker_first_answer_seconds_count{of="contexts"}=1' \
  'llmpart_worker_between_answers_seconds_count{of="contexts"}=5' 'llmpart_worker_queue_seconds_count{of="contexts"}=6' \
  'llmpart_worker_pass_seconds_count=6' "llmpart_worker_pass_rows_sum=$((rows + 5))" 'llmpart_worker_between_answers_seconds_count{of="sessions"}=0'
kill -TERM "$worker"
wait "$worker" || fail "the worker ends with $?"
finish
