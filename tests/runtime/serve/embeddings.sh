# POST /v1/embeddings: the vectors of sentence-transformers, by OpenAI's client and LiteLLM too. What cannot give
# embeddings is refused.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
command -v python3 >/dev/null || skip 'python3 is not there'
python=${LP_PYTHON:-python3}
models=$LP_SOURCE/tests/models/embeddings

vectors() { # vectors NAME WHAT [apart]: the clients, which take seconds to load, see one of the models but in the soak
  clients=python3
  if part soak || { part long && [ "$1" = bert-pooled ]; }; then clients=$python; fi
  "$clients" "$LP_SOURCE/tests/runtime/serve/embeddings.py" "$url" mine "$models/$1/vectors.json" ${3:+"$3"} >"$work/found" 2>"$work/err" ||
    fail "$2: $(cat "$work/found"; tail -n 3 "$work/err")"
}

for name in bert-mean bert-first bert-pooled llama-last; do
  case $name in bert-mean) ;; *) part long || part soak || continue ;; esac
  compile "$models/$name/onnx/model.onnx" "$work/$name.llmpart" --device=host || continue
  printf 'embeddings: { bundle: %s.llmpart, model: mine, threads: 2 }\nlog: log\n' "$name" >"$work/only.yaml"
  serve only || continue
  vectors "$name" "$name"
  same "ready" '{"status":"ready","places":{"embeddings":{"state":"up"}},"pool_kept":true}' "$(curl -sS "$url/readyz")"
  rejected 'no generation' 400 'no place|no model' /v1/completions '{"model": "auto", "prompt": "a"}'
  curl -sS "$url/metrics" | grep -q '^llmpart_embeddings_total{outcome="answered"} [1-9]' || fail "no metrics of embeddings"
  grep -q '"asked":"mine","stream":false,"prompt_tokens":[1-9]' "$work/log" || fail "no line in the log: $(head -n 2 "$work/log")"
  kill -TERM "$pid" && wait "$pid" || fail "$name: the server ends with $?"
done

part quick || finish
# A part of a cut model runs here as well, and a chat beside it.
compile "$models/llama-last/onnx/model.onnx" "$work/cut.llmpart" $pair --cut=1 || finish
compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
printf 'edge: { bundle: story.llmpart, threads: 1, model: story }\nembeddings: { bundle: cut.llmpart, model: mine, threads: 1 }\n' >"$work/both.yaml"
if serve both; then
  vectors llama-last 'cut' apart
  [ -n "$(post /v1/completions '{"model": "story", "prompt": "Once", "max_tokens": 4}' | text)" ] || fail 'no text beside embeddings'
  kill -TERM "$pid" && wait "$pid" || fail "both: the server ends with $?"
fi

# A server without such a bundle, and bundles that give none.
printf 'edge: { bundle: story.llmpart, threads: 1, model: story }\n' >"$work/edge.yaml"
serve edge && rejected 'logits' 404 'no model for embeddings.*give logits' /v1/embeddings '{"model": "story", "input": "a"}'
refuses() { # refuses NAME TEXT
  timeout 60 "$LLMPART" serve "$work/$1.yaml" --listen=127.0.0.1:0 2>"$work/err" && fail "$1: it starts"
  grep -q -- "$2" "$work/err" || fail "$1: wanted '$2', found $(head -n 3 "$work/err")"
}
echo 'embeddings: { bundle: story.llmpart }' >"$work/logits.yaml"
refuses logits 'the model gives logits, and embeddings are made from hidden states'
echo 'edge: { bundle: bert-mean.llmpart }' >"$work/hidden.yaml"
refuses hidden 'hidden states and no logits'
cp -r "$models/bert-mean" "$work/dense"
printf '[{"type": "x.Transformer"}, {"type": "x.Pooling", "path": "1_Pooling"}, {"type": "x.Dense", "path": "2_Dense"}]\n' >"$work/dense/modules.json"
compile "$work/dense/onnx/model.onnx" "$work/dense.llmpart" --device=host || finish
echo 'embeddings: { bundle: dense.llmpart }' >"$work/dense.yaml"
refuses dense 'need a dense layer after the pooling, which the bundle lacks'
"$LLMPART" run "$work/bert-mean.llmpart" --tokens=2,5,3 -n 1 >"$work/out" 2>&1 && fail "run: generates from hidden states"
grep -q 'no logits, so the bundle cannot generate text' "$work/out" || fail "run: $(cat "$work/out")"
finish
