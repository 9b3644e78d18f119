# Files in the model's folder: the bundle obeys their end tokens, context and sampling and includes the chat template,
# and none of them prevents the compilation.
. "$LP_SOURCE/tests/e2e/lib.sh"
mkdir -p "$work/m/onnx"
cp "$LP_SOURCE/tests/models/llama/model.onnx" "$work/m/onnx/model.onnx"
cp "$LP_SOURCE/tests/runtime/tokenizer/kinds/wordlevel.json" "$work/m/tokenizer.json"
echo '{{ messages[0].content }} END' >"$work/m/chat_template.jinja"
echo '{"bos_token": "[PAD]", "eos_token": null}' >"$work/m/tokenizer_config.json"

compile "$work/m/onnx/model.onnx" "$work/plain.llmpart" -MD "$work/plain.d" || finish
all=$(tokens "$work/plain.llmpart" 312 12)
same 'without files: no context' 0 "$(number "$work/plain.llmpart/manifest.json" context)"
grep -q stops "$work/plain.llmpart/manifest.json" && fail 'end tokens without files'
[ -f "$work/plain.llmpart/chat_template.jinja" ] || fail 'the chat template is not in the bundle'
grep -q '/m/tokenizer.json.*/m/chat_template.jinja' "$work/plain.d" || fail "what was read: $(cat "$work/plain.d")"
"$LLMPART" run "$work/plain.llmpart" --chat='time' -n 1 -o json >"$work/json" 2>"$work/err" || fail "chat: $(cat "$work/err")"

# The third token ends it by config.json, the fifth by generation_config.json; the least context counts.
third=$(echo "$all" | cut -d, -f3) fifth=$(echo "$all" | cut -d, -f5)
echo "{\"eos_token_id\": 0, \"text_config\": {\"max_position_embeddings\": 40, \"eos_token_id\": $fifth}}" >"$work/m/config.json"
compile "$work/m/onnx/model.onnx" "$work/fifth.llmpart"
"$LLMPART" run "$work/fifth.llmpart" --tokens=312 -n 12 -o json >"$work/json" || fail 'run with one end token'
same 'ends at the fifth' "$(echo "$all" | cut -d, -f1-5)" "$(sequences "$work/json")"
echo "{\"eos_token_id\": [7, $third]}" >"$work/m/generation_config.json"
echo '{"model": {"context_length": 32, "eos_token_id": 9}}' >"$work/m/genai_config.json"
compile "$work/m/onnx/model.onnx" "$work/third.llmpart"
"$LLMPART" run "$work/third.llmpart" --tokens=312 -n 12 -o json >"$work/json" || fail 'run with several end tokens'
same 'ends at the third' "$(echo "$all" | cut -d, -f1-3)" "$(sequences "$work/json")"
same 'end tokens are ignored when asked' "$all" "$(tokens "$work/third.llmpart" 312 12)"
same 'the least context' 32 "$(number "$work/third.llmpart/manifest.json" context)"
refused 'a prompt beyond the context' 'a prompt of 33 tokens and 1 to generate exceed the model.s context of 32' \
  "$LLMPART" run "$work/third.llmpart" --tokens="$(seq -s, 33)" -n 1

# Sampling: the model's own, unless a temperature is given.
echo '{"do_sample": true, "temperature": 3.0, "top_k": 0}' >"$work/m/generation_config.json"
compile "$work/m/onnx/model.onnx" "$work/warm.llmpart"
[ "$(tokens "$work/warm.llmpart" 312 12)" != "$all" ] || fail 'the sampling of generation_config.json is not obeyed'
same 'a given temperature counts' "$all" "$(tokens "$work/warm.llmpart" 312 12 --temperature=0)"

# Files that cannot be used: a note each.
echo '{"model": {"type": "X"}}' >"$work/m/tokenizer.json"
echo '{' >"$work/m/generation_config.json"
echo '[1]' >"$work/m/config.json"
compile "$work/m/onnx/model.onnx" "$work/bad.llmpart"
grep -q "tokenizer.json: note: the tokenizer is left out, .*--tokens.*model 'X'" "$work/err" || fail "no note: $(cat "$work/err")"
grep -q 'generation_config.json: note: not used: ' "$work/err" || fail "no note: $(cat "$work/err")"
same 'without a tokenizer' "$all" "$(tokens "$work/bad.llmpart" 312 12)"
finish
