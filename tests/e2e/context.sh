# A model with a table of positions (128 rows) generates up to its end, and refuses a longer text with a message.
. "$LP_SOURCE/tests/e2e/lib.sh"
ids() { seq "$1" | sed 's/.*/1/' | paste -sd, -; } # ids COUNT
for which in gpt2 gpt2-nopast; do
  compile "$LP_SOURCE/tests/models/$which/model.onnx" "$work/$which.llmpart" || continue
  same "$which: its context" 128 "$(number "$work/$which.llmpart/manifest.json" context)"
  ! grep -v 'note: the code is for' "$work/err" || fail "$which: with the usual lengths: $(cat "$work/err")"
  compile "$LP_SOURCE/tests/models/$which/model.onnx" - --isl=100 --osl=28 --emit=report && [ ! -s "$work/err" ] ||
    fail "$which: lengths within the context: $(cat "$work/err")"
  compile "$LP_SOURCE/tests/models/$which/model.onnx" - --isl=100 --osl=29 --emit=report
  grep -q "warning: the plan is for a prompt of 100 tokens and 29 to generate, the model's context is 128" "$work/err" ||
    fail "$which: lengths beyond the context: $(cat "$work/err")"
  same "$which: up to the end" 8 "$(length "$(tokens "$work/$which.llmpart" "$(ids 120)" 8)")"
  refused "$which: beyond the end" 'a prompt of 120 tokens and 9 to generate exceed the model.s context of 128' \
    "$LLMPART" run "$work/$which.llmpart" --tokens="$(ids 120)" -n 9
  "$LLMPART" run "$work/$which.llmpart" --tokens="$(ids 120)" --ignore-eos -o json >"$work/json" || fail "$which: without -n"
  same "$which: what the context leaves" 8 "$(length "$(sequences "$work/json")")"
done
compile "$LP_SOURCE/tests/models/llama/model.onnx" "$work/llama.llmpart" &&
  same 'positions that are computed have no end' 0 "$(number "$work/llama.llmpart/manifest.json" context)"
finish
