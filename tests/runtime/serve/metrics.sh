# The histograms of /metrics and the lines of the log, by Prometheus's own parser: they count the same requests, have
# the same times, and agree with the answers. The examples of rules and dashboards use what is there.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
python=${LP_PYTHON:-python3}
"$python" -c 'import prometheus_client.parser, yaml' 2>/dev/null || skip "$python lacks prometheus_client or yaml (tests/runtime/serve/requirements.txt)"
compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
printf 'edge: { bundle: story.llmpart, threads: 1, model: story }\nlog: log\nmax_tokens: 64\nprediction: { rate: 100 }\n' >"$work/edge.yaml"
serve edge || finish

number=0
ask() { # ask BODY: the answer is in $work/answerNUMBER
  number=$((number + 1))
  post /v1/completions "$1" >"$work/answer$number"
}
tale='One day a little girl named Lily went to the park with her mom and her dad. She saw a big red ball in the grass and wanted to play with it. Her mom said that the ball belonged to a boy, and that they should ask him first. So Lily'
ask '{"model":"edge","prompt":"Once upon a time","max_tokens":12,"temperature":0}'
ask '{"model":"story","prompt":"Once","max_tokens":1,"temperature":0}' # no time per token
ask "{\"model\":\"auto\",\"prompt\":\"$tale\",\"max_tokens\":3,\"temperature\":0}"
ask "{\"model\":\"auto\",\"prompt\":\"$tale\",\"max_tokens\":3,\"temperature\":0}" # of which most is kept
ask '{"model":"edge","prompt":"Once","max_tokens":3,"logit_bias":{"99999":1}}'       # is refused by its place
lines() { [ "$(wc -l <"$work/log")" = "$number" ]; }
await lines || fail "the log: $(cat "$work/log")"
same 'the last one is refused' 400 "$(cat "$work/status")"
"$python" "$LP_SOURCE/tests/runtime/serve/log.py" "$work/log" "$url/metrics" "$work"/answer[1-5] >"$work/found" 2>&1 ||
  fail "the log: $(tail -n 2 "$work/found")"
"$python" "$LP_SOURCE/tests/runtime/serve/metrics.py" "$url/metrics" \
  'llmpart_ttft_seconds_count{route="edge"}=4' 'llmpart_tpot_seconds_count{route="edge"}=3' \
  'llmpart_queue_seconds_count{route="edge"}=4' 'llmpart_decision_seconds_count{route="edge"}=4' \
  'llmpart_request_seconds_count{route="edge"}=4' 'llmpart_request_seconds_count{route="cloud"}=0' \
  'llmpart_requests_total{route="edge",outcome="answered"}=4' 'llmpart_requests_total{route="edge",outcome="failed"}=0' \
  'llmpart_requests_total{route="edge",outcome="refused"}=1' \
  'llmpart_generated_tokens_total{route="edge"}=19' 'llmpart_cached_tokens_total{route="edge"}>0' \
  'llmpart_requests_in_flight=0' 'llmpart_place_up{route="edge"}=1' >"$work/found" 2>&1 || fail "$(cat "$work/found")"

# The rules and the dashboard of examples/monitoring ask for nothing else, and other names, labels and values are found.
watched() { "$python" "$LP_SOURCE/tests/runtime/serve/monitoring.py" "$url/metrics" "$@" >"$work/found" 2>&1; }
watched "$LP_SOURCE/examples/monitoring/alerts.yaml" "$LP_SOURCE/examples/monitoring/dashboard.json" || fail "examples/monitoring: $(cat "$work/found")"
for change in 's/llmpart_ttft_seconds_bucket/llmpart_ttft_bucket/' 's/by (le, route)/by (le, place)/' 's/outcome=\(.*\)failed/outcome=\1broken/' 's/"h": 8/"h": 9/'; do
  sed "$change" "$LP_SOURCE/examples/monitoring/dashboard.json" >"$work/changed.json"
  watched "$work/changed.json" && fail "not noticed in the dashboard: $change"
done

# The judges find what is wrong.
curl -sS "$url/metrics" >"$work/metrics"
judges() { # judges WHAT SED: the figures, changed
  sed "$2" "$work/metrics" >"$work/changed"
  "$python" "$LP_SOURCE/tests/runtime/serve/metrics.py" "$work/changed" 'llmpart_requests_in_flight=0' >/dev/null 2>&1 && fail "not noticed: $1"
}
judges 'a bucket' 's/^\(llmpart_ttft_seconds_bucket{route="edge",le="0.0005"}\) .*/\1 9/'
judges 'a count' 's/^\(llmpart_tpot_seconds_count{route="edge"}\) .*/\1 7/'
judges 'a sum' 's/^\(llmpart_request_seconds_sum{route="edge"}\) .*/\1 0/'
judges 'no text' 's/^# HELP llmpart_place_up.*//'
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"
finish
