# llmpart serve: answers whole and streamed, another server as the cloud, the router's fallback, limits, faults, the
# end.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish

echo 'edge: { bundle: story.llmpart, threads: 1, queue: 0 }
max_body: 4096
max_tokens: 64' >"$work/edge.yaml"
serve edge
edge=$url edge_pid=$pid
wanted=$("$LLMPART" run "$work/story.llmpart" --prompt='Once upon a time' -n 12 --threads=1)
ask='"prompt":"Once upon a time","max_tokens":12,"temperature":0'
same text "$wanted" "$(post /v1/completions "{\"model\":\"edge\",$ask}" | text)"
grep -q '"usage":{"prompt_tokens":4,"completion_tokens":12,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":0}}' "$work/body" || fail "usage: $(cat "$work/body")"
same stream "$wanted" "$(post /v1/completions "{\"model\":\"auto\",$ask,\"stream\":true}" | text)"
same 'events' "14 data: [DONE]" "$(grep -c '^data: ' "$work/body") $(grep '^data' "$work/body" | tail -n 1)"
# Up to a stop sequence, which may begin in one piece and end in another; what clients send beside it.
stopping='"stop":["never","little girl"],"frequency_penalty":0,"n":1,"logit_bias":{},"tools":[]'
same stopped "${wanted%%little girl*}" "$(post /v1/completions "{\"model\":\"edge\",$ask,$stopping}" | text)"
grep -q '"finish_reason":"stop"' "$work/body" || fail "stopped: $(cat "$work/body")"
same 'stopped, streamed' "${wanted%%little girl*}" \
  "$(post /v1/completions "{\"model\":\"edge\",$ask,$stopping,\"stream\":true,\"stream_options\":{\"include_usage\":true}}" | text)"
grep -q '"choices":\[\],"usage":{"prompt_tokens":4,' "$work/body" || fail "no usage in the stream: $(cat "$work/body")"
same 'not stopped' "$wanted" "$(post /v1/completions "{\"model\":\"edge\",$ask,\"stop\":\"little boy\"}" | text)"
same 'a list of one prompt' "$wanted" "$(post /v1/completions "{\"model\":\"edge\",\"prompt\":[\"Once upon a time\"],\"max_tokens\":12,\"temperature\":0}" | text)"
# The likeliest token is the only one of top_k 1, at any temperature.
warm='"model":"edge","prompt":"Once upon a time","max_tokens":12,"temperature":1.5,"seed":5'
same 'top_k' "$wanted" "$(post /v1/completions "{$warm,\"top_k\":1}" | text)"
[ "$(post /v1/completions "{$warm,\"top_k\":-1}" | text)" != "$wanted" ] || fail 'the temperature is not followed'
# A story that ends with the last token asked for was not cut off.
ending='{"model":"edge","prompt":"So they all went home and were happy.","temperature":0,"max_tokens":'
for end in 15:length 16:stop 17:stop; do
  post /v1/completions "$ending${end%:*}}" | grep -q "\"finish_reason\":\"${end#*:}\"" || fail "ends with $end: $(cat "$work/body")"
done
same ready ready "$(readiness)"
curl -sS "$url/metrics" >"$work/metrics"
grep -q '^llmpart_requests_total{route="edge",outcome="answered"} 11$' "$work/metrics" || fail "metrics: $(cat "$work/metrics")"
grep -q '^llmpart_prompt_tokens_total{route="edge"} 59$' "$work/metrics" || fail "metrics: $(cat "$work/metrics")"
rejected 'no pool' 400 'the server has no pool' /v1/router/outcome '{"id":1,"reward":1}'
same models 'model auto edge' "$(curl -sS "$url/v1/models" | grep -o '"id":"[a-z]*"' | cut -d'"' -f4 | tr '\n' ' ' | sed 's/ $//')"
same health '{"status":"ok"}' "$(curl -sS "$url/healthz")"
same 'health, as others name it' '{"status":"ok"}' "$(curl -sS "$url/health")"
for path in / /health /v1/models; do
  same "HEAD $path" "200 0" "$(curl -sS -I -o /dev/null -w '%{http_code} %{size_download}' "$url$path")"
done
same 'no model, of one place' "$wanted" "$(post /v1/completions "{$ask}" | text)"
same 'more tokens than the limit' length "$(post /v1/completions '{"prompt":"Once upon a time","max_tokens":65,"temperature":0}' | sed -n 's/.*"finish_reason":"\([a-z]*\)".*/\1/p')"
grep -q "^X-Llmpart-Note: 'max_tokens' 65 is cut to 64, the limit of this server" "$work/head" || fail "no note: $(cat "$work/head")"
post /v1/completions '{"prompt":"Once upon a time","max_tokens":65,"temperature":0,"stream":true}' >/dev/null
grep -q "^X-Llmpart-Note: 'max_tokens' 65 is cut to 64" "$work/head" || fail "no note of a stream: $(cat "$work/head")"

rejected json 400 'line 1, column 2: not valid JSON: it ends too early' /v1/completions '{'
rejected 'no object' 400 'must be a JSON object' /v1/completions '[]'
rejected 'a key twice' 400 'line 2, column [0-9]*: .*two members of one name' /v1/completions '{"model":"edge",
  "prompt":"a","prompt":"b"}'
