# Spans of requests at a collector, from the server, the cloud that it asks, and a worker, joined by the trace.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
python=${LP_PYTHON:-python3}
compile "$default/model.onnx" "$work/split.llmpart" --tokenizer="$default/tokenizer.json" --device=jetson-nano --cloud=v100s --link=lan \
  --march=native --scheduler=cut --cut=1 || finish
mkfifo "$work/end"
"$python" "$LP_SOURCE/tests/runtime/serve/collector.py" "$work/port" <"$work/end" >"$work/spans" 2>"$work/collector.err" &
collector=$! started="$started $!"
exec 9>"$work/end"
comes() { [ -s "$work/port" ]; }
await comes || fail "no collector: $(cat "$work/collector.err")"
traces=http://127.0.0.1:$(cat "$work/port")/v1/traces
"$LLMPART" worker "$work/split.llmpart" --listen=127.0.0.1:0 --threads=1 --traces="$traces" 2>"$work/worker.log" &
worker=$! started="$started $!"
listening() {
  address=$(sed -n 's/^listening on //p' "$work/worker.log")
  [ -n "$address" ]
}
await listening || fail "the worker does not start: $(cat "$work/worker.log")"
echo "split: { bundle: split.llmpart, model: inner, threads: 1, workers: [\"$address\"] }
traces: { url: \"$traces\" }" >"$work/inner.yaml"
serve inner
inner=$pid
echo "cloud: { url: \"$url/v1\", model: split }
traces: { url: \"$traces\" }" >"$work/outer.yaml"
serve outer
trace=0123456789abcdef0123456789abcdef
body='{"model":"auto","prompt":"Once upon a time","max_tokens":12,"temperature":0}'
post /v1/completions "$body" -H "traceparent: 00-$trace-00f067aa0ba902b7-01" | text | grep -q . || fail "no answer: $(cat "$work/body")"
counts() { curl -sS "$url/metrics" | grep -q "^llmpart_spans_total{outcome=\"$1\"} [1-9]"; }
await counts sent || fail "no span was counted: $(curl -sS "$url/metrics" | grep spans)"
kill -TERM "$pid" "$inner"
wait "$pid" && wait "$inner" || fail 'a server does not end well'
kill -TERM "$worker"
wait "$worker" || fail 'the worker does not end well'
exec 9>&-
wait "$collector" || fail "not valid: $(cat "$work/spans" "$work/collector.err")"

for line in 'llmpart serve: /v1/completions < 00f067aa0ba902b7' 'llmpart serve: text_completion split < /v1/completions' 'llmpart serve: /v1/completions < text_completion split' \
  'text_completion split: text_completion split split llmpart 12 ['"'length'"']' 'llmpart worker: session < text_completion inner' 'llmpart serve: decide < /v1/completions' \
  'llmpart serve: first token < text_completion inner' 'llmpart serve: further tokens < text_completion split' 'llmpart serve: queue < text_completion inner'; do
  grep -Fqx "$line" "$work/spans" || fail "no '$line' in: $(cat "$work/spans")"
done

# A collector that is away: answers go on, and the server ends.
serve outer
post /v1/completions "$body" >/dev/null
await counts dropped || fail "no lost span was counted: $(curl -sS "$url/metrics" | grep spans)"
kill -TERM "$pid"
wait "$pid" || fail "without a collector the server ends with $?"
finish
