# llmpart serve over several places: requests at the same time, a full queue, workers that end and come back, routes.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
compile "$default/model.onnx" "$work/split.llmpart" --tokenizer="$default/tokenizer.json" --device=jetson-nano --cloud=v100s --link=lan \
  --march=native --scheduler=cut --cut=1 || finish
wanted=$("$LLMPART" run "$work/story.llmpart" --prompt='Once upon a time' -n 12 --threads=1)
ask='"prompt":"Once upon a time","max_tokens":12,"temperature":0'

# Requests at the same time, each as if it were alone.
echo 'edge: { bundle: story.llmpart, threads: 1, kv_cache: 3MiB, prompt_stretch: 2 }
log: requests.log
drain: 60s' >"$work/edge.yaml"
serve edge
waiting=""
for client in 1 2 3 4 5 6 7 8 9 10 11 12; do
  curl -sS --max-time 300 --json "{\"model\":\"edge\",$ask}" "$url/v1/completions" >"$work/answer$client" &
  waiting="$waiting $!"
done
# shellcheck disable=SC2086 # a list of numbers
wait $waiting
for client in 1 2 3 4 5 6 7 8 9 10 11 12; do
  same "client $client" "$wanted" "$(text <"$work/answer$client")"
done
curl -sS "$url/metrics" >"$work/metrics"
for time in ttft tpot queue decision request; do
  grep -q "^llmpart_${time}_seconds_bucket{route=\"edge\",le=\"+Inf\"} 12\$" "$work/metrics" || fail "no times: $time"
  grep -q "^llmpart_${time}_seconds_count{route=\"edge\"} 12\$" "$work/metrics" || fail "no count: $time"
done
same 'a line of each request' 12 "$(grep -c '"asked":"edge",.*"route":"edge",.*"tokens":12,.*"ttft_ms":' "$work/requests.log")"

# Prompts that begin alike are computed once; what is kept stays within the budget.
tale='One day a little girl named Lily went to the park with her mom and her dad. She saw a big red ball in the grass and wanted to play with it. Her mom said that the ball belonged to a boy, and that they should ask him first. So Lily'
body="{\"model\":\"edge\",\"prompt\":\"$tale\",\"max_tokens\":12,\"temperature\":0}"
first_text=$(post /v1/completions "$body" | text)
curl -sS --json "$body" "$url/v1/completions" >"$work/answer"
same 'the same text' "$first_text" "$(text <"$work/answer")"
grep -q '"cached_tokens":[1-9]' "$work/answer" || fail "nothing was shared: $(cat "$work/answer")"
curl -sS "$url/metrics" >"$work/metrics"
grep -q '^llmpart_cached_tokens_total{route="edge"} [1-9]' "$work/metrics" || fail 'no count of what was shared'
kept=$(sed -n 's/^llmpart_kv_bytes{route="edge",of="prompts"} //p' "$work/metrics")
[ "$kept" -gt 0 ] && [ "$kept" -le 3145728 ] || fail "kept: '$kept' bytes"

# A trace joins the lines of two servers.
edge=$url edge_pid=$pid trace=0123456789abcdef0123456789abcdef
echo "cloud: { url: $edge/v1, model: edge }
log: cloud.log" >"$work/cloud.yaml"
serve cloud
same 'traced' "$wanted" "$(post /v1/completions "{\"model\":\"cloud\",$ask}" -H "traceparent: 00-$trace-0123456789abcdef-01" | text)"
for log in requests cloud; do
  grep -q "\"trace_id\":\"$trace\"" "$work/$log.log" || fail "$log.log has no such trace: $(tail -n 1 "$work/$log.log")"
done
rejected 'it may not leave the edge' 400 'cloud: the request may not leave the edge' /v1/completions \
  "{\"model\":\"cloud\",$ask,\"local_only\":true}"
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"

# The server ends when its answers are complete.
curl -sS --json '{"model":"edge","prompt":"Once","max_tokens":480,"stream":true,"temperature":0,"logit_bias":{"0":-100}}' \
  "$edge/v1/completions" >"$work/last" &
