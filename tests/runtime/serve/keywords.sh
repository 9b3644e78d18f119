# `keywords: model`: the router's language model makes the keywords, once for each class of requests. A model that is
# slow or fails leaves the class as it is.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
command -v python3 >/dev/null || skip 'python3 is not there'
compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish

model() { # model NAME [SECONDS]: sets $port
  python3 "$LP_SOURCE/tests/runtime/serve/keywords.py" "$work/$1.port" "$work/$1.asked" ${2:+"$2"} 2>"$work/$1.err" &
  started="$started $!"
  await test -s "$work/$1.port" || fail "the model $1 does not start: $(cat "$work/$1.err")"
  port=$(cat "$work/$1.port")
}
config() { # config NAME MODEL [KEY: VALUE, of router]: its cloud answers nothing
  printf 'edge: { bundle: story.llmpart, threads: 1 }\ncloud: { url: "http://127.0.0.1:1/v1", model: big }\n' >"$work/$1.yaml"
  printf 'router: { model: "%s", model_name: small, epsilon: 0, keywords: model, pool: %s.db%s }\n' "$2" "$1" "${3:+, $3}" >>"$work/$1.yaml"
}
ask() { # ask BODY: the keywords by which it was decided
  post /v1/chat/completions "{\"model\": \"auto\", \"max_tokens\": 2, $1}" >"$work/answer"
  same 'status' 200 "$(cat "$work/status")"
  curl -sS "$url/v1/router/explain/$(sed -n 's/^X-Llmpart-Decision: \([0-9]*\).*/\1/p' "$work/head")" | sed -n 's/.*"keywords":"\([^"]*\)".*/\1/p'
}
cp "$default/tokenizer.json" "$work"
one='"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Tell a\nstory."}]'
two='"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Tell more."}]'
other='"messages": [{"role": "system", "content": "other"}, {"role": "user", "content": "Secret."}]'
chatty() { # the default model with a chat template
  printf '{"chat_template": "{%% for m in messages %%}{{ m.content }}{%% endfor %%}"}' >"$work/tokenizer_config.json"
  compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$work/tokenizer.json" --device=host
}
chatty || finish

model good 0.5 # longer than the usual time
config good "http://127.0.0.1:$port/v1" "timeout: 60s"
if serve good; then
  case $(ask "$one") in 'story telling, long answer, about '*) ;; *) fail "keywords: $(cat "$work/answer" "$work/good.asked")" ;; esac
  case $(ask "$two") in 'story telling, long answer, about '*) ;; *) fail "keywords of the class: $(cat "$work/good.asked")" ;; esac
  same 'asked once' 'keywords Tell a story.' "$(grep '^keywords' "$work/good.asked")"
  grep -q '^decide story telling, long answer' "$work/good.asked" || fail "the decision: $(cat "$work/good.asked")"
  same 'own keywords' 'mine' "$(ask "$other, \"keywords\": \"mine\"")"
  case $(ask "$other, \"local_only\": true") in 'chat '*) ;; *) fail 'a local request has other keywords than its class' ;; esac
  grep -q Secret "$work/good.asked" && fail 'the text of a local request reached the model'
  kill -TERM "$pid" && wait "$pid" || fail "the server ends with $?"
fi
model slow 5 # longer than the 300 ms that it has
config slow "http://127.0.0.1:$port/v1"
serve slow && case $(ask "$one") in 'chat '*'short prompt, about '*) ;; *) fail 'a slow model changes the keywords' ;; esac
config lookup lookup
timeout 60 "$LLMPART" serve "$work/lookup.yaml" --listen=127.0.0.1:0 2>"$work/err" && fail 'lookup makes keywords'
grep -q "'keywords: model' requires" "$work/err" || fail "lookup: $(cat "$work/err")"

# A bundle in this process: what the default model writes is no description, but each request is answered and has one.
config bundle "$work/story.llmpart" "timeout: 60s"
if serve bundle; then
  found=$(ask "$one")
  [ -n "$found" ] || fail "no keywords with a bundle: $(cat "$work/answer")"
  same 'the class keeps them' "${found%, about*}" "$(ask "$two" | sed 's/, about.*//')"
fi
finish
