# SIGHUP reads the configuration again: for requests to come, all of it or nothing, and without a lost request.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
export OLD=old-secret KEPT=kept-secret
printf 'new-secret\r\n' >"$work/new.key"
times=0
reload() { # reload [PATTERN]: the server says this after SIGHUP, or that it has read the file
  before=$(grep -c 'SIGHUP: ' "$work/live.log")
  kill -HUP "$pid"
  said() { [ "$(grep -c 'SIGHUP: the configuration' "$work/live.log")" -gt "$times" ]; }
  await said || fail "nothing is said of SIGHUP: $(cat "$work/live.log")"
  times=$(grep -c 'SIGHUP: the configuration' "$work/live.log")
  tail -n +"$((before + 2))" "$work/live.log" | grep -q -- "${1-was read again}" || fail "wanted '${1-was read again}': $(tail -n 4 "$work/live.log")"
}
code() { # code KEY [BODY]: the status of a request
  post /v1/completions "${2-$ask}" -H "Authorization: Bearer $1" >/dev/null
  cat "$work/status"
}
words='Once upon a time there was a little girl who lived in a small house near the wood with her mother and her father and a dog and a cat and'
ask='{"model":"edge","prompt":"Once","max_tokens":4,"temperature":0}'
long="{\"model\":\"edge\",\"prompt\":\"$words $words\",\"max_tokens\":2,\"temperature\":0}"
cached() { post /v1/completions "$long" -H "Authorization: Bearer $1" | sed 's/.*"cached_tokens":\([0-9]*\).*/\1/'; }

cat >"$work/live.yaml" <<'END'
edge: { bundle: story.llmpart, threads: 1, parallel: 4, queue: 4 }
keys: [{ name: old, key_env: OLD }, { name: kept, key_env: KEPT, requests_per_minute: 5 }]
router: { policy: rule, pool: pool.db }
log: first.log
END
serve live
same 'the old key' 200 "$(code $OLD)"
same 'a key that is not there yet' 401 "$(code new-secret)"
for number in 1 2 3 4 5; do same "kept $number" 200 "$(code $KEPT)"; done
same 'beyond the limit' 429 "$(code $KEPT)"
cached $OLD >/dev/null
[ "$(cached $OLD)" -ge 32 ] || fail 'the words of the old key are not kept'
id=$(post /v1/responses '{"model":"edge","input":"Hello","max_output_tokens":2}' -H "Authorization: Bearer $OLD" | sed -n 's/.*"id":"\(resp_[^"]*\)".*/\1/p' | head -n 1)

# A stream that began under the old key, the old file and the old place ends under them.
stream='{"model":"edge","prompt":"Once upon a time","max_tokens":400,"temperature":0,"stream":true,"logit_bias":{"0":-100}}'
curl -sSN -d "$stream" -H "Content-Type: $type" -H "Authorization: Bearer $OLD" --limit-rate 4k "$url/v1/completions" >"$work/stream" 2>"$work/err" &
client=$!
begins() { [ -s "$work/stream" ]; }
await begins || fail 'the stream does not begin'

# The new key stands where the old one stood, and neither has its rows nor its conversations.
cat >"$work/live.yaml" <<'END'
edge: { bundle: story.llmpart, threads: 1, parallel: 4, queue: 5 }
keys: [{ name: new, key_file: new.key }, { name: kept, key_env: KEPT, requests_per_minute: 600, parallel: 1 }]
router: { policy: rule, pool: pool.db }
max_tokens: 3
log: second.log
END
reload "these changed: 'edge'"
same 'the old key after it is gone' 401 "$(code $OLD)"
same 'the new key' 200 "$(code new-secret)"
same 'rows of another key' 0 "$(cached new-secret)"
post /v1/responses "{\"model\":\"edge\",\"input\":\"Go on\",\"previous_response_id\":\"$id\"}" -H 'Authorization: Bearer new-secret' >"$work/answer"
grep -q 'names no answer that is kept' "$work/answer" || fail "a conversation of another key: $(cat "$work/answer")"
same 'a limit that is higher now' 200 "$(code $KEPT)"
same 'more answers than there may be now' 400 "$(code $KEPT '{"model":"edge","prompt":"Once","n":2,"max_tokens":2}')"
post /v1/completions "$ask" -H 'Authorization: Bearer new-secret' | grep -q '"completion_tokens":3' || fail 'max_tokens is not 3'
wait "$client" || fail "the stream ends: $(cat "$work/err")"
grep -q '^data: \[DONE\]' "$work/stream" || fail 'the stream is cut'
same 'tokens of the stream, and its end' 401 "$(grep -c '"text"' "$work/stream")"
grep -q '"stream":true' "$work/first.log" || fail 'the stream is not in the log that it began with'
grep -q '"key":"new"' "$work/second.log" || fail 'the second log'
grep -q '"key":"new"' "$work/first.log" && fail 'the first log goes on'
curl -sS "$url/metrics" -H 'Authorization: Bearer new-secret' >"$work/metrics"
grep -q 'llmpart_limited_total{key="kept"}' "$work/metrics" || fail 'what keys have used is not kept'
grep -q 'key="old"' "$work/metrics" && fail 'the old key is counted'