last=$!
await [ -s "$work/last" ]
kill -TERM "$edge_pid"
wait "$last" "$edge_pid" || fail "the server ends with $?"
same 'completed' 'data: [DONE]' "$(grep '^data' "$work/last" | tail -n 1)"

# A place that is full refuses, and a request that named no place goes elsewhere.
worker() { # worker NUMBER [ADDRESS]: a worker at $address, of pid $worker_pid
  for _ in 1 2 3 4 5 6 7 8 9 10; do # another process's connection may have the port for a while
    : >"$work/worker$1.log"
    "$LLMPART" worker "$work/split.llmpart" --listen="${2-127.0.0.1:0}" --threads=1 2>"$work/worker$1.log" &
    worker_pid=$! started="$started $!"
    await grep -q 'listening on\|in use' "$work/worker$1.log" || fail "worker $1: $(cat "$work/worker$1.log")"
    grep -q 'in use' "$work/worker$1.log" || break
    sleep 1
  done
  address=$(sed -n 's/.*listening on //p' "$work/worker$1.log" | head -n 1)
}
worker 1
first=$address first_pid=$worker_pid
worker 2
second=$address second_pid=$worker_pid
printf 'edge: { bundle: story.llmpart, threads: 1, parallel: 1, queue: 0 }
split: { bundle: split.llmpart, model: cut, workers: ["%s", "%s"], threads: 1 }
router: { policy: edge, backends: backends.yaml }\n' "$first" "$second" >"$work/both.yaml"
printf 'service: llama3\nedge: { context: 200 }\n' >"$work/backends.yaml"
serve both
same 'models' 'model cut auto edge split' "$(curl -sS "$url/v1/models" | grep -o '"id":"[a-z]*"' | cut -d'"' -f4 | tr '\n' ' ' | sed 's/ $//')"
same 'by the split' "$wanted" "$(post /v1/completions "{\"model\":\"split\",$ask}" | text)"
same 'its route' split "$(route)"
same 'by its model' "$wanted" "$(post /v1/completions "{\"model\":\"cut\",$ask,\"stream\":true}" | text)"
same 'the route of a model' split "$(route)"
grep -q '"model":"cut"' "$work/body" || fail "the model's name: $(head -n 1 "$work/body")"
# Workers keep rows of prompts, too: of three requests one has a worker that has had the prompt.
for request in 1 2 3; do
  same "alike at the split $request" "$first_text" "$(post /v1/completions "{\"model\":\"split\",\"prompt\":\"$tale\",\"max_tokens\":12,\"temperature\":0}" | text)"
done
grep -q '"cached_tokens":[1-9]' "$work/body" || fail "the workers shared nothing: $(cat "$work/body")"
post /v1/completions '{"model":"auto","prompt":"Once","max_tokens":300,"temperature":0}' >"$work/answer"
same 'beyond the context of the edge' split "$(route)"
rejected 'tokens of no model' 400 'which belong to one model' /v1/completions '{"model":"auto","prompt":[1,2,3]}'
# What is drawn from the worker's logits is what the edge draws, with a model of all layers. The edge takes the prompts
# of a request one after the other.
choices() { grep -o '"choices":\[.*\],"usage"'; }
warm='"prompt":["Once upon a time","One day"],"max_tokens":12,"temperature":1,"seed":3'
for more in '"n":3' '"logprobs":2' '"min_p":0.1,"repetition_penalty":1.2,"presence_penalty":0.5,"frequency_penalty":0.5,"logit_bias":{"300":2}' \
  '"response_format":{"type":"json_object"}'; do
  at_edge=$(post /v1/completions "{\"model\":\"edge\",$warm,$more}" | choices | sed 's/-[0-9]\.[0-9e-]*//g')
  same "at the split: $more" "$at_edge" "$(post /v1/completions "{\"model\":\"split\",$warm,$more}" | choices | sed 's/-[0-9]\.[0-9e-]*//g')"
  [ -n "$at_edge" ] || fail "nothing was drawn: $more"
done
curl -sS --json '{"model":"edge","prompt":"Once","max_tokens":500,"stream":true,"temperature":0,"logit_bias":{"0":-100}}' \
  "$url/v1/completions" >"$work/long" 2>/dev/null &
