# coded_caches.sh MODEL BYTES8 BYTES4 FAKE: KV caches in int8 and int4: the tokens do not depend on threads, on a cut,
# on caches that move between machines, or on halves of GPUs; the size of a row; what is refused. FAKE holds stand-ins
# for NVIDIA's driver and compiler; OpenCL runs where there is a device for it.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1 fake=$4
export XDG_CACHE_HOME="$work/cache"
on() { # on BACKEND COMMAND ...: with the stand-ins for cuda
  (
    [ "$1" = opencl ] || export LD_LIBRARY_PATH="$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    shift
    "$@"
  )
}
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
  moves "$1"
  same "$1, moved" "$want" "$(tokens "$work/moves.llmpart" $ids 24)"
  for backend in cuda opencl; do
    case $1-$backend in int4-opencl) part quick ;; *) part long ;; esac || continue
    # shellcheck disable=SC2086 # the pair is three options
    compile "$model" "$work/gpu.llmpart" --kv-dtype="$1" $pair --scheduler=cut --cut=3 --backend-device=$backend --backend-cloud=$backend || return
    if [ $backend = opencl ] && ! "$LLMPART" run "$work/gpu.llmpart" --tokens=1 -n 1 --in-process >"$work/out" 2>"$work/err"; then
      grep -Eq 'there is no (OpenCL device|libOpenCL)' "$work/err" || fail "$1, opencl: $(cat "$work/err")"
      continue
    fi
    first=$(echo "$want" | cut -d , -f -12)
    same "$1, $backend" "$first" "$(on $backend tokens "$work/gpu.llmpart" $ids 12 --in-process)"
    part long || continue
    moves "$1" --backend-cloud=$backend
    same "$1, moved to $backend" "$first" "$(on $backend tokens "$work/moves.llmpart" $ids 12)"
  done
}
moves() { # moves DTYPE [option ...]: caches of the prompt go to the cloud
  cache=$1
  shift
  "$LLMPART" compile "$model" --device="$work/multiplies.yaml" --cloud="$work/reads.yaml" --objective=latency --march=native --kv-dtype="$cache" \
    --isl=64 --osl=64 --link=rtt=1ms,up=100Gbit/s,down=100Gbit/s --tolerance=0 --report="$work/moves.json" -o "$work/moves.llmpart" "$@" 2>"$work/err" ||
    fail "$cache is not compiled with moves: $(cat "$work/err")"
  grep -q '"op": *"move"' "$work/moves.llmpart/manifest.json" || fail "$cache: no cache moves"
}
same_everywhere int8 "$2"
same_everywhere int4 "$3"

refused 'a head of 14 elements' 'KV caches in codes have blocks of 32 elements, and a head has 14: use f16' \
  "$LLMPART" compile "$LP_SOURCE/tests/models/gpt2/model.onnx" --device=host --kv-dtype=int8 -o "$work/x.llmpart"
refused 'ONNX halves' 'cannot be written in ONNX opset 21: a cache in codes' "$LLMPART" compile "$model" --device=host --kv-dtype=int8 --emit=onnx -o "$work/x"
finish
