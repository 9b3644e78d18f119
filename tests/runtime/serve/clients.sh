# PyPI's openai and litellm against a running server: every member of requests and answers that they know.
. "$LP_SOURCE/tests/e2e/lib.sh"
python=${LP_PYTHON:-python3}
LITELLM_LOCAL_MODEL_COST_MAP=True "$python" -c 'import openai, litellm, jsonschema, tokenizers' 2>/dev/null ||
  skip "$python lacks openai, litellm, jsonschema or tokenizers (tests/runtime/serve/requirements.txt)"
default=$LP_SOURCE/examples/default-model
mkdir "$work/model"
cp "$default/model.onnx" "$default/tokenizer.json" "$work/model"
cat >"$work/model/tokenizer_config.json" <<'END'
{"chat_template": "{% if tools %}Tools: {{ tools | tojson }}\n{% endif %}{% for message in messages %}{% if message.tool_calls %}Calls: {{ message.tool_calls[0].function.arguments.city }}\n{% endif %}{{ message.role }}: {{ message.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"}
END
compile "$work/model/model.onnx" "$work/story.llmpart" --tokenizer="$work/model/tokenizer.json" --device=host || finish
compile "$work/model/model.onnx" "$work/split.llmpart" --tokenizer="$work/model/tokenizer.json" --device=jetson-nano \
  --cloud=v100s --link=lan --march=native --scheduler=cut --cut=1 || finish
wanted=$("$LLMPART" run "$work/story.llmpart" --prompt='Once upon a time' -n 12 --threads=1)
echo 'edge: { bundle: story.llmpart, threads: 1, model: story }' >"$work/edge.yaml"
"$LLMPART" serve "$work/edge.yaml" --listen=127.0.0.1:0 2>"$work/log" &
pid=$! started="$started $!"
listens() {
  url=$(sed -n 's/^listening on /http:\/\//p' "$work/log")
  [ -n "$url" ]
}
await listens || fail "the server does not start: $(cat "$work/log")"
"$python" "$LP_SOURCE/tests/runtime/serve/clients.py" "$url" story "$wanted" >"$work/found" 2>"$work/err" ||
  fail "$(cat "$work/found"; tail -n 3 "$work/err")"

# The same through a server to which that one is the cloud: nothing is lost on the way.
printf 'cloud: { url: "%s/v1", model: story }\nedge: { bundle: story.llmpart, threads: 1, model: other }\n' "$url" >"$work/cloud.yaml"
"$LLMPART" serve "$work/cloud.yaml" --listen=127.0.0.1:0 2>"$work/log" &
second=$! started="$started $!"
url=''
await listens || fail "the second server does not start: $(cat "$work/log")"
"$python" "$LP_SOURCE/tests/runtime/serve/clients.py" "$url" story "$wanted" >"$work/found" 2>"$work/err" ||
  fail "through another server: $(cat "$work/found"; tail -n 3 "$work/err")"

# The same from a split, whose worker has the logits.
printf 'split: { bundle: split.llmpart, threads: 1, model: story }\nedge: { bundle: story.llmpart, threads: 1, model: other }\n' >"$work/split.yaml"
"$LLMPART" serve "$work/split.yaml" --listen=127.0.0.1:0 2>"$work/log" &
third=$! started="$started $!"
url=''
await listens || fail "the third server does not start: $(cat "$work/log")"
"$python" "$LP_SOURCE/tests/runtime/serve/clients.py" "$url" story "$wanted" >"$work/found" 2>"$work/err" ||
  fail "from a split: $(cat "$work/found"; tail -n 3 "$work/err")"
kill -TERM "$pid" "$second" "$third"
wait "$pid" || fail "the server ends with $?"
finish