rejected 'not UTF-8' 400 'not UTF-8' /v1/completions "$(printf '{"model":"edge","prompt":"\377"}')"
rejected 'NUL' 400 'u0000, which is not supported' /v1/completions '{"model":"edge","prompt":"a\u0000b"}'
rejected 'half a pair' 400 'half of a surrogate pair' /v1/completions '{"model":"edge","prompt":"\ud800"}'
rejected 'too large' 400 'a number that is too large' /v1/completions '{"model":"edge","prompt":"a","seed":1e999}'
rejected 'too deep' 400 'nested too deeply' /v1/completions "$(printf '{"a":%0500d' 0 | tr 0 '[')"
rejected 'text after it' 400 'text after the document' /v1/completions '{"model":"edge","prompt":"a"} {'
rejected 'the router: no object' 400 'must be a JSON object' /v1/router/decide '7'
rejected 'no such model' 404 "there is no model 'moon': wanted auto, edge, model" /v1/completions '{"model":"moon","prompt":"a"}'
# A name is quoted up to 80 bytes, also if that cuts a character: the answer stays JSON in UTF-8.
for before in 79 80; do
  name=$(printf "%0${before}d" 0 | tr 0 m)$(printf '\303\251')
  rejected "a name that is cut after $before bytes" 404 "there is no model 'mmmm" /v1/completions "{\"model\":\"$name\",\"prompt\":\"a\"}"
  python3 -c 'import json, sys; json.load(open(sys.argv[1], encoding="utf-8"))["error"]["message"]' "$work/answer" ||
    fail "no JSON: $(cat "$work/answer")"
done
rejected 'no such place' 404 "the server has no 'cloud'" /v1/completions '{"model":"cloud","prompt":"a"}'
rejected prompt 400 "'prompt' must be text" /v1/completions '{"model":"edge","prompt":7}'
rejected messages 400 "'messages\\[1\\]' must have" /v1/chat/completions '{"model":"edge","messages":[{"role":"user","content":"a"},{}]}'
rejected 'no template' 400 'no chat template' /v1/chat/completions '{"model":"edge","messages":[{"role":"user","content":"a"}]}'
rejected 'no template, streamed' 400 'no chat template' /v1/chat/completions '{"model":"edge","stream":true,"messages":[{"role":"user","content":"a"}]}'
rejected temperature 400 "'temperature'" /v1/completions '{"model":"edge","prompt":"a","temperature":"hot"}'
rejected top_k 400 "'top_k' must be a whole number" /v1/completions '{"model":"edge","prompt":"a","top_k":1.5}'
rejected repetition 400 "'repetition_penalty' must be a number" /v1/completions '{"model":"edge","prompt":"a","repetition_penalty":0}'
rejected n 400 "'n' must be a number from 1 to 16" /v1/completions '{"model":"edge","prompt":"a","n":17}'
rejected tools 400 "'tools' belongs to chats" /v1/completions '{"model":"edge","prompt":"a","tools":[{}]}'
rejected 'a tool' 400 "'tools\\[0\\]' must have" /v1/chat/completions '{"model":"edge","messages":[{"role":"user","content":"a"}],"tools":[{}]}'
rejected 'no tools' 400 "'tool_choice' requires 'tools'" /v1/completions '{"model":"edge","prompt":"a","tool_choice":"required"}'
rejected format 400 "'response_format' must have" /v1/completions '{"model":"edge","prompt":"a","response_format":{"type":"xml"}}'
rejected schema 400 "edge: items: the schema's keyword 'contains' is not supported" /v1/completions \
  '{"model":"edge","prompt":"a","response_format":{"type":"json_schema","json_schema":{"schema":{"items":{"contains":{}}}}}}'
