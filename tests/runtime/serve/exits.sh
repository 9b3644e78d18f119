# Early exits in `llmpart serve`: requests at the same time give the tokens of `llmpart run --mode=threshold`, the
# worker is asked for the rest, and answers go on by the last exit when it is killed.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
compile "$default/model.onnx" "$work/split.llmpart" --tokenizer="$default/tokenizer.json" --device=jetson-nano --cloud=v100s --link=wifi \
  --march=native --exits=3,6 || finish
compile "$default/model.onnx" "$work/plain.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
"$LLMPART" worker "$work/split.llmpart" --listen=127.0.0.1:0 --threads=1 2>"$work/worker.log" &
worker=$! started="$started $!"
await grep -q 'listening on' "$work/worker.log" || fail "the worker: $(cat "$work/worker.log")"
address=$(sed -n 's/.*listening on //p' "$work/worker.log")
printf 'split: { bundle: split.llmpart, workers: ["%s"], threads: 1, theta: 0.8 }\n' "$address" >"$work/exits.yaml"
serve exits

count=0 waiting=''
set -- 'Once upon a time' 'One day' 'Lily and Tom' 'The dog ran' 'In a big house' 'A girl named Mia'
for prompt; do
  count=$((count + 1))
  "$LLMPART" run "$work/split.llmpart" --prompt="$prompt" -n 40 --threads=1 --mode=threshold --theta=0.8 --codec=f32 --ignore-eos \
    --cloud="$address" >"$work/wanted$count" || fail "run: $prompt"
done
count=0
for prompt; do
  count=$((count + 1))
  curl -sS -N --max-time 300 --json "{\"model\":\"split\",\"prompt\":\"$prompt\",\"max_tokens\":40,\"temperature\":0,\"stream\":true,\"machines\":true}" \
    "$url/v1/completions" >"$work/answer$count" &
  waiting="$waiting $!"
done
# shellcheck disable=SC2086 # a list of numbers
wait $waiting
for i in $(seq $count); do
  same "prompt $i" "$(tr -d '"\\\\' <"$work/wanted$i" | head -c 60)" "$(sed -n 's/^data: //p' "$work/answer$i" | text | tr -d '"\\\\' | head -c 60)"
done
cat "$work"/answer? | grep -o '"machine":"[^"]*"' | sort -u >"$work/machines"
for machine in 'device, exit after layer 3' 'device, exit after layer 6' "$address"; do
  grep -q "\"$machine\"" "$work/machines" || fail "no token of '$machine': $(cat "$work/machines")"
done

# Penalties and probabilities apply to what exits give, too; without the worker they give all.
post /v1/completions '{"model":"split","prompt":"Once upon a time","max_tokens":20,"temperature":0,"n":2,"logprobs":1,"presence_penalty":1}' >"$work/answer"
same 'choices' '"index":0 "index":1' "$(grep -o '"index":[0-9]' "$work/answer" | tr '\n' ' ' | sed 's/ $//')"
grep -q '"token_logprobs":\[-' "$work/answer" || fail "no probabilities: $(cat "$work/answer")"
curl -sS -N --json '{"model":"split","prompt":"Once upon a time there was","max_tokens":400,"temperature":0,"stream":true,"machines":true,"logit_bias":{"0":-100}}' \
  "$url/v1/completions" >"$work/long" &
long=$!
until [ -s "$work/long" ]; do :; done
kill -9 "$worker"
wait "$long" || fail 'the answer ended'
same 'whole without the worker' 'data: [DONE]' "$(grep '^data' "$work/long" | tail -n 1)"

printf 'edge: { bundle: plain.llmpart, theta: 0.8 }\n' >"$work/plain.yaml"
"$LLMPART" serve "$work/plain.yaml" --listen=127.0.0.1:0 2>"$work/plain.log" && fail 'theta without exits'
grep -q "early exits cannot give tokens ('theta'): all layers run here" "$work/plain.log" || fail "no reason: $(cat "$work/plain.log")"
finish