long=$!
await [ -s "$work/long" ]
post /v1/completions "{\"model\":\"auto\",$ask}" >"$work/answer"
same 'beside a full edge' "$wanted" "$(text <"$work/answer")"
wait "$long"

# A worker that is killed: the other one answers. Without any, the edge does, and readyz tells it; then they are back.
kill -9 "$first_pid"
for request in 1 2 3 4 5 6; do
  same "request $request without a worker" "$wanted" "$(post /v1/completions "{\"model\":\"split\",$ask}" | text)"
done
kill -9 "$second_pid"
is_degraded() {
  post /v1/completions "{\"model\":\"split\",$ask}" >/dev/null
  state split | grep -q '"state":"down","workers":2,"workers_up":0[,}]' && [ "$(readiness)" = degraded ]
}
await is_degraded || fail "without workers: $(curl -sS "$url/readyz")"
rejected 'no worker' 503 'split: ' /v1/completions "{\"model\":\"split\",$ask}"
same 'without workers' "$wanted" "$(post /v1/completions "{\"model\":\"auto\",$ask}" | text)"
curl -sS "$url/metrics" | grep -q '^llmpart_place_up{route="split"} 0$' || fail 'the split counts as up'
worker 3 "$first"
third_pid=$worker_pid
is_up() { state split | grep -q "\"state\":\"up\",\"workers\":2,\"workers_up\":$1[,}]"; }
await is_up 1 || fail "the worker is back, and not noticed: $(curl -sS "$url/readyz")"
same 'by the worker that is back' "$wanted" "$(post /v1/completions "{\"model\":\"split\",$ask}" | text)"
worker 4 "$second"
fourth_pid=$worker_pid
await is_up 2 || fail "both workers are back, and not noticed: $(curl -sS "$url/readyz")"
same 'ready again' ready "$(readiness)"

# Workers that end in the middle of answers: another one continues the texts.
streamed() { sed -n 's/^data: //p' "$1" | text; }
tale() { # tale SEED FILE
  curl -sS -N --json "{\"model\":\"split\",\"prompt\":\"Once upon a time there was a dog who\",\"max_tokens\":400,\"temperature\":1,\"seed\":$1,\"stream\":true}" \
    "$url/v1/completions" >"$work/$2$1"
}
seeds='1 2 3 4 5 6 7 8' waiting=''
for seed in $seeds; do tale "$seed" quiet; done
for seed in $seeds; do
  : >"$work/tale$seed"
  tale "$seed" tale &
  waiting="$waiting $!"
done
await [ -s "$work/tale1" ]
kill -STOP "$pid" # between two tokens
begun='' cut=0 # answers that have begun; one that has not may fail
for seed in $seeds; do
  [ -s "$work/tale$seed" ] || continue
  begun="$begun $seed"
  grep -q DONE "$work/tale$seed" || cut=$((cut + 1))
done
[ "$cut" -gt 0 ] || echo 'serve_places: skipped: the answers were complete before their workers could end'
kill -9 "$third_pid" "$fourth_pid"
worker 5 "$second"
kill -CONT "$pid"
# shellcheck disable=SC2086 # a list of numbers
wait $waiting
for seed in $begun; do
  same "continued $seed" "$(streamed "$work/quiet$seed")" "$(streamed "$work/tale$seed")"
  same "the end of $seed" 'data: [DONE]' "$(grep '^data' "$work/tale$seed" | tail -n 1)"
done

is_out() { state split | grep -q '"state":"down","workers":2,"workers_up":0[,}]'; }
# A worker that is stopped is taken out, and in again when it continues.
await is_up 1 || fail "one of two workers: $(curl -sS "$url/readyz")"
kill -STOP "$worker_pid"
post /v1/completions "{\"model\":\"auto\",$ask}" >/dev/null
await is_out || fail "a stopped worker: $(curl -sS "$url/readyz")"
rejected 'a stopped worker' 503 'split: ' /v1/completions "{\"model\":\"split\",$ask}"
kill -CONT "$worker_pid"
await is_up 1 || fail "a worker that continues: $(curl -sS "$url/readyz")"
same 'by the worker that continues' "$wanted" "$(post /v1/completions "{\"model\":\"split\",$ask}" | text)"
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"
finish
