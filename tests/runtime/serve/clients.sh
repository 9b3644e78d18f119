# PyPI's openai and litellm against a running server: every member of requests and answers that they know. The long part
# asks a split, whose worker has the logits; the soak an edge, and that edge through another server.
. "$LP_SOURCE/tests/e2e/lib.sh"
python=${LP_PYTHON:-python3}
LITELLM_LOCAL_MODEL_COST_MAP=True "$python" -c 'import openai, litellm, jsonschema, tokenizers' 2>/dev/null ||
  skip "$python lacks openai, litellm, jsonschema or tokenizers (tests/runtime/serve/requirements.txt)"
default=$LP_SOURCE/examples/default-model
mkdir "$work/model"
cp "$default/model.onnx" "$default/tokenizer.json" "$work/model"
cat >"$work/model/tokenizer_config.json" <<'END'
{"chat_template": "{% if tools %}Tools: {{ tools | tojson }}\n{% endif %}{% for message in messages %}{% if message.tool_calls %}Calls: {{ message.tool_calls[0].function.arguments.city }}\n{% endif %}{{ message.role + ': ' + message.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"}
END
compile "$work/model/model.onnx" "$work/story.llmpart" --tokenizer="$work/model/tokenizer.json" --device=host || finish
compile "$work/model/model.onnx" "$work/split.llmpart" --tokenizer="$work/model/tokenizer.json" --device=jetson-nano \
  --cloud=v100s --link=lan --march=native --scheduler=cut --cut=1 || finish
wanted=$("$LLMPART" run "$work/story.llmpart" --prompt='Once upon a time' -n 12 --threads=1)
asks() { # asks WHAT: the clients ask a new server of $work/serve.yaml, at $url
  "$LLMPART" serve "$work/serve.yaml" --listen=127.0.0.1:0 2>"$work/log" &
  pid=$! started="$started $!" url=''
  await listens || fail "$1: the server does not start: $(cat "$work/log")"
  "$python" "$LP_SOURCE/tests/runtime/serve/clients.py" "$url" story "$wanted" >"$work/found" 2>"$work/err" ||
    fail "$1: $(cat "$work/found"; tail -n 3 "$work/err")"
}
listens() {
  url=$(sed -n 's/^listening on /http:\/\//p' "$work/log")
  [ -n "$url" ]
}
if part soak; then
  echo 'edge: { bundle: story.llmpart, threads: 1, model: story }' >"$work/serve.yaml"
  asks 'an edge'
  printf 'cloud: { url: "%s/v1", model: story }\nedge: { bundle: story.llmpart, threads: 1, model: other }\n' "$url" >"$work/serve.yaml"
  asks 'an edge through another server'
fi
if part long; then
  printf 'split: { bundle: split.llmpart, threads: 1, model: story }\nedge: { bundle: story.llmpart, threads: 1, model: other }\n' >"$work/serve.yaml"
  asks 'a split'
fi
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"
finish
