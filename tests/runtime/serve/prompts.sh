# Prompts without end: the model's context is their limit, before anything is computed; others run in parts, which
# notice that the client left, streamed or not, and that the server ends.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
compile "$default/model.onnx" "$work/edge.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
compile "$default/model.onnx" "$work/split.llmpart" --tokenizer="$default/tokenizer.json" --device=host --cloud=host --link=lan \
  --march=native --scheduler=cut --cut=1 || finish
"$LLMPART" worker "$work/split.llmpart" --listen=127.0.0.1:0 --threads=1 2>"$work/worker.log" &
worker=$! started="$started $!"
await grep -q '^listening on ' "$work/worker.log" || fail "the worker does not start: $(cat "$work/worker.log")"
address=$(sed -n 's/^listening on //p' "$work/worker.log")
printf 'edge: { bundle: edge.llmpart, threads: 1 }\nsplit: { bundle: split.llmpart, workers: ["%s"], threads: 1 }\n' "$address" >"$work/long.yaml"

body() { # body MODEL STREAM: a request with a prompt of 900,000 characters
  awk -v model="$1" -v stream="$2" 'BEGIN {
    printf "{\"model\":\"%s\",\"stream\":%s,\"max_tokens\":4,\"prompt\":\"", model, stream
    for (i = 0; i < 30000; i++) printf "Once upon a time there was a "
    print "dog\"}"
  }' >"$work/body.json"
}
# In a process of its own, so that to end it ends curl.
ask() { exec curl -sS --max-time "$1" --json @"$work/body.json" "$url/v1/completions"; }
in_flight() { curl -sS "$url/metrics" | sed -n 's/^llmpart_requests_in_flight //p'; }
are_in_flight() { [ "$(in_flight)" = "$1" ]; }

for model in edge split; do
  serve long
  wanted=$(post /v1/completions "{\"model\":\"$model\",\"prompt\":\"Once\",\"max_tokens\":4,\"temperature\":0}" | text)
  for stream in false true; do
    body "$model" "$stream"
    ask 600 >/dev/null 2>&1 &
    client=$!
    await are_in_flight 1 || fail "$model, stream $stream: it does not begin"
    sleep 1
    kill "$client"
    await are_in_flight 0 || fail "$model, stream $stream: a client that left is not noticed"
  done
  same "$model: after clients that left" "$wanted" \
    "$(post /v1/completions "{\"model\":\"$model\",\"prompt\":\"Once\",\"max_tokens\":4,\"temperature\":0}" | text)"
  body "$model" true
  ask 600 >"$work/stream" &
  client=$!
  await are_in_flight 1 || fail "$model: it does not begin before the end"
  sleep 1
  kill -TERM "$pid"
  await eval '! kill -0 "$pid" 2>/dev/null' || fail "$model: the server does not end during a prompt"
  wait "$pid" || fail "$model: the server ends with $?"
  wait "$client"
  grep -q '"the server ends"' "$work/stream" || fail "$model: the stream ends with $(tail -c 200 "$work/stream")"
done
kill "$worker"

# Nothing is computed for a prompt beyond the model's context.
mkdir "$work/m"
ln -s "$default"/* "$work/m"
echo '{"model": {"context_length": 64}}' >"$work/m/genai_config.json"
compile "$work/m/model.onnx" "$work/short.llmpart" --tokenizer="$default/tokenizer.json" --device=host
echo 'edge: { bundle: short.llmpart, threads: 1 }' >"$work/short.yaml"
serve short
body edge false
post /v1/completions @"$work/body.json" | grep -q "the prompt has [0-9]* tokens; this model's maximum context length is 64" ||
  fail "beyond the context: $(cat "$work/body")"
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"
finish
