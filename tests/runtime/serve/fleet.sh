# Servers that share workers over Redis: each knows of the others and of their requests; a worker that one finds dead
# is noticed by all; workers and a server are killed while clients ask, and no answer is lost or wrong.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
needs_redis
redis
compile "$default/model.onnx" "$work/split.llmpart" --tokenizer="$default/tokenizer.json" --device=jetson-nano --cloud=v100s --link=lan \
  --march=native --scheduler=cut --cut=1 || finish
wanted=$("$LLMPART" run "$work/split.llmpart" --prompt='Once upon a time' -n 24 --threads=1 --in-process)
ask='{"model":"split","prompt":"Once upon a time","max_tokens":24,"temperature":0}'

workers="" pids=""
for worker in 1 2 3; do
  : >"$work/worker$worker"
  "$LLMPART" worker "$work/split.llmpart" --listen=127.0.0.1:0 --threads=1 >"$work/worker$worker" 2>&1 &
  pids="$pids $!" started="$started $!"
  await grep -q '^listening on' "$work/worker$worker" || fail "worker $worker does not start"
  workers="$workers \"$(sed -n 's/^listening on //p' "$work/worker$worker")\","
done
export REDIS_KEY=secret
for server in one two three; do
  cat >"$work/$server.yaml" <<END
split: { bundle: split.llmpart, threads: 1, workers: [${workers%,}], fleet: { redis: "127.0.0.1:$redis_port", key_env: REDIS_KEY, name: $server } }
END
  serve $server
  eval "$server=$url pid_$server=$pid"
done

servers() { # servers COUNT: each server that is named in $alive has heard of so many
  for url in $alive; do curl -sS "$url/readyz" | grep -q "\"servers\":$1[,}]" || return 1; done
}
# shellcheck disable=SC2154 # set by eval
alive="$one $two $three"
await servers 3 || fail "the servers do not meet: $(curl -sS "$one/readyz")"

# A worker that another server keeps busy is left alone: the request goes to the next one, which is stopped, so that it
# is seen to be there.
# shellcheck disable=SC2086 # a list of numbers
set -- $pids
first=$(sed -n 's/^listening on //p' "$work/worker1")
{
  cli -a secret SET llmpart:server:other "{\"$first\":{\"requests\":50,\"down\":false}}" PX 60000
  cli -a secret SADD llmpart:servers other
} >/dev/null 2>&1
await servers 4 || fail 'a fourth server is not heard of'
kill -STOP "$2" "$3"
curl -sS --max-time 300 --json "$ask" "$one/v1/completions" >"$work/answer" &
asking=$!
goes_elsewhere() {
  curl -sS "$one/v1/status" >"$work/status.json"
  grep -q "\"address\":\"$first\",\"state\":\"up\",\"requests\":0}.*\"requests\":1}" "$work/status.json"
}
await goes_elsewhere || fail "the request goes to the busy worker: $(cat "$work/status.json")"
kill -CONT "$2" "$3"
wait "$asking"
same 'an answer by another worker' "$wanted" "$(text <"$work/answer")"
cli -a secret DEL llmpart:server:other >/dev/null 2>&1
await servers 3 || fail 'the fourth server is still counted'

# Clients ask all servers; a worker and a server are killed meanwhile. Only the killed server's clients may fail.
asking=""
for client in 1 2 3 4 5 6; do
  case $client in 1 | 4) at=$one ;; 2 | 5) at=$two ;; *) at=$three ;; esac
  (for _ in $(seq 8); do
    curl -sS --max-time 300 --json "$ask" "$at/v1/completions" | text
    echo
  done) >"$work/answers$client" 2>/dev/null &
  asking="$asking $!"
done
sleep 0.3
kill -9 "$1"
# shellcheck disable=SC2154
kill -9 "$pid_three"
# shellcheck disable=SC2086
wait $asking
for client in 1 2 4 5; do
  same "client $client" 8 "$(grep -cxF "$wanted" "$work/answers$client")"
done
alive="$one $two"
await servers 2 || fail 'the server that was killed is still counted'
up() { for url in $alive; do curl -sS "$url/readyz" | grep -q "\"workers_up\":$1" || return 1; done; }
await up 2 || fail "the killed worker is still up: $(curl -sS "$one/readyz")"

# Without the database each server goes on alone, and they meet again when it is back.
kill -9 "$database"
url=$one
same 'without the database' "$wanted" "$(post /v1/completions "$ask" | text)"
alone() { ! servers 2; }
await alone || fail 'a database that is away is not noticed'
redis
await servers 2 || fail 'the servers do not meet again'
finish
