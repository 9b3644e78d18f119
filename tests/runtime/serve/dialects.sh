# PyPI's clients of OpenAI's responses, of Anthropic's messages and of Ollama.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
python=${LP_PYTHON:-python3}
"$python" -c 'import openai, anthropic, ollama' 2>/dev/null ||
  skip "$python lacks openai, anthropic or ollama (tests/runtime/serve/requirements.txt)"
mkdir "$work/model"
cp "$default/tokenizer.json" "$work/model"
cat >"$work/model/tokenizer_config.json" <<'END_OF_FILE'
{"chat_template": "{% if tools %}Tools: {{ tools | tojson }}\n{% endif %}{% for message in messages %}{% for call in message.tool_calls or [] %}{{ call.function.name }} {{ call.function.arguments.city }}\n{% endfor %}{{ message.role + ': ' + message.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"}
END_OF_FILE
compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$work/model/tokenizer.json" --device=host || finish
compile "$default/model.onnx" "$work/plain.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
echo 'edge: { bundle: plain.llmpart, threads: 1, model: plain }' >"$work/plain.yaml"
serve plain || finish
plain=$url
export ONE=one-secret TWO=two-secret
echo 'edge: { bundle: story.llmpart, threads: 1, model: story }
keys: [{ name: one, key_env: ONE }, { name: two, key_env: TWO }]
log: log' >"$work/story.yaml"
serve story || finish
"$python" "$LP_SOURCE/tests/runtime/serve/dialects.py" "$url" story "$plain" "$ONE" "$TWO" >"$work/found" 2>"$work/err" ||
  fail "$(cat "$work/found"; tail -n 3 "$work/err")"
for path in /v1/responses /v1/messages /v1/messages/count_tokens /api/chat /api/generate /api/show; do
  same "$path without a key" 401 "$(curl -sS -o "$work/body" -w '%{http_code}' --json '{}' "$url$path")"
done
grep -q '^{"error":"the key is missing or wrong"}' "$work/body" || fail "Ollama's error: $(cat "$work/body")"
curl -sS -H "Authorization: Bearer $ONE" "$url/metrics" >"$work/metrics"
grep -q '^llmpart_requests_total{route="edge",outcome="failed"} 0$' "$work/metrics" ||
  fail 'requests failed'
finish
