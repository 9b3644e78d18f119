# A prompt beyond the model's context: a place with a longer one answers; if none has, the request is wrong, in OpenAI's
# terms. Such prompts are no failures of a place.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
compile "$default/model.onnx" "$work/long.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
mkdir "$work/m"
ln -s "$default"/* "$work/m"
echo '{"model": {"context_length": 32}}' >"$work/m/genai_config.json"
compile "$work/m/model.onnx" "$work/short.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
tale=$(for _ in 1 2 3 4 5 6 7 8 9 10; do printf 'Once upon a time there was a dog. '; done)
ask="\"prompt\":\"$tale\",\"max_tokens\":4,\"temperature\":0"
exceeds() { # exceeds WHAT PATTERN BODY
  rejected "$1" 400 "$2" /v1/completions "$3"
  grep -q '"type":"invalid_request_error","param":"prompt","code":"context_length_exceeded"' "$work/body" || fail "$1: $(cat "$work/body")"
}

echo 'edge: { bundle: short.llmpart, threads: 1 }' >"$work/short.yaml"
serve short
short=$url short_pid=$pid
for _ in 1 2 3 4; do # three failures would open the circuit breaker
  exceeds 'one place' 'the prompt has [0-9]* tokens; this model.s maximum context length is 32' "{\"model\":\"auto\",$ask}"
done
exceeds 'streamed' 'maximum context length is 32' "{\"model\":\"edge\",\"stream\":true,$ask}"
same 'other prompts are answered' 200 "$(post /v1/completions '{"model":"edge","prompt":"Once","max_tokens":2}' >"$work/answer" && cat "$work/status")"
python=${LP_PYTHON:-python3}
if LITELLM_LOCAL_MODEL_COST_MAP=True "$python" -c 'import openai, litellm' 2>/dev/null; then
  LITELLM_LOCAL_MODEL_COST_MAP=True "$python" - "$url" "$tale" >"$work/found" 2>&1 <<'PYTHON' || fail "clients: $(tail -n 3 "$work/found")"
import sys
import litellm
import openai

url, tale = sys.argv[1] + "/v1", sys.argv[2]
try:
    openai.OpenAI(base_url=url, api_key="none").completions.create(model="auto", prompt=tale)
    sys.exit("openai: an answer")
except openai.BadRequestError as error:
    assert error.code == "context_length_exceeded" and error.param == "prompt", error
try:
    litellm.text_completion(model="text-completion-openai/auto", prompt=tale, api_base=url, api_key="none")
    sys.exit("litellm: an answer")
except litellm.ContextWindowExceededError:
    pass
PYTHON
else
  echo "context: skipped: $python lacks openai or litellm"
fi

echo 'edge: { bundle: long.llmpart, threads: 1 }' >"$work/long.yaml"
serve long
long=$url long_pid=$pid
wanted=$(post /v1/completions "{\"model\":\"edge\",$ask}" | text)
[ -n "$wanted" ] || fail "no text: $(cat "$work/body")"

# The edge is too short; the cloud answers.
printf 'edge: { bundle: short.llmpart, threads: 1 }\ncloud: { url: "%s/v1", model: edge }\nrouter: { policy: edge, rule: edge }\n' "$long" >"$work/both.yaml"
serve both
for _ in 1 2 3 4; do
  same 'falls back' "$wanted" "$(post /v1/completions "{\"model\":\"auto\",$ask}" | text)"
  same 'to the cloud' cloud "$(route)"
done
exceeds 'the short place was named' 'maximum context length is 32' "{\"model\":\"edge\",$ask}"
kill -TERM "$long_pid"
wait "$long_pid" || fail "the server ends with $?"
rejected 'the longer place is away' 503 'cloud: ' /v1/completions "{\"model\":\"auto\",$ask}"
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"

# The cloud is too short, and the edge answers; or the edge is as well.
for edge in long short; do
  printf 'edge: { bundle: %s.llmpart, threads: 1 }\ncloud: { url: "%s/v1", model: edge }\nrouter: { policy: cloud }\n' "$edge" "$short" >"$work/turned.yaml"
  serve turned
  if [ $edge = long ]; then
    same 'falls back to the edge' "$wanted" "$(post /v1/completions "{\"model\":\"auto\",$ask}" | text)"
  else
    exceeds 'both are too short' 'maximum context length is 32' "{\"model\":\"auto\",$ask}"
  fi
  exceeds 'the cloud says so' 'cloud: .*maximum context length is 32' "{\"model\":\"cloud\",$ask}"
  kill -TERM "$pid"
  wait "$pid" || fail "the server ends with $?"
done

# By the figures of a file, before any place is asked.
printf 'service: llama2\nedge: { context: 64 }\n' >"$work/backends.yaml"
printf 'edge: { bundle: long.llmpart, threads: 1 }\nmax_tokens: 64\nrouter: { backends: backends.yaml }\n' >"$work/figures.yaml"
if serve figures; then
  exceeds 'by figures' 'no place may answer: edge: [0-9]* tokens do not fit a context of 64' "{\"model\":\"auto\",$ask}"
  kill -TERM "$pid"
  wait "$pid" || fail "the server ends with $?"
fi
kill -TERM "$short_pid"
wait "$short_pid" || fail "the server ends with $?"
finish
