# library.sh MODELS FAKE LIBRARY SEQUENCES: computes prompts' products by cuBLASLt. Tokens are those of the cpu backend
# if the library is there, is missing, is forbidden, has no handle, or refuses some or all products; failures are
# reported. FAKE holds stand-ins for NVIDIA's driver and compiler, LIBRARY one for its library of products. SEQUENCES
# runs several sessions in one pass.
. "$LP_SOURCE/tests/gpu/lib.sh"
models=$1 fake=$2 library=$3 together=$4 cut=0
export XDG_CACHE_HOME="$work/cache" LD_LIBRARY_PATH="$library:$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" LP_FAKE_CUBLAS_LOG="$work/log"

begin() { # begin MODEL DTYPE: bundles of it, a prompt of 80 tokens, and the tokens that follow
  model=$models/$1/model.onnx
  [ "$1" != default ] || model=$LP_SOURCE/examples/default-model/model.onnx
  ids=$(row "$models/$1/tokens.json" prompts 1)
  while [ "$(length "$ids")" -lt 80 ]; do ids=$ids,$ids; done
  ids=$(echo "$ids" | cut -d , -f -80)
  split cpu $cut --cloud=a100 --dtype-cloud="$2" --kv-dtype=f16
  split gpu $cut --cloud=a100 --backend-cloud=cuda --dtype-cloud="$2" --kv-dtype=f16
  want=$(tokens "$work/cpu.llmpart" "$ids" 3 --in-process)
}

# check_prompt WHAT LINE [VARIABLE=VALUE ...]: the tokens, and a pattern of what the library did, or "" without it.
check_prompt() {
  what=$1 line=$2
  shift 2
  rm -f "$LP_FAKE_CUBLAS_LOG"
  same "$what" "$want" "$([ $# = 0 ] || export "${@?}"; tokens "$work/gpu.llmpart" "$ids" 3 --in-process)"
  did=$(cat "$LP_FAKE_CUBLAS_LOG" 2>/dev/null)
  [ -n "$line" ] || [ -z "$did" ] || fail "$what: a library is opened: $did"
  echo "$did" | grep -q "$line" || fail "$what: wanted '$line', found '$did'"
}
all='products [1-9][0-9]* choices [1-9][0-9]* refused 0'

if part long; then
  begin default bf16
  check_prompt 'default, bf16' "$all"
  begin llama f32
  check_prompt 'llama, f32' "$all"
fi
part quick || finish
begin gpt2 f16
check_prompt 'gpt2, f16' "$all"
check_prompt 'f16 on sm_70, by tensor cores that only the library uses' "$all" LP_FAKE_CUDA_SM=70
check_prompt 'f16 on sm_70, some refused' 'refused [1-9]' LP_FAKE_CUDA_SM=70 LP_FAKE_CUBLAS=plain
check_prompt 'f16 on sm_70 without the library' '' LP_FAKE_CUDA_SM=70 LLMPART_CUBLAS=off
check_prompt 'f16 on sm_61, which has no tensor cores' 'products 0 ' LP_FAKE_CUDA_SM=61
check_prompt 'only without epilogue' 'refused [1-9]' LP_FAKE_CUBLAS=plain
check_prompt 'nothing found' 'products 0 choices \([1-9][0-9]*\) refused \1' LP_FAKE_CUBLAS=none
check_prompt 'no handle' '' LP_FAKE_CUBLAS=absent
check_prompt 'forbidden' '' LLMPART_CUBLAS=off
[ -n "$(ldconfig -p 2>/dev/null | grep libcublasLt)" ] || check_prompt 'no library' '' LD_LIBRARY_PATH="$fake"
run="$LLMPART run $work/gpu.llmpart --tokens=$ids -n 1 --in-process"
# shellcheck disable=SC2086 # commands
{
  refused 'a product that fails' "'Fake GPU' cannot run the code: a product by cuBLASLt 12.9.1 failed \(CUBLAS_STATUS_EXECUTION_FAILED\); LLMPART_CUBLAS=off avoids the library" \
    env LP_FAKE_CUBLAS=fail $run
  refused 'another word' "LLMPART_CUBLAS: error: wanted 'on' or 'off', found 'maybe'" env LLMPART_CUBLAS=maybe $run
}

# A prompt that comes again is recorded with its products, or launched where those cannot be.
again() { # again [VARIABLE=VALUE]: how often what was recorded was replayed
  rm -f "$work/done"
  env LP_FAKE_CUDA_LOG="$work/done" "$@" "$LLMPART" bench "$work/gpu.llmpart" -p 80 -n 0 -r 3 -o json >"$work/out" 2>"$work/err" ||
    fail "bench $*: $(cat "$work/err")"
  sed -n 's/.*graphs \([0-9]*\).*/\1/p' "$work/done"
}
[ "$(again)" -gt 0 ] || fail "prompts are not recorded: $(cat "$work/done")"
same 'prompts that cannot be recorded' 0 "$(again LP_FAKE_CUBLAS=recorded)"
grep -q 'bytes 0$' "$work/done" || fail "memory is left: $(cat "$work/done")"

# Several sessions in one pass, of many rows.
"$together" "$work/gpu.llmpart" 64 5e-3 >"$work/out" 2>"$work/err" || fail "together: $(head -n 2 "$work/err")"
grep -q 'products [1-9]' "$LP_FAKE_CUBLAS_LOG" || fail "together: $(cat "$LP_FAKE_CUBLAS_LOG")"

# Codes are widened for the library from sm_80 on; before that our own kernels multiply them.
for dtype in int8 int4; do
  begin llama $dtype
  check_prompt "$dtype" "$all"
  check_prompt "$dtype on sm_75" 'products 0 ' LP_FAKE_CUDA_SM=75
done
finish
