# llmpart serve over three places: workers of its own that end and come back, groups of workers, groups that are wrong.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
compile "$default/model.onnx" "$work/three.llmpart" --tokenizer="$default/tokenizer.json" --place=phone=host --place=edge=host,memory=3MB \
  --place=server=host,memory=3MB --device-memory=3MB --link=lan --isl=16 --osl=16 || finish
wanted=$("$LLMPART" run "$work/three.llmpart" --prompt='Once upon a time' -n 12 --threads=1 --in-process --stats 2>"$work/stats")
machine=$(sed -n 's/.*, [0-9]* sampled at \([a-z]*\)$/\1/p' "$work/stats")
[ "$machine" != phone ] || machine=device
ask='"prompt":"Once upon a time","max_tokens":12,"temperature":0'
answers() { # answers WHAT: to three requests at a time
  for client in 1 2 3; do
    curl -sS --max-time 300 --json "{\"model\":\"split\",$ask}" "$url/v1/completions" >"$work/answer$client" &
    eval "client$client=$!"
  done
  # shellcheck disable=SC2154 # set above
  wait "$client1" "$client2" "$client3"
  for client in 1 2 3; do
    same "$1, request $client" "$wanted" "$(text <"$work/answer$client")"
  done
}
is() { [ "$(readiness)" = "$1" ]; }

echo 'split: { bundle: three.llmpart, threads: 1, theta: 0.8 }' >"$work/theta.yaml"
"$LLMPART" serve "$work/theta.yaml" --listen=127.0.0.1:0 >"$work/theta.log" 2>&1 && fail 'theta over three places'
grep -q "early exits cannot give tokens ('theta'): the bundle has more than two places" "$work/theta.log" || fail "no reason: $(cat "$work/theta.log")"

# Workers of its own.
echo 'split: { bundle: three.llmpart, threads: 1 }' >"$work/own.yaml"
serve own
answers 'its own workers'
curl -sS --json "{\"model\":\"split\",$ask,\"stream\":true,\"machines\":true}" "$url/v1/completions" >"$work/stream"
grep -q "\"machine\":\"$machine\"" "$work/stream" || fail "'$machine' is not named: $(head -n 3 "$work/stream")"
victim=$(pgrep -P "$pid" | head -n 1)
kill -9 "$victim"
is_replaced() { [ "$(pgrep -P "$pid" | grep -cvx "$victim")" = 2 ] && is ready; }
await is_replaced || fail 'a worker that has ended does not come back'
answers 'after a worker has ended'
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"

# Groups of workers: the second one answers without the first one.
group() { # group NUMBER: two workers at Unix sockets; sets $found, and $last to the worker of the edge
  found=edge=unix:$work/edge$1,server=unix:$work/server$1
  for place in server edge; do
    : >"$work/listening"
    "$LLMPART" worker "$work/three.llmpart" --place=$place --listen="unix:$work/$place$1" --peer="edge=unix:$work/edge$1" --peer="server=unix:$work/server$1" \
      --threads=1 2>"$work/listening" &
    worker=$! started="$started $!" last=$!
    await listens_or_ended
    [ -n "$address" ] || fail "the worker does not listen: $(cat "$work/listening")"
  done
}
group 1
first=$found first_edge=$last
group 2
echo "split: { bundle: three.llmpart, threads: 1, workers: [\"$first\", \"$found\"] }" >"$work/groups.yaml"
serve groups
answers 'groups of workers'
kill -9 "$first_edge"
answers 'the other group'
await is degraded || fail 'a group that lacks a worker is not noticed'
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"

# A group whose addresses are swapped is down, and the server says why: without addresses where no key is asked for.
swapped=edge=unix:$work/server2,server=unix:$work/edge2
reason="the worker serves the place 'server', not 'edge'"
echo "log: swapped.jsonl
split: { bundle: three.llmpart, threads: 1, workers: [\"$swapped\"] }" >"$work/swapped.yaml"
(cd "$work" && exec "$LLMPART" serve swapped.yaml --listen=127.0.0.1:0 2>swapped.log) &
pid=$! started="$started $!"
await listens "$work/swapped.log" || fail "the server with a swapped group does not start: $(cat "$work/swapped.log")"
ready="\"split\":{\"state\":\"down\",\"workers\":1,\"workers_up\":0,\"reasons\":[\"$reason\"]}"
says() { [ "$(state split)" = "$ready" ]; }
await says || fail "readyz with a swapped group: $(curl -sS "$url/readyz")"
logged() { grep -q "\"route\":\"split\",\"worker\":\"$swapped\",\"state\":\"down\",\"reason\":\"$reason\"" "$work/swapped.jsonl"; }
await logged || fail "the log with a swapped group: $(cat "$work/swapped.jsonl")"
curl -sS "$url/v1/status" | grep -q "\"address\":\"$swapped\",\"state\":\"down\",\"reason\":\"$reason\"" ||
  fail "the status with a swapped group: $(curl -sS "$url/v1/status")"
rejected 'a request to a swapped group' 503 "no worker answers: $reason" /v1/completions "{\"model\":\"split\",$ask}"
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"

wrong() { # wrong WORKERS PATTERN
  echo "split: { bundle: three.llmpart, workers: [\"$1\"] }" >"$work/wrong.yaml"
  status=0
  "$LLMPART" serve "$work/wrong.yaml" --listen=127.0.0.1:0 2>"$work/err" || status=$?
  same "exit status with $1" 1 "$status"
  grep -q "$2" "$work/err" || fail "$1: $(cat "$work/err")"
}
wrong 127.0.0.1:7 "wanted the name of the place before '127.0.0.1:7'"
wrong "server=127.0.0.1:7" "no worker is given for the place 'edge'"
wrong "edge=127.0.0.1:7,cloud=127.0.0.1:7" "no worker can run the place 'cloud'"
wrong "edge=127.0.0.1:7,edge=127.0.0.1:8" "the place 'edge' has two addresses"
finish
