# tokens.sh MODEL.onnx TOKENS.json: greedy tokens are those of ONNX Runtime, for any placement of the operators: in one
# process, at every layer cut, as the greedy scheduler places them, across two processes, with one run and with four at
# once. The code of one process and of one cut is optimised; what another cut changes is which operators a side has, not
# how an operator is compiled.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1 lists=$2
prompts=$(rows "$lists" prompts | wc -l)
[ "$prompts" -ge 1 ] || fail "there are no prompts in $lists"

check() { # check WHAT BUNDLE [option ...]: every prompt
  what=$1 split=$2
  shift 2
  for i in $(seq "$prompts"); do
    ids=$(row "$lists" prompts "$i")
    want=$(row "$lists" tokens "$i")
    same "$what, prompt $i" "$want" "$(tokens "$split" "$ids" "$(length "$want")" "$@")"
  done
}

if part quick && compile "$model" "$work/one.llmpart" -O2; then
  check 'one process' "$work/one.llmpart"
  check 'two threads' "$work/one.llmpart" --threads=2
  ids=$(row "$lists" prompts 2)
  want=$(row "$lists" tokens 2)
  found=$(tokens "$work/one.llmpart" "$ids" "$(length "$want")" --batch=4)
  same 'batch 4' "$want
$want
$want
$want" "$found"
fi

plan "$model" "$work/alone.txt" --device=jetson-nano
count=$(layers "$work/alone.txt")
[ "$count" -ge 2 ] || fail "$model has $count layers, at least 2 are expected"
case $lists in */llama/* | */gpt2/*) optimised=2 each=2 ;; *) optimised=1 each=4 ;; esac
for cut in $(seq 0 "$count"); do
  case $cut-$lists in 1-*/llama/* | 1-*/gpt2/* | 1-*/default/*) part quick ;; *) sampled $each ;; esac || continue
  level=-O0
  case $cut in "$optimised") level=-O3 ;; esac
  # shellcheck disable=SC2086 # a list of options
  compile "$model" "$work/cut.llmpart" $pair --scheduler=cut --cut="$cut" $level || continue
  check "cut $cut" "$work/cut.llmpart" --in-process
  case $cut in 1 | 2) check "cut $cut, two processes" "$work/cut.llmpart" ;; esac
done

# Products in the cloud and attention on the device: every layer crosses the link several times.
case $lists in */llama/*) interleaved=quick ;; *) interleaved=soak ;; esac
part $interleaved && compile "$model" "$work/interleaved.llmpart" $pair --pin='layer.*.linear=cloud' \
  --pin='layer.*.attention=device' --report="$work/interleaved.txt" && {
  awk -v least=$((2 * count)) '$1 == "crossings" && $2 >= least && $3 >= least { found = 1 } END { exit !found }' \
    "$work/interleaved.txt" || fail "the sides do not interleave: $(grep crossings "$work/interleaved.txt")"
  check 'interleaved' "$work/interleaved.llmpart" --in-process
  check 'interleaved, two processes' "$work/interleaved.llmpart"
}
finish
