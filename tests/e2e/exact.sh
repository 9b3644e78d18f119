# exact.sh: no token of exact mode differs from the full model's, on three models and over two round trips: the short
# form of tests/bench/exact_tokens.py, which does it for 1,000 prompts and four.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v python3 >/dev/null || skip 'there is no python3'
check() { # check MODEL EXITS
  python3 "$LP_SOURCE/tests/bench/exact_tokens.py" "$LLMPART" "$1" --exits="$2" --prompts=3 --rtt=0,10 --tokens=12 --jobs=2 --plain=1 \
    >"$work/out" 2>&1 || fail "$1: exit status $?: $(tail -n 3 "$work/out")"
  same "$1: lines without a token that differs" 2 "$(grep -c ' ms: 0 of 36 tokens differ' "$work/out")"
}
part quick && check "$LP_SOURCE/tests/models/llama/model.onnx" 1,2
part long && check "$LP_SOURCE/examples/default-model/model.onnx" 2,6
part long && check "$LP_SOURCE/tests/models/gpt2/model.onnx" 1
finish