rejected logprobs 400 "'logprobs' must be a number from 0 to 20" /v1/completions '{"model":"edge","prompt":"a","logprobs":21}'
rejected echo 400 "'echo' is not supported" /v1/completions '{"model":"edge","prompt":"a","echo":true}'
rejected stop 400 "'stop' must be text" /v1/completions '{"model":"edge","prompt":"a","stop":[7]}'
rejected penalty 400 "'frequency_penalty' must be a number" /v1/completions '{"model":"edge","prompt":"a","frequency_penalty":3}'
rejected bias 400 "'logit_bias' has token 99999" /v1/completions '{"model":"edge","prompt":"a","logit_bias":{"99999":100}}'
rejected picture 400 "'messages\\[0\\].content\\[0\\]' has the type 'image_url', and only text is supported" /v1/chat/completions '{"model":"edge","messages":[{"role":"user","content":[{"type":"image_url"}]}]}'
rejected long 413 "longer than 'max_body'" /v1/completions "{\"prompt\":\"$(head -c 5000 /dev/zero | tr '\0' a)\"}"
rejected path 404 'no such path' /v1/images '{}'
rejected method 405 'wanted GET' /v1/models '{}'
grep -q '^Allow: GET, HEAD' "$work/head" || fail "405 without Allow: $(cat "$work/head")"
rejected 'half a token' 400 "'max_tokens' must be a whole number" /v1/completions '{"model":"edge","prompt":"a","max_tokens":1.5}'
# Web pages: of another host name with this address, of another site, and what they may send without asking.
rejected 'another host' 403 'another host' /v1/completions "{\"model\":\"edge\",$ask}" -H 'Host: evil.example:80'
rejected 'another site' 403 "'origins' does not list" /v1/completions "{\"model\":\"edge\",$ask}" -H 'Origin: https://evil.example'
type=text/plain
rejected 'plain text' 415 'application/json' /v1/completions "{\"model\":\"edge\",$ask}"
type=application/json
same 'its own page' "$wanted" "$(post /v1/completions "{\"model\":\"edge\",$ask}" -H "Origin: $url" | text)"
same 'asks first' 405 "$(curl -sS -o "$work/body" -w '%{http_code}' -X OPTIONS -H 'Origin: https://evil.example' "$url/v1/completions")"
same 'the health of any host' '{"status":"ok"}' "$(curl -sS -H 'Host: evil.example' "$url/healthz")"

# The cloud is that server; the router sends everything there.
echo "origins: [https://app.example]
hosts: [server.example]
cloud: { url: $edge/v1, model: edge }
router: { policy: cloud, pool: pool.db }" >"$work/cloud.yaml"
echo "edge: { bundle: story.llmpart, threads: 1 }" >>"$work/cloud.yaml"
serve cloud
same 'by the cloud' "$wanted" "$(post /v1/completions "{\"model\":\"auto\",$ask,\"keywords\":\"story\"}" | text)"
same 'route' cloud "$(route)"
same 'a page that is listed, and a host' "$wanted" \
  "$(post /v1/completions "{\"model\":\"auto\",$ask}" -H 'Origin: https://app.example' -H 'Host: server.example:80' | text)"
grep -q '^Access-Control-Allow-Origin: https://app.example' "$work/head" || fail "the page may not read: $(cat "$work/head")"
curl -sS -X OPTIONS -D "$work/head" -H 'Origin: https://app.example' "$url/v1/completions"
grep -q ' 204 ' "$work/head" && grep -q '^Access-Control-Allow-Headers: .*Content-Type' "$work/head" ||
  fail "the page may not send: $(cat "$work/head")"
