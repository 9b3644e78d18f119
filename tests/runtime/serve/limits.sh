# Limits of keys: 429 with Retry-After, for curl and for OpenAI's client.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
export APP=app-secret TEST=test-secret
cat >"$work/keys.yaml" <<'END'
edge: { bundle: story.llmpart, threads: 1 }
keys:
  - { name: app, key_env: APP, requests_per_minute: 2 }
  - { name: test, key_env: TEST, tokens_per_minute: 10, parallel: 1 }
log: requests.log
END
serve keys
ask='{"model":"edge","prompt":"Once upon a time","max_tokens":12,"temperature":0}'
app="Authorization: Bearer $APP" test="Authorization: Bearer $TEST"
rejected 'no key' 401 'the key is missing or wrong' /v1/completions "$ask"
rejected 'a wrong key' 401 'the key is missing or wrong' /v1/completions "$ask" -H 'Authorization: Bearer app-secre'
for number in 1 2; do
  post /v1/completions "$ask" -H "$app" >/dev/null
  same "request $number" 200 "$(cat "$work/status")"
done
rejected 'a third request' 429 'the key has used its requests of this minute' /v1/completions "$ask" -H "$app"
retry=$(sed -n 's/^Retry-After: \([0-9]*\).*/\1/p' "$work/head")
[ "${retry:-0}" -ge 1 ] && [ "${retry:-0}" -le 30 ] || fail "Retry-After: '$retry'"
grep -q '"type":"rate_limit_error"' "$work/answer" || fail "type: $(cat "$work/answer")"
post /v1/completions "$ask" -H "$test" >/dev/null
same 'another key' 200 "$(cat "$work/status")"
rejected 'tokens' 429 'the key has used its tokens of this minute' /v1/completions "$ask" -H "$test"
curl -sS "$url/v1/models" -H "$app" | grep -q '"edge"' || fail 'a limit counts answers only'
curl -sS "$url/metrics" -H "$app" >"$work/metrics"
grep -qx 'llmpart_limited_total{key="app"} 1' "$work/metrics" || fail 'no count of refused requests'
grep -qx 'llmpart_key_requests{key="test"} 0' "$work/metrics" || fail 'a request stays counted'
same 'keys in the log' 'app app test' "$(sed -n 's/.*"key":"\([a-z]*\)".*/\1/p' "$work/requests.log" | xargs)"
grep -q secret "$work/requests.log" "$work/metrics" && fail 'a secret is told'

python=${LP_PYTHON:-python3}
if "$python" -c 'import openai' 2>/dev/null; then
  "$python" - "$url" "$APP" >"$work/found" 2>&1 <<'END' || fail "OpenAI's client: $(cat "$work/found")"
import sys, openai
client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key=sys.argv[2], max_retries=0)
try:
    for _ in range(4):  # half a minute after the last one, the key may send one more
        client.completions.create(model="edge", prompt="Once", max_tokens=2)
    sys.exit("it was not limited")
except openai.RateLimitError as error:
    if not 1 <= int(error.response.headers["retry-after"]) <= 30:
        sys.exit(f"retry-after: {error.response.headers['retry-after']}")
END
fi
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"

printf 'edge: { bundle: story.llmpart }\nkeys: [{ name: a, key_env: APP }, { name: b, key_env: APP }]\n' >"$work/twice.yaml"
"$LLMPART" serve "$work/twice.yaml" 2>"$work/err" && fail 'one key of two names is taken'
grep -q "'b' is the key of another entry too" "$work/err" || fail "$(cat "$work/err")"
finish
