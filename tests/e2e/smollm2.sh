# SmolLM2's greedy answers are those of ONNX Runtime (examples/smollm2/tokens.json): in one process and batch 4, and in
# the soak cut in the middle across two. The model is not committed: `sh tools/demo.sh smollm2` puts it where this test
# looks, else it is skipped.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=${SMOLLM2:-$LP_SOURCE/build/smollm2}/model.onnx
[ -e "$model" ] || skip "there is no $model"

lists() { # lists KEY: the arrays of that key in tokens.json, which has a question per line
  sed -n "s/^.*\"$1\": \[\([0-9, ]*\)\].*\$/\1/p" "$LP_SOURCE/examples/smollm2/tokens.json" | tr -d ' '
}
lists prompt_ids >"$work/prompts"
lists tokens >"$work/tokens"
count=$(wc -l <"$work/prompts")
[ "$count" -ge 3 ] || fail "found $count prompts, wanted 3 at least"

check() { # check WHAT [option ...]
  what=$1
  shift
  for i in $(seq "$count"); do
    want=$(sed -n "${i}p" "$work/tokens")
    same "$what, prompt $i" "$want" "$(tokens "$work/b.llmpart" "$(sed -n "${i}p" "$work/prompts")" "$(length "$want")" --threads=2 "$@")"
  done
}

part long && compile "$model" "$work/b.llmpart" && {
  check 'one process'
  want=$(sed -n 1p "$work/tokens")
  found=$(tokens "$work/b.llmpart" "$(sed -n 1p "$work/prompts")" "$(length "$want")" --threads=2 --batch=4)
  same 'batch 4' "$want
$want
$want
$want" "$found"
}
# shellcheck disable=SC2086 # a list of options
part soak && compile "$model" "$work/b.llmpart" $pair --scheduler=cut --cut=15 && check 'two processes'
finish