# A bad file changes nothing.
cp "$work/live.yaml" "$work/good.yaml"
for line in 'max_tokens: [' 'nonsense: 1' 'max_tokens: 0' 'edge: { bundle: none.llmpart }' 'split: { bundle: none.llmpart }' 'cert: none.pem' 'traces: { url: x }'; do
  { grep -v "^${line%%:*}:" "$work/good.yaml" && echo "$line"; } >"$work/live.yaml"
  reload 'the configuration stays as it was'
  grep -q "$work/.*: error: " "$work/live.log" || fail "$line: no error with its place: $(tail -n 3 "$work/live.log")"
  same "with '$line'" 200 "$(code new-secret)"
done
grep -q "live.yaml:[0-9]*:[0-9]*: error: .*nonsense" "$work/live.log" || fail "the place of an error: $(cat "$work/live.log")"
grep -v '^keys' "$work/good.yaml" | sed '1i keys: [{ name: a, key_env: OLD, key_file: new.key }]' >"$work/live.yaml"
reload 'the configuration stays as it was'
printf 'two\nlines\n' >"$work/new.key"
cp "$work/good.yaml" "$work/live.yaml"
reload 'the configuration stays as it was'
grep -q "'key_file': 'new.key' does not hold one line" "$work/live.log" || fail 'a key of two lines'
echo new-secret >"$work/new.key"

# A place comes and goes; the address cannot change.
printf 'cloud: { url: "http://127.0.0.1:9/v1", model: far, timeout: 1s }\n' | cat "$work/good.yaml" - >"$work/live.yaml"
reload "these changed: 'cloud'"
curl -sS "$url/v1/models" -H 'Authorization: Bearer new-secret' | grep -q '"far"' || fail 'the cloud is not there'
cp "$work/good.yaml" "$work/live.yaml"
reload "these changed: 'cloud'"
curl -sS "$url/v1/models" -H 'Authorization: Bearer new-secret' | grep -q '"far"' && fail 'the cloud is still there'
printf 'cert: %s\ncert_key: %s\n' "$work/cert.pem" "$work/key.pem" | cat "$work/good.yaml" - >"$work/live.yaml"
if openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=a -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null; then
  chmod 600 "$work/key.pem"
  reload "TLS ('cert') stays off"
  same 'without TLS' 200 "$(code new-secret)"
fi

# Clients that ask all the time lose no request.
rounds=100
sed 's/requests_per_minute: 600, parallel: 1/requests_per_minute: 100000/; s/queue: 5/queue: 60/' "$work/good.yaml" >"$work/live.yaml"
reload "these changed: 'edge'"
sed 's/queue: 60/queue: 61/; s/parallel: 4/parallel: 5/' "$work/live.yaml" >"$work/other.yaml"
cp "$work/live.yaml" "$work/one.yaml"
wanted=$(post /v1/completions "$ask" -H 'Authorization: Bearer new-secret' | text)
load() { # load KEY: asks until $work/end is there; prints what is not the right answer
  until [ -e "$work/end" ]; do
    curl -sS --max-time 60 -H "Content-Type: $type" -H "Authorization: Bearer $1" -d "$ask" "$url/v1/completions" >"$work/load.$1.$2" 2>&1
    [ "$(text <"$work/load.$1.$2")" = "$wanted" ] || cat "$work/load.$1.$2"
    echo >>"$work/count.$1.$2"
  done
}
for number in 1 2; do
  load $KEPT $number >"$work/wrong.$number" &
  clients="${clients-} $!"
  load new-secret $number >"$work/wrong.new.$number" &
  clients="$clients $!"
done
round=0
while [ "$round" -lt "$rounds" ]; do
  round=$((round + 1))
  if [ $((round % 20)) = 10 ]; then cp "$work/other.yaml" "$work/next.yaml"; else cp "$work/one.yaml" "$work/next.yaml"; fi
  mv "$work/next.yaml" "$work/live.yaml" # a file that is half written is a bad file
  kill -HUP "$pid" || fail "it ended at SIGHUP $round"
  sleep 0.06
done
touch "$work/end"
# shellcheck disable=SC2086 # a list of numbers
wait $clients
same 'wrong answers' '' "$(cat "$work"/wrong.*)"
[ "$(cat "$work"/count.* | wc -l)" -ge 40 ] || fail "the clients asked $(cat "$work"/count.* | wc -l) times"
[ "$(grep -c 'SIGHUP: the configuration was read again' "$work/live.log")" -ge $((rounds / 2)) ] || fail 'it did not read the file'
same 'descriptors of places that are gone' 1 "$(find /proc/"$pid"/fd -lname "*second.log" | wc -l)"
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"
finish
