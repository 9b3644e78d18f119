# coded_caches.sh MODEL: KV caches in int8 and int4: the tokens do not depend on threads, on a cut, or on caches that
# move between machines; the size of a row; what is refused.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1
ids=1,2,3,4,5,6,7
machine multiplies '100 TFLOP/s' '1 GB/s'
machine reads '10 GFLOP/s' '1000 GB/s'

same_everywhere() { # same_everywhere DTYPE BYTES: BYTES of a row of 64 elements
  compile "$model" "$work/$1.llmpart" --kv-dtype="$1" || return
  want=$(tokens "$work/$1.llmpart" $ids 24 --threads=1)
  [ -n "$want" ] || fail "$1: no tokens"
  same "$1, three threads" "$want" "$(tokens "$work/$1.llmpart" $ids 24 --threads=3)"
  tr -d ' \n' <"$work/$1.llmpart/manifest.json" | grep -q "\"shape\":\[\"b\",[^],]*,\"c\",\"*$2\"*\]" || fail "$1: a row is not of $2 bytes"
  # shellcheck disable=SC2086 # the pair is three options
  compile "$model" "$work/$1.cut.llmpart" --kv-dtype="$1" $pair --scheduler=cut --cut=3 &&
    same "$1, split" "$want" "$(tokens "$work/$1.cut.llmpart" $ids 24)"
  "$LLMPART" compile "$model" --device="$work/multiplies.yaml" --cloud="$work/reads.yaml" --objective=latency --march=native --kv-dtype="$1" \
    --isl=64 --osl=64 --link=rtt=1ms,up=100Gbit/s,down=100Gbit/s --tolerance=0 --report="$work/moves.json" -o "$work/moves.llmpart" 2>"$work/err" ||
    fail "$1 is not compiled with moves: $(cat "$work/err")"
  grep -q '"op": *"move"' "$work/moves.llmpart/manifest.json" || fail "$1: no cache moves"
  same "$1, moved" "$want" "$(tokens "$work/moves.llmpart" $ids 24)"
}
same_everywhere int8 "$2"
same_everywhere int4 "$3"

refused 'a head of 14 elements' 'KV caches in codes have blocks of 32 elements, and a head has 14: use f16' \
  "$LLMPART" compile "$LP_SOURCE/tests/models/gpt2/model.onnx" --device=host --kv-dtype=int8 -o "$work/x.llmpart"
refused 'ONNX halves' 'cannot be written in ONNX opset 21: a cache in codes' "$LLMPART" compile "$model" --device=host --kv-dtype=int8 --emit=onnx -o "$work/x"
wanted_status=2
refused 'a GPU' "KV caches in int4 are read by code for processors only, and 'a100' gets cuda code: use f16" \
  "$LLMPART" compile "$model" --device=host --cloud=a100 --kv-dtype=int4 -o "$work/x.llmpart"
finish
