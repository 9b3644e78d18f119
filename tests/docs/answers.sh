# Every answer of `llmpart serve` is valid by docs/schemas/serve/answers.json, which allows no other members. Python's
# jsonschema judges.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
python=''
for candidate in ${LP_PYTHON:+"$LP_PYTHON"} python3 /usr/bin/python3; do
  [ -n "$python" ] || ! "$candidate" -c 'from jsonschema import Draft202012Validator' 2>/dev/null || python=$candidate
done
[ -n "$python" ] || skip "the Debian package 'python3-jsonschema' is not installed"
mkdir "$work/model"
cp "$default/model.onnx" "$default/tokenizer.json" "$work/model"
printf '%s\n' '{"chat_template": "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"}' >"$work/model/tokenizer_config.json"
compile "$work/model/model.onnx" "$work/story.llmpart" --tokenizer="$work/model/tokenizer.json" --device=host || finish
compile "$LP_SOURCE/tests/models/embeddings/bert-mean/onnx/model.onnx" "$work/vectors.llmpart" --device=host || finish
printf 'edge: { bundle: story.llmpart, threads: 1, model: story }
embeddings: { bundle: vectors.llmpart, model: vectors, threads: 1 }
prediction: { rate: 1000 }
router: { policy: edge, pool: pool.db }\n' >"$work/server.yaml"
serve server

answer() { # answer NAME PATH [BODY]
  printf '%s ' "$1"
  if [ $# = 3 ]; then post "$2" "$3"; else curl -sS "$url$2"; fi
  echo
}
chunks() { # chunks NAME PATH BODY: the events of a stream, a line each
  post "$2" "$3" | sed -n "s/^data: {/$1 {/p"
}
text='"model":"story","prompt":"Once upon a time","max_tokens":3'
chat='"model":"story","messages":[{"role":"user","content":"Once upon a time"}],"max_tokens":3'
call='"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{},"additionalProperties":false}}}],"tool_choice":"required","max_tokens":64'
{
  answer completion /v1/completions "{$text}"
  answer completion /v1/completions "{$text,\"logprobs\":2,\"n\":2}"
  chunks completion_chunk /v1/completions "{$text,\"logprobs\":1,\"stream\":true,\"stream_options\":{\"include_usage\":true}}"
  answer chat /v1/chat/completions "{$chat,\"logprobs\":true,\"top_logprobs\":2}"
  answer chat /v1/chat/completions "{${chat%,*},$call}"
  chunks chat_chunk /v1/chat/completions "{$chat,\"logprobs\":true,\"stream\":true,\"stream_options\":{\"include_usage\":true}}"
  chunks chat_chunk /v1/chat/completions "{${chat%,*},$call,\"stream\":true}"
  answer embeddings /v1/embeddings '{"model":"vectors","input":["a","b"]}'
  answer embeddings /v1/embeddings '{"model":"vectors","input":[[1,2]],"encoding_format":"base64"}'
  answer models /v1/models
  answer model /v1/models/story
  answer decision /v1/router/decide '{"keywords":"code, long answer","offered":["edge"]}'
  number=$(sed -n 's/^{"id":\([0-9]*\).*/\1/p' "$work/body")
  answer explanation "/v1/router/explain/$number"
  answer outcome /v1/router/outcome "{\"id\":$number,\"reward\":12.5,\"good\":true}"
  answer explanation "/v1/router/explain/$number"
  answer health /healthz
  answer readiness /readyz
  answer status /v1/status
  answer error /v1/completions '{}'
} >"$work/answers"
"$python" "$LP_SOURCE/tests/docs/answers.py" "$LP_SOURCE/docs/schemas/serve/answers.json" "$work/answers" >"$work/found" 2>&1 || fail "$(cat "$work/found")"
finish