same 'by the cloud, streamed' "$wanted" "$(post /v1/completions "{\"model\":\"cloud\",$ask,\"stream\":true}" | text)"
same 'by the edge' "$wanted" "$(post /v1/completions "{\"model\":\"edge\",$ask}" | text)"
same 'its route' edge "$(route)"
rejected model 400 "'model' is missing" /v1/completions '{"prompt":"a"}'
rejected "the cloud's refusal" 400 "cloud: .*logit_bias" /v1/completions '{"model":"cloud","prompt":"a","logit_bias":{"99999":1}}'
kill "$edge_pid"
wait "$edge_pid" || fail "the server ends with $?"
same 'the cloud is away' "$wanted" "$(post /v1/completions "{\"model\":\"auto\",$ask,\"stream\":true}" | text)"
same 'then the edge' edge "$(route)"
rejected 'the cloud is away, and was named' 503 'cloud: ' /v1/completions "{\"model\":\"cloud\",$ask}"
"$LLMPART" route --pool="$work/pool.db" --explain=1 >"$work/out" || fail 'nothing is in the pool'
grep -q '^cloud' "$work/out" || fail "the pool: $(cat "$work/out")"
grep -q '^X-Llmpart-Decision: ' "$work/head" && fail 'a decision of a failure' || :

# Only the router: decided here, sent by the client, told here.
decided=$(post /v1/router/decide '{"keywords":"code, long answer","offered":["edge"]}')
number=$(echo "$decided" | sed -n 's/^{"id":\([0-9]*\),"keywords":"code, long answer","route":"edge",.*/\1/p')
[ -n "$number" ] || fail "the router decides $decided"
same outcome "{\"id\":$number}" "$(post /v1/router/outcome "{\"id\":$number,\"reward\":12.5,\"good\":true}")"
curl -sS "$url/v1/router/explain/$number" | grep -q '"reward":12.5,"good":true}' || fail 'the outcome is not noted'
rejected 'told twice' 400 'has an outcome already' /v1/router/outcome "{\"id\":$number,\"reward\":1}"
rejected 'no such decision' 400 '99999' /v1/router/outcome '{"id":99999,"reward":1}'
rejected 'no reward' 400 "'reward' must be a number" /v1/router/outcome '{"id":1}'
rejected 'not offered' 400 "'offered' must be a list of places" /v1/router/decide '{"keywords":"a","offered":["moon"]}'
rejected 'no keywords' 400 "'keywords' must be text" /v1/router/decide '{}'
curl -sS "$url/metrics" | grep -q '^llmpart_fallbacks_total 1$' || fail 'the fallback is not counted'

# A client that leaves ends its answer.
long='{"model":"edge","prompt":"Once upon a time","max_tokens":1000,"stream":true,"temperature":1}'
curl -sS --max-time 0.3 --json "$long" "$url/v1/completions" >"$work/cut" 2>/dev/null || :
same 'after one that left' "$wanted" "$(post /v1/completions "{\"model\":\"edge\",$ask}" | text)"
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"

