# A conversation goes on at the worker that has the rows of its beginning; another prompt goes to the worker with the
# fewest requests. With $1 'shared', two servers share the workers over Redis, and the second one sends a conversation
# where the first one did.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
shared=${1:-}
fleet=
if [ "$shared" ]; then
  needs_redis
  redis
  export REDIS_KEY=secret
  fleet=", fleet: { redis: \"127.0.0.1:$redis_port\", key_env: REDIS_KEY, name: NAME }"
fi
compile "$default/model.onnx" "$work/split.llmpart" --tokenizer="$default/tokenizer.json" --device=jetson-nano --cloud=v100s --link=lan \
  --march=native --scheduler=cut --cut=1 || finish
for worker in 1 2; do
  : >"$work/worker$worker"
  "$LLMPART" worker "$work/split.llmpart" --listen=127.0.0.1:0 --threads=1 >"$work/worker$worker" 2>&1 &
  eval "pid$worker=$!"
  started="$started $!"
  await grep -q '^listening on' "$work/worker$worker" || fail "worker $worker does not start"
  eval "address$worker=$(sed -n 's/^listening on //p' "$work/worker$worker")"
done
begin() { # begin NAME: a server of both workers; sets $NAME to its URL
  # shellcheck disable=SC2154 # set by eval
  cat >"$work/$1.yaml" <<END
split: { bundle: split.llmpart, threads: 1, workers: ["$address1", "$address2"]$(echo "$fleet" | sed "s/NAME/$1/") }
END
  serve "$1"
  eval "$1=$url"
}
begin one
up() { curl -sS "$one/readyz" | grep -q "\"workers_up\":$1"; }

story='Once upon a time there was a little girl named Lily. She had a dog and a cat, and they all lived in a house near the sea. Every day they went out to play with the other animals in the big garden.'
other='The sun was high and the boy was sad. He had lost his red ball in the woods, where an old bear and three small mice lived, and he did not know how to find it before the night came to the hills.'
# So long that a request that the other server had a moment ago does not outweigh them.
story="$story $story $story $story" other="$other $other $other $other"
asked() { # asked URL PROMPT: fills $work/stream; the worker that answers
  curl -sS -N --max-time 300 --json "{\"model\":\"split\",\"prompt\":\"$2\",\"max_tokens\":8,\"temperature\":0,\"stream\":true,\"machines\":true,\"stream_options\":{\"include_usage\":true}}" \
    "$1/v1/completions" >"$work/stream"
  grep -o '"machine":"[^"]*"' "$work/stream" | sort -u | sed 's/.*:"\(.*\)"/\1/'
}
cached() { sed -n 's/.*"cached_tokens":\([0-9]*\).*/\1/p' "$work/stream"; }
choices() { curl -sS "$1/metrics" | sed -n "s/^llmpart_worker_choices_total{route=\"split\",reason=\"$2\"} //p"; } # choices URL REASON

# While the first worker is away, the second one gets the story; it keeps it when the first one is back.
# shellcheck disable=SC2154
kill -STOP "$pid1"
await up 1 || fail 'a worker that was stopped is not noticed'
same 'the story' "$address2" "$(asked "$one" "$story")"
kill -CONT "$pid1"
await up 2 || fail 'the worker does not come back'
same 'another prompt' "$address1" "$(asked "$one" "$other")"
same 'its cached tokens' 0 "$(cached)"
same 'the story goes on' "$address2" "$(asked "$one" "$story It was warm")"
[ "$(cached)" -ge 32 ] || fail "the story that goes on is computed again: $(cat "$work/stream")"
same 'the other prompt goes on' "$address1" "$(asked "$one" "$other At home")"
same 'choices by rows' 2 "$(choices "$one" prefix)"
same 'choices by requests' 2 "$(choices "$one" fewest)"

if [ "$shared" ]; then
  begin two
  same 'the story at another server' "$address2" "$(asked "$two" "$story It was warm")"
  same 'the other prompt at another server' "$address1" "$(asked "$two" "$other At home")"
  same 'choices by the database' 2 "$(choices "$two" visited)"
  same 'the story there again' "$address2" "$(asked "$two" "$story It was late")"
  [ "$(cached)" -ge 32 ] || fail "the other server computes the story again: $(cat "$work/stream")"
  # What the database has: digests, with an end.
  cli -a secret --scan --pattern 'llmpart:prompt:*' >"$work/keys" 2>/dev/null
  [ -s "$work/keys" ] || fail 'the database has no prompts'
  grep -Evq '^llmpart:prompt:[0-9a-f]{64}$' "$work/keys" && fail "the database has other keys: $(head -n 3 "$work/keys")"
  ends=$(cli -a secret PTTL "$(head -n 1 "$work/keys")" 2>/dev/null)
  [ "$ends" -gt 0 ] && [ "$ends" -le 600000 ] || fail "an entry ends in $ends ms"
  # Of a worker that nobody has nothing follows, and without the database each server goes by what it has.
  while read -r key; do cli -a secret SET "$key" nowhere:1 PX 60000; done <"$work/keys" >"$work/set" 2>/dev/null
  same 'a worker that is unknown' "$address2" "$(asked "$two" "$story It was late")"
  kill -9 "$database"
  same 'without the database' "$address2" "$(asked "$two" "$story It was early")"
  same 'the first server without it' "$address1" "$(asked "$one" "$other At home")"
fi
finish
