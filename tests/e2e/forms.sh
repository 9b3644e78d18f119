# forms.sh FOLDER: one decoder in the forms in which exporters wrap the generation protocol (tests/models/forms.py),
# each in a folder of its own. Each generates ONNX Runtime's tokens; the quick part has some of them. The long part and
# the soak also split them. against.sh compares their logits.
. "$LP_SOURCE/tests/e2e/lib.sh"

same_tokens() { # same_tokens BUNDLE PROMPT ...
  made=$1
  shift
  for i in "$@"; do
    want=$(row "$folder/tokens.json" tokens "$i")
    same "$made, prompt $i" "$want" "$(tokens "$work/$made" "$(row "$folder/tokens.json" prompts "$i")" "$(length "$want")")"
  done
}

# same_batch BUNDLE: prompts 2 and 4, which are equally long, in one batch. Files with fixed sizes take one sequence.
same_batch() {
  case $form in *-fixed | sizes-whole) return ;; esac
  both="$(row "$folder/tokens.json" prompts 2);$(row "$folder/tokens.json" prompts 4)"
  want="$(row "$folder/tokens.json" tokens 2)
$(row "$folder/tokens.json" tokens 4)"
  same "$1, a batch of two" "$want" "$(tokens "$work/$1" "$both" "$(length "$(row "$folder/tokens.json" tokens 2)")")"
}

for folder in "$1"/*/; do
  model=$folder/model.onnx form=$(basename "$folder")
  case $form in buffer-scattered | buffer-window | embeds | merged | merged-one-token | mask-number | places-counted) whole=quick ;; *) whole=soak ;; esac
  part $whole && {
    compile "$model" "$work/$form.llmpart" || continue
    same_tokens "$form.llmpart" 2 3
    same_batch "$form.llmpart"
  }
  sampled 8 || continue
  # shellcheck disable=SC2086 # the pair is three options
  compile "$model" "$work/$form.split.llmpart" $pair --scheduler=cut --cut=1 || continue
  same_tokens "$form.split.llmpart" 1 2 3
  same_batch "$form.split.llmpart"
done
# A decoder without its embedding is refused, and an embedding that takes features or gives another type.
part quick && {
  cp "$1/embeds/model.onnx" "$work/rows.onnx"
  refused 'no embedding' 'it takes rows of an embedding as' "$LLMPART" compile "$work/rows.onnx" --device=host -o "$work/rows"
  change_onnx "$1/embeds/embed_tokens.onnx" 's/"input_ids"/"features"/' "$work/embed_tokens.onnx"
  refused 'features' "the embedding takes 'features' as well" "$LLMPART" compile "$work/rows.onnx" --device=host -o "$work/rows"
  change_onnx "$1/embeds/embed_tokens.onnx" 's/"Identity"/"IsNaN"/;s/elem_type: 1$/elem_type: 9/' "$work/embed_tokens.onnx"
  refused 'another type' "'inputs_embeds' of the embedding has not the type" "$LLMPART" compile "$work/rows.onnx" --device=host -o "$work/rows"
}
# A buffer that rows are not proved to follow in, or in which attention sees rows that are not written yet.
part quick && {
  written=$1/buffer-scattered/model.onnx
  change_onnx "$written" 's/"LessOrEqual"/"GreaterOrEqual"/' "$work/seen.onnx"
  refused 'rows that are seen' 'attention is not proved to hide its rows that are not written yet' "$LLMPART" compile "$work/seen.onnx" --device=host -o "$work/seen"
  change_onnx "$written" 's/"Identity"/"Neg"/' "$work/elsewhere.onnx"
  refused 'rows elsewhere' 'it is not proved to write the new rows after the past ones' "$LLMPART" compile "$work/elsewhere.onnx" --device=host -o "$work/elsewhere"
  "$LLMPART" run "$work/buffer-scattered.llmpart" --tokens=1,2,3 -n 40 >"$work/out" 2>&1 && fail 'a buffer took more rows than it has'
  grep -q 'exceed the model.s context of 32' "$work/out" || fail "a full buffer: $(cat "$work/out")"
}
# Labels of the mask's length that the other inputs contradict: the graph decides.
part quick && {
  labelled=$LP_SOURCE/tests/models/gpt2/model.onnx
  compile "$labelled" "$work/labels.llmpart" && wanted=$("$LLMPART" run "$work/labels.llmpart" --tokens=1,2,3,4 -n 6)
  for label in past 'past_sequence + sequence'; do
    change_onnx "$labelled" "s/dim_param: \"total\"/dim_param: \"$label\"/" "$work/labels.onnx"
    compile "$work/labels.onnx" "$work/labels.llmpart" && same "the label $label" "$wanted" "$("$LLMPART" run "$work/labels.llmpart" --tokens=1,2,3,4 -n 6)"
  done
}
# The dummy past of a merged decoder's first step is no past.
part quick && {
  "$LLMPART" verify "$1/merged/model.onnx" --test-data="$1/merged/test_data_set_0" >"$work/out" 2>&1 || fail "a dummy past: $(cat "$work/out")"
}
[ -n "${form:-}" ] || fail "there are no models in $1"
finish