# The sampling of the model's files, which takes the likeliest token only, applies to requests without a temperature.
mkdir "$work/m"
ln -s "$default"/* "$work/m"
echo '{"do_sample": true, "temperature": 1.5, "top_k": 1, "repetition_penalty": 1.1}' >"$work/m/generation_config.json"
compile "$work/m/model.onnx" "$work/advised.llmpart"
grep -q "generation_config.json: note: 'repetition_penalty' is 1.1, which is not followed" "$work/err" || fail "no note: $(cat "$work/err")"
echo 'edge: { bundle: advised.llmpart, threads: 1 }' >"$work/advised.yaml"
serve advised
same 'as the files say' "$wanted" "$(post /v1/completions '{"model":"edge","prompt":"Once upon a time","max_tokens":12}' | text)"
[ "$(post /v1/completions "{$warm}" | text)" != "$wanted" ] || fail 'a given temperature does not count'
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"

# Clouds without an end: of comments, of one line, of events, of an error. Each has its limit, and clients that do not
# read do not keep the server from its end.
cat >"$work/cloud.pl" <<'END'
use IO::Socket::INET;
$SIG{PIPE} = 'IGNORE';
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 8) or die;
open my $port, '>', $ARGV[1]; print $port $listener->sockport, "\n"; close $port;
my %piece = (comments => ": wait\n\n", line => 'x' x 4096, error => 'x' x 4096,
  events => "data: {\"choices\":[{\"text\":\"word \"}]}\n\n" x 64);
while (my $client = $listener->accept) {
  next if fork;
  $client->autoflush(1);
  sysread $client, my $request, 65536;
  print $client 'HTTP/1.1 ', $ARGV[0] eq 'error' ? 500 : 200, " Words\r\nConnection: close\r\n\r\n";
  while (print $client $piece{$ARGV[0]}) { select undef, undef, undef, 0.1 if $ARGV[0] eq 'comments' }
  exit;
}
END
endless() { # endless KIND TIMEOUT: a cloud that answers so, and a server that asks it
  rm -f "$work/port"
  perl "$work/cloud.pl" "$1" "$work/port" &
  cloud=$! started="$started $!"
  await [ -s "$work/port" ]
  printf 'cloud: { url: "http://127.0.0.1:%s/v1", model: m, timeout: %s }\n' "$(cat "$work/port")" "$2" >"$work/endless.yaml"
  serve endless
}
for kind in 'comments made no progress for 1 s' 'line is too long \(HTTP status 200' 'events is too long \(HTTP status 200' \
  'error is too long \(HTTP status 500'; do
  case $kind in comments*) endless comments 1s ;; *) endless "${kind%% *}" 60s ;; esac
  rejected "endless ${kind%% *}" 503 "${kind#* }" /v1/completions '{"model":"cloud","prompt":"a","max_tokens":8}'
  if [ "${kind%% *}" = events ]; then # two clients that do not read when the server is told to end, and one that does
    for client in 1 2; do
      curl -sS --json '{"model":"cloud","prompt":"a","max_tokens":1024,"stream":true}' "$url/v1/completions" |
        { head -c 1 >"$work/first$client"; exec sleep 30; } &
      started="$started $!"
    done
    curl -sS --limit-rate 2M --json '{"model":"cloud","prompt":"a","max_tokens":1024,"stream":true}' "$url/v1/completions" >"$work/slow" &
    reader=$!
    await [ -s "$work/first1" ] && await [ -s "$work/first2" ] && await [ -s "$work/slow" ]
  fi
  kill -TERM "$pid"
  await eval '! kill -0 "$pid" 2>/dev/null' || fail "endless ${kind%% *}: the server does not end"
  wait "$pid" || fail "endless ${kind%% *}: the server ends with $?"
  kill "$cloud"
done
wait "$reader"
grep -q '"the server ends"' "$work/slow" || fail "the slow client's stream ends with $(tail -c 100 "$work/slow")"

# A pool that can grow no further: every request is answered, and the server says that it keeps no decisions.
printf 'edge: { bundle: story.llmpart, threads: 1 }\nrouter: { policy: edge, pool: full.db }\n' >"$work/full.yaml"
mkfifo "$work/full.fifo"
cat "$work/full.fifo" >"$work/full.log" &
(ulimit -f 160 && trap '' XFSZ && exec "$LLMPART" serve "$work/full.yaml" --listen=127.0.0.1:0) 2>"$work/full.fifo" &
pid=$! started="$started $!"
await listens "$work/full.log" || fail "with little room: $(cat "$work/full.log")"
same 'a pool with room' ready "$(readiness)"
ready='' answered=0
while [ "$answered" -lt 60 ] && [ "$ready" != degraded ]; do
  post /v1/completions '{"model":"auto","prompt":"Once","max_tokens":1}' >"$work/answer"
  [ "$(cat "$work/status")" = 200 ] || { fail "the pool is full: $(cat "$work/answer")"; break; }
  answered=$((answered + 1)) ready=$(readiness)
done
same 'a full pool' degraded "$ready"
same 'by the edge, with a full pool' "$wanted" "$(post /v1/completions "{\"model\":\"edge\",$ask}" | text)"
curl -sS "$url/metrics" | grep -q '^llmpart_not_kept_total [1-9]' || fail 'what is not kept is not counted'
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"

# Over IPv6. A socket of all addresses takes IPv4 as well, and wants a key.
if grep -q '^0\{31\}1 ' /proc/net/if_inet6 2>/dev/null; then
  serve edge '[::1]'
  same 'IPv6' "$wanted" "$(post /v1/completions "{\"model\":\"edge\",$ask}" | text)"
  kill -TERM "$pid"
  wait "$pid" || fail "the server ends with $?"
  printf 'key_env: SERVE_KEY\n' | cat "$work/edge.yaml" - >"$work/all.yaml"
  SERVE_KEY=secret serve all '[::]'
  for host in '[::1]' 127.0.0.1; do
    url="http://$host:${url##*:}"
    same "$host" "$wanted" "$(post /v1/completions "{\"model\":\"edge\",$ask}" -H 'Authorization: Bearer secret' | text)"
  done
  kill -TERM "$pid"
  wait "$pid" || fail "the server ends with $?"
else
  echo 'serve: skipped: IPv6, which this machine lacks'
fi

# A worker that is killed comes back, and leaves no zombie; the server tells when it takes requests.
compile "$default/model.onnx" "$work/split.llmpart" --tokenizer="$default/tokenizer.json" --device=jetson-nano --cloud=v100s --link=lan \
  --march=native --scheduler=cut --cut=1
printf 'edge: { bundle: split.llmpart, threads: 1 }\n' >"$work/split.yaml"
serve split
children() { cat /proc/"$pid"/task/*/children; }
is_ready() { [ "$(readiness)" = ready ]; }
other_child() { case " $(children) " in *" $first "* | '  ') false ;; esac; }
same 'split' "$wanted" "$(post /v1/completions "{\"model\":\"edge\",$ask}" | text)"
for _ in 1 2; do
  first=$(children | tr -d ' ')
  kill -9 "$first"
  await other_child || fail "no worker comes after $first: $(children)"
  await is_ready || fail "after a killed worker: $(curl -sS "$url/readyz")"
  same 'with another worker' "$wanted" "$(post /v1/completions "{\"model\":\"edge\",$ask}" | text)"
  same 'one worker' 1 "$(children | wc -w | tr -d ' ')"
