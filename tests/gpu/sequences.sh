# sequences.sh SEQUENCES DEVICES BACKEND [FAKE STEPS]: several sequences in one pass on a GPU equal each by itself: to
# the bit in passes of up to ROWS rows, and nearly so in larger ones. BACKEND is opencl, or cuda with the stand-ins for
# NVIDIA's driver and compiler in FAKE. There a step of many sessions takes no more launches than one of few (STEPS is
# bench_steps), and is recorded.
. "$LP_SOURCE/tests/gpu/lib.sh"
check=$1 devices=$2 backend=$3 steps=${5:-} rows=64
models=$LP_SOURCE/tests/models
[ -z "${4:-}" ] || export LD_LIBRARY_PATH="$4${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" XDG_CACHE_HOME="$work/cache"

same_together() { # same_together NEAR MODEL [option ...]
  what=$* near=$1 model=$2
  shift 2
  # shellcheck disable=SC2086 # a list of options
  compile "$model" "$work/made.llmpart" $pair --backend-cloud="$backend" "$@" || return
  "$check" "$work/made.llmpart" $rows "$near" >"$work/out" 2>"$work/err" && return
  grep -Eq 'there is no (OpenCL device|libOpenCL)' "$work/err" && skip "$(head -n 1 "$work/err")"
  fail "$what: $(head -n 2 "$work/err")"
}

# A cache of f16 rounds, too.
part quick && same_together 5e-3 "$models/llama/model.onnx" --scheduler=cut --cut=1 --exits=1 --kv-dtype=f16
# A state goes on from pass to pass.
part quick && same_together 1e-3 "$models/huggingface/granitemoehybrid" --scheduler=cut --cut=1
# Tensor cores round activations.
part soak && same_together 5e-3 "$models/gpt2/model.onnx" --scheduler=cloud-only --dtype-cloud=f16
if part soak && [ "$backend" = cuda ]; then
  same_together 1e-3 "$models/families/gemma2-script-past/model.onnx" --scheduler=cloud-only
  export LP_FAKE_NVRTC_TENSOR=1
  same_together 5e-2 "$LP_SOURCE/examples/default-model/model.onnx" --scheduler=cut --cut=5 --dtype-cloud=int4
  unset LP_FAKE_NVRTC_TENSOR
fi

part long || finish
# Devices at one worker, alone and at once, with prompts of different lengths.
# shellcheck disable=SC2086 # a list of options
compile "$models/llama/model.onnx" "$work/made.llmpart" $pair --scheduler=cloud-only --backend-cloud="$backend" || finish
launches() { # launches SESSIONS: of eight steps, and how many of them were replayed
  rm -f "$work/log"
  LP_FAKE_CUDA_LOG=$work/log "$steps" "$work/made.llmpart" "$1" 4 20 1 >"$work/out" 2>&1 || fail "bench_steps: $(cat "$work/out")"
  sed 's/copies [0-9]* waits [0-9]* //' "$work/log"
}
[ "$backend" = opencl ] || same 'launches of a pass over two and nine sessions' "$(launches 2)" "$(launches 9)"

"$devices" "$LLMPART" "$work/made.llmpart" 8 6 24 1 3 >"$work/out" 2>"$work/err" || fail "devices at once: $(cat "$work/out" "$work/err")"
finish
