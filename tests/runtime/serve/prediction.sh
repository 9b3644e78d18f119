# A server tells measured figures beside predicted ones, and says once when its load is beyond them and when it fits
# again. The times of its log are the oracle of the percentiles.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
predict() { # predict TEXT: the server's file has this prediction; empty: none
  printf 'edge: { bundle: story.llmpart, model: story }\nlog: log\n%s' "${1:+prediction: $1
}" >"$work/live.yaml"
}
again() { # again PATTERN: it says this after SIGHUP
  kill -HUP "$pid"
  said() { tail -n 1 "$work/live.log" | grep -q -- "$1"; }
  await said "$1" || fail "wanted '$1': $(tail -n 3 "$work/live.log")"
}
figure() { curl -sS "$url/metrics" | sed -n "s/^llmpart_$1 //p"; } # figure NAME
generous='{ window: 1h, rate: 1e6, busy: 0.5, ttft: { p50: 10min, p95: 10min }, tpot: { p95: 10min } }'
predict "$generous"
serve live || finish
number=240
seq "$number" | sed "s,.*,url = $url/v1/completions," >"$work/urls"
curl -sS -K "$work/urls" -H "Content-Type: $type" -d '{"prompt":"Once","max_tokens":3,"temperature":0}' >"$work/answers"
same 'answers' "$number" "$(grep -o '"text"' "$work/answers" | wc -l)"
counted() { [ "$(figure measured_requests)" = "$number" ]; }
await counted || fail "requests: $(figure measured_requests)"
same 'it fits' 1 "$(figure prediction_fits)"
same 'a prediction' 600 "$(figure 'predicted_ttft_seconds{quantile="0.95"}')"
of_log() { grep -o "\"$1\":[0-9.]*" "$work/log" | sed 's/.*://' | sort -n | sed -n "$2p"; } # of_log KEY NUMBER: in ms
for one in 'ttft 0.5 120' 'ttft 0.95 228' 'tpot 0.95 228'; do
  set -- $one
  same "p$2 of $1" "$(of_log "$1_ms" "$3" | awk '{ printf "%.6f", $1 / 1000 }')" \
    "$(figure "measured_$1_seconds{quantile=\"$2\"}" | awk '{ printf "%.6f", $1 }')"
done
awk -v share="$(figure measured_busy_ratio)" 'BEGIN { exit !(share > 0 && share <= 1) }' || fail "busy: $(figure measured_busy_ratio)"
awk -v spent="$(figure 'pass_seconds_total{route="edge"}')" 'BEGIN { exit !(spent > 0) }' || fail 'no time in passes'
grep -q prediction "$work/live.log" && fail "it speaks too soon: $(cat "$work/live.log")"

predict '{ window: 1h, tpot: { p50: 10min }, ttft: { p95: 1us } }'
again 'warning: the load is beyond the prediction: TTFT p95 .*, predicted .*; 240 requests in the last'
same 'it does not fit' 0 "$(figure prediction_fits)"
curl -sS "$url/v1/status" | grep -q '"prediction":{"fits":false,"says":"the load is beyond' || fail 'the status'
figure predicted_requests_per_second | grep . && fail 'a figure of the earlier prediction'
sleep 1.2
same 'it says so once' 1 "$(grep -c 'beyond the prediction' "$work/live.log")"
predict "$generous"
again 'note: the load fits the prediction; 240 requests'
same 'it fits again' 1 "$(figure prediction_fits)"
predict '{ ttft: { p95: 0 } }'
again 'the configuration stays as it was'
grep -q "live.yaml:3:[0-9]*: error: .*p95" "$work/live.log" || fail "an error: $(tail -n 2 "$work/live.log")"
predict '{}'
again 'the configuration stays as it was'
predict ''
again 'the configuration was read again'
curl -sS "$url/metrics" | grep 'predict\|measured' && fail 'figures without a prediction'
curl -sS "$url/v1/status" | grep -q '"prediction"' && fail 'the status without a prediction'
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"
finish