done

# Requests share passes, and texts that lose their worker go on at its successor, with the tokens of a quiet run.
tale() { # tale SEED FILE
  curl -sS -N --max-time 120 --json "{\"model\":\"edge\",\"prompt\":\"Once upon a time there was a dog who\",\"max_tokens\":400,\"temperature\":1,\"seed\":$1,\"stream\":true}" \
    "$url/v1/completions" >"$work/$2$1"
}
seeds='1 2 3 4 5 6' waiting=''
for seed in $seeds; do tale "$seed" quiet; done
for seed in $seeds; do
  : >"$work/tale$seed"
  tale "$seed" tale &
  waiting="$waiting $!"
done
until [ -s "$work/tale1" ]; do :; done
kill -STOP "$pid" # between two tokens
grep -q DONE "$work/tale6" && echo 'serve: skipped: the answers were complete before their worker could end'
kill -9 "$(children | tr -d ' ')"
kill -CONT "$pid"
# shellcheck disable=SC2086 # a list of numbers
wait $waiting
for seed in $seeds; do
  same "continued $seed" "$(sed -n 's/^data: //p' "$work/quiet$seed" | text)" "$(sed -n 's/^data: //p' "$work/tale$seed" | text)"
  same "the end of $seed" 'data: [DONE]' "$(grep '^data' "$work/tale$seed" | tail -n 1)"
done
await is_ready || fail "after the worker was lost under load: $(curl -sS "$url/readyz")"

