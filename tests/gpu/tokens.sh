# tokens.sh WRITE_BUNDLE MODEL.onnx TOKENS.json: with the cloud's half as CUDA code on the CPU, greedy tokens are those
# of ONNX Runtime where weights are f32, and those of the cpu backend in fewer bits.
. "$LP_SOURCE/tests/e2e/lib.sh"
writer=$1 model=$2 lists=$3
[ "$(rows "$lists" prompts | wc -l)" -ge 2 ] || fail "there are no two prompts in $lists"

write() { # write CUT [DTYPE [KV_DTYPE]]
  "$writer" "$model" "$work/gpu.llmpart" "$@" 2>"$work/err" || fail "write_bundle $*: $(head -n 3 "$work/err")"
}

check() { # check PROMPT COUNT: layers of the plan on both sides
  want=$(row "$lists" tokens "$1" | cut -d , -f "-$2")
  same "prompt $1" "$want" "$(tokens "$work/gpu.llmpart" "$(row "$lists" prompts "$1")" "$2" --in-process)"
}

write 0 && check 1 5 && check 2 5
write 1 && check 3 5

for dtype in ${4:-}; do
  ids=$(row "$lists" prompts 2)
  # shellcheck disable=SC2086 # a list of options
  compile "$model" "$work/cpu.llmpart" $pair --scheduler=cut --cut=0 --dtype-cloud="$dtype" --kv-dtype=f16
  write 0 "$dtype" f16
  same "weights in $dtype" "$(tokens "$work/cpu.llmpart" "$ids" 3 --in-process)" \
    "$(tokens "$work/gpu.llmpart" "$ids" 3 --in-process)"
done
finish
