# The OpenAI client's own tests of its API, from its source distribution, against a running server, as far as that has
# what they ask for: it stores no answers and deletes no models, and refuses the members that it lacks.
#   pip download openai --no-deps --no-binary openai && tar xzf openai-*.tar.gz
#   LP_OPENAI_SOURCE=$PWD/openai-VERSION ctest --test-dir build/release -R serve_upstream
. "$LP_SOURCE/tests/e2e/lib.sh"
python=${LP_PYTHON:-python3}
[ -d "${LP_OPENAI_SOURCE:-/nonexistent}/tests/api_resources" ] || skip "LP_OPENAI_SOURCE is no source distribution of PyPI's openai"
"$python" -c 'import openai, pytest, pytest_asyncio, rich, respx' 2>/dev/null || skip "$python lacks openai or what its tests need"
tests=$LP_OPENAI_SOURCE/tests/api_resources
mkdir "$work/model"
cp "$LP_SOURCE/examples/default-model/model.onnx" "$LP_SOURCE/examples/default-model/tokenizer.json" "$work/model"
printf '%s\n' '{"chat_template": "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"}' >"$work/model/tokenizer_config.json"
compile "$work/model/model.onnx" "$work/story.llmpart" --tokenizer="$work/model/tokenizer.json" --device=host || finish
serve() { # serve NAME: sets $url
  "$LLMPART" serve "$work/$1.yaml" --listen=127.0.0.1:0 2>"$work/$1.log" &
  started="$started $!"
  await grep -q 'listening on' "$work/$1.log" || fail "$1: $(cat "$work/$1.log")"
  url=$(sed -n 's/^listening on /http:\/\//p' "$work/$1.log")
}
# The tests name models of OpenAI: one for chats, and one for text, which the second server has.
model_of_chats=$(sed -n 's/.*model="\([^"]*\)".*/\1/p' "$tests/chat/test_completions.py" | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }')
printf 'edge: { bundle: story.llmpart, threads: 1, model: gpt-3.5-turbo-instruct }\n' >"$work/text.yaml"
serve text
printf 'max_tokens: 16\nedge: { bundle: story.llmpart, threads: 1, model: "%s" }\ncloud: { url: "%s/v1", model: gpt-3.5-turbo-instruct }\n' \
  "$model_of_chats" "$url" >"$work/both.yaml"
serve both
(cd "$LP_OPENAI_SOURCE" && TEST_API_BASE_URL="$url/v1" "$python" -m pytest -q -o addopts=--tb=short -p no:cacheprovider tests/api_resources/chat/test_completions.py \
  tests/api_resources/test_completions.py tests/api_resources/test_models.py \
  -k '(create and not all_params) or (Models and list)') >"$work/out" 2>&1 || fail "$(grep -E '^(E  |FAILED)' "$work/out" | head -n 10; tail -n 3 "$work/out")"
passed=$(sed -n 's/^\([0-9]*\) passed.*/\1/p' "$work/out")
[ "${passed:-0}" -ge 40 ] || fail "only ${passed:-no} tests ran: $(tail -n 3 "$work/out")"
finish