# A stopped worker serves again when it continues, also a request that came meanwhile and has no other place; one that
# stays silent is replaced.
first=$(children | tr -d ' ')
sleep 2.5 # an idle worker gives signs of life, and stays up
same 'an idle worker' ready "$(readiness)"
is_down() { [ "$(readiness)" != ready ]; }
kill -STOP "$first"
await is_down || fail "with a stopped worker: $(curl -sS "$url/readyz")"
post /v1/completions "{\"model\":\"edge\",$ask}" >"$work/awaited" &
waits=$!
sleep 0.2
kill -CONT "$first"
wait "$waits"
same 'during a stopped worker' "$wanted" "$(text <"$work/awaited")"
await is_ready || fail "after a stopped worker: $(curl -sS "$url/readyz")"
same 'by a worker that continues' "$wanted" "$(post /v1/completions "{\"model\":\"edge\",$ask}" | text)"
kill -STOP "$first"
await other_child || fail "no worker replaces $first: $(children)"
await is_ready || fail "after a worker that hung: $(curl -sS "$url/readyz")"
same 'by its successor' "$wanted" "$(post /v1/completions "{\"model\":\"edge\",$ask}" | text)"
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"

# An answer that takes longer than it may fails; a stream ends with an error event.
printf 'edge: { bundle: story.llmpart, threads: 1, total: 5ms }\n' >"$work/brief.yaml"
serve brief
rejected 'too slow' 503 'the answer has taken more than 0.005 s' /v1/completions '{"model":"edge","prompt":"Once","max_tokens":1000}'
post /v1/completions '{"model":"edge","prompt":"Once","max_tokens":1000,"stream":true}' >"$work/answer"
grep -q 'the answer has taken more than 0.005 s' "$work/answer" || fail "a stream without end: $(cat "$work/answer")"
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"

# Keys.
printf 'key_env: SERVE_KEY\nedge: { bundle: story.llmpart, threads: 1 }\n' >"$work/key.yaml"
SERVE_KEY=secret
export SERVE_KEY
serve key
rejected 'no key' 401 'key is missing or wrong' /v1/completions "{\"model\":\"edge\",$ask}"
rejected 'wrong key' 401 'key is missing or wrong' /v1/completions "{\"model\":\"edge\",$ask}" -H 'Authorization: Bearer secreT'
same 'with the key' "$wanted" "$(post /v1/completions "{\"model\":\"edge\",$ask}" -H 'Authorization: Bearer secret' | text)"
unset SERVE_KEY

# Faults of the file.
config() { printf '%b' "$1" >"$work/bad.yaml"; }
config 'listen: 127.0.0.1:0\n'
refused 'no place' "bad.yaml:1:1: error: the server requires a place: 'edge', 'split', 'cloud' or 'embeddings'" "$LLMPART" serve "$work/bad.yaml"
config 'edge: { bundl: x }\n'
refused 'key' "bad.yaml:1:9: error: unknown key 'bundl'" "$LLMPART" serve "$work/bad.yaml"
config 'edge: { bundle: none.llmpart }\n'
refused 'no bundle' 'none.llmpart' "$LLMPART" serve "$work/bad.yaml"
config 'cloud: { url: ftp://x, model: m }\n'
refused 'url' "bad.yaml:1:8: error: 'url' is 'ftp://x'" "$LLMPART" serve "$work/bad.yaml"
config 'key_env: NO_SUCH_KEY\ncloud: { url: http://x, model: m }\n'
refused 'no such variable' "the environment has no 'NO_SUCH_KEY'" "$LLMPART" serve "$work/bad.yaml"
config 'listen: 0.0.0.0:0\ncloud: { url: http://x, model: m }\n'
refused 'off loopback' 'bad.yaml:1:9: error: .* is not a loopback address, so a key is required' "$LLMPART" serve "$work/bad.yaml"
config 'listen: "[::]:0"\ncloud: { url: http://x, model: m }\n'
refused 'off loopback, by IPv6' 'bad.yaml:1:9: error: .* is not a loopback address, so a key is required' "$LLMPART" serve "$work/bad.yaml"
config 'listen: "[::g]:0"\ncloud: { url: http://x, model: m }\n'
refused 'no address' "bad.yaml:1:9: error: '\[::g\]:0' is no address" "$LLMPART" serve "$work/bad.yaml"
config 'listen: nosuch\ncloud: { url: http://x, model: m }\n'
refused 'no port' "bad.yaml:1:9: error: 'listen': 'nosuch' is no address" "$LLMPART" serve "$work/bad.yaml"
config 'cloud: { url: http://x, model: m }\nrouter: { policy: moon }\n'
refused 'policy' "bad.yaml:2:9: error: there is no policy 'moon'" "$LLMPART" serve "$work/bad.yaml"
finish
