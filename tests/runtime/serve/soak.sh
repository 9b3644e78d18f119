# A server and its worker for a minute, or LP_SOAK_SECONDS, under clients that come, go, crawl and lie
# (tests/bench/soak.py).
. "$LP_SOURCE/tests/e2e/lib.sh"
default=$LP_SOURCE/examples/default-model
compile "$default/model.onnx" "$work/edge.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
compile "$default/model.onnx" "$work/split.llmpart" --tokenizer="$default/tokenizer.json" --device=host --cloud=host --link=lan \
  --march=native --scheduler=cut --cut=1 || finish
python3 "$LP_SOURCE/tests/bench/soak.py" "$LLMPART" "$work/edge.llmpart" "$work/split.llmpart" --seconds "${LP_SOAK_SECONDS:-60}" --chart "$work/soak.svg" ||
  fail 'see above'
grep -q '</svg>' "$work/soak.svg" || fail 'no chart'
finish
