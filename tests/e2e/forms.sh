# forms.sh FOLDER: one decoder in the forms in which exporters wrap the generation protocol (tests/models/forms.py),
# each in a folder of its own. Each generates ONNX Runtime's tokens; the quick part has six of them. The long part also
# splits them and compares their logits with the interpreter of their graph.
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
  case $form in *-fixed) return ;; esac
  both="$(row "$folder/tokens.json" prompts 2);$(row "$folder/tokens.json" prompts 4)"
  want="$(row "$folder/tokens.json" tokens 2)
$(row "$folder/tokens.json" tokens 4)"
  same "$1, a batch of two" "$want" "$(tokens "$work/$1" "$both" "$(length "$(row "$folder/tokens.json" tokens 2)")")"
}

for folder in "$1"/*/; do
  model=$folder/model.onnx form=$(basename "$folder")
  case $form in buffer-window | cache-tokens-first | conv-state | logits-pruned | merged | mask-number) whole=quick ;; *) whole=long ;; esac
  part $whole && {
    compile "$model" "$work/$form.llmpart" -O1 || continue
    same_tokens "$form.llmpart" 2 3
    same_batch "$form.llmpart"
  }
  part long || continue
  # shellcheck disable=SC2086 # the pair is three options
  compile "$model" "$work/$form.split.llmpart" -O1 $pair --scheduler=cut --cut=1 || continue
  same_tokens "$form.split.llmpart" 1 2 3
  same_batch "$form.split.llmpart"
  "$LLMPART" verify "$model" --against=reference >"$work/out" 2>&1 ||
    fail "$form: verify --against=reference: exit status $?: $(tail -n 10 "$work/out")"
done
[ -n "${form:-}" ] || fail "there are no models in $1"
finish
