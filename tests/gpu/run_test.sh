# run_test.sh MODEL.onnx FAKE LIBRARY NCCL: pack.sh and run.sh on a small model, with stand-ins for the driver, NVRTC,
# cuBLASLt and NCCL; and without a GPU.
. "$LP_SOURCE/tests/e2e/lib.sh"
LP_PACK_SUITES=rows LP_PACK_TOKENS=f32 "$LP_SOURCE/tests/gpu/pack.sh" "$LP_BUILD" "$work/pack" "$1" f16 >"$work/out" 2>&1 || fail "pack.sh: $(tail -n 3 "$work/out")"
export LP_PROMPT=80 LP_STEPS=2 LP_BATCH=2 LP_DEPTH=4 LP_BASELINES=no XDG_CACHE_HOME="$work/cache"
LD_LIBRARY_PATH=$3:$2:$4 "$work/pack/run.sh" >"$work/table" 2>"$work/err"
same 'exit status of targets that are missed' 1 $?
[ ! -s "$work/err" ] || ! grep -v '^run.sh: ' "$work/err" || fail "run.sh: $(cat "$work/table" "$work/err")"
for want in '^| tokens of the default model, f32 | 4 of 4 prompts equal | 4 | yes |' '^| tokens by two ranks, f32 | 4 of 4 prompts equal | 4 | yes |' '^| several sequences in one pass, f32 | .* 0 differ | each as if alone | yes |' '^| conformance | [1-9][0-9]* cases, 0 failed | 0 failed | yes |' "^| copies .*Fake GPU | [0-9.]* GB/s" '^| f16, decode | [1-9.0-9]* tokens/s.* | 85 % | no |' \
  '^| f16, step but its kernels | [0-9.]* % of [0-9.]* ms | under 5 % | [yn]' '^| f16, decode x 2 sessions | [0-9.]* tokens/s, [0-9.]* times one | 20 times | no |' \
  '^| f16, prompt of 80, cuBLASLt 12.9.1 | [0-9.]* tokens/s, .*no rate of products to judge by | 65 %' \
  '^| f16, prompt of 80, own kernels | [0-9.]* tokens/s, .*no rate of products to judge by |  |' '^| conformance, own kernels alone | [1-9][0-9]* cases, 0 failed | 0 failed | yes |'; do
  grep -q "$want" "$work/table" || fail "no line matches '$want': $(cat "$work/table")"
done
LP_FAKE_CUDA_GPUS=0 LD_LIBRARY_PATH=$2 "$work/pack/run.sh" >"$work/out" 2>&1
same 'exit status without a GPU' 77 $?
grep -q 'skipped: .*there is no NVIDIA GPU' "$work/out" || fail "without a GPU: $(cat "$work/out")"
finish
