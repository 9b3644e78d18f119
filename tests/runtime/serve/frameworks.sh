# Frameworks from PyPI that ask through OpenAI's client: answers in the form of a Pydantic model, tools and streams.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
python=${LP_PYTHON:-python3}
"$python" -c 'import instructor, langchain_openai, pydantic_ai, llm' 2>/dev/null ||
  skip "$python lacks instructor, langchain_openai, pydantic_ai or llm (tests/runtime/serve/requirements.txt)"
mkdir "$work/model"
cp "$default/tokenizer.json" "$work/model"
cat >"$work/model/tokenizer_config.json" <<'END'
{"chat_template": "{% if tools %}Tools: {{ tools | tojson }}\n{% endif %}{% for message in messages %}{{ message.role + ': ' + (message.content or '') }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"}
END
compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$work/model/tokenizer.json" --device=host || finish
echo 'edge: { bundle: story.llmpart, threads: 1, model: story }' >"$work/story.yaml"
serve story || finish
"$python" -W ignore "$LP_SOURCE/tests/runtime/serve/frameworks.py" "$url" >"$work/found" 2>"$work/err" ||
  fail "$(cat "$work/found"; tail -n 3 "$work/err")"
mkdir "$work/llm"
cat >"$work/llm/extra-openai-models.yaml" <<END
- { model_id: story, model_name: story, api_base: "$url/v1", supports_schema: true }
END
wanted=$(curl -sS --json '{"messages":[{"role":"user","content":"Once upon"}],"max_tokens":12,"temperature":0}' "$url/v1/chat/completions" |
  "$python" -c 'import json, sys; print(json.load(sys.stdin)["choices"][0]["message"]["content"])')
ask_llm() { # ask_llm OPTION ...: the command of PyPI's llm, without plugins of other models
  LLM_LOAD_PLUGINS='' LLM_USER_PATH="$work/llm" OPENAI_API_KEY=none "$python" -W ignore -m llm -m story 'Once upon' -o temperature 0 -o max_tokens "$@" 2>"$work/err"
}
for stream in '' --no-stream; do
  # shellcheck disable=SC2086 # an option, or none
  same "llm $stream" "$wanted" "$(ask_llm 12 $stream)"
done
ask_llm 60 --schema '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}' |
  "$python" -c 'import json, sys; assert list(json.load(sys.stdin)) == ["n"]' || fail "llm --schema: $(tail -n 3 "$work/err")"
finish
