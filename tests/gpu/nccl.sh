# nccl.sh: compares the runtime's constants of NCCL and of CUDA's driver with NVIDIA's headers, and the functions that
# it looks for with those of the library, where they are installed: PyPI's nvidia-nccl-cu12 and nvidia-cuda-runtime-cu12
# in the Python of LP_PYTHON, or the packages of a system. Needs no GPU.
. "$LP_SOURCE/tests/e2e/lib.sh"
packages=$("${LP_PYTHON:-$LP_SOURCE/../venv/bin/python}" -c 'import nvidia; print("\n".join(nvidia.__path__))' 2>/dev/null | head -n 1)
folder_of() { # folder_of HEADER FOLDER ...: the first that has it
  header=$1
  shift
  for folder; do
    [ -e "$folder/$header" ] && echo "$folder" && return
  done
}
nccl=$(folder_of nccl.h "$packages/nccl/include" "${LP_NCCL:-/usr}/include" /usr/local/cuda/include)
cuda=$(folder_of cuda.h "$packages/cuda_runtime/include" /usr/local/cuda/include /usr/include)
[ -n "$nccl" ] && [ -n "$cuda" ] || skip 'there are no nccl.h and cuda.h (LP_PYTHON with nvidia-nccl-cu12 and nvidia-cuda-runtime-cu12)'
# What NCCL's header needs of the runtime of CUDA, whose own header asks for a compiler for GPUs.
echo 'typedef struct CUstream_st *cudaStream_t;' >"$work/cuda_runtime.h"
for header in cuda_fp16.h cuda_bf16.h cuda_fp8.h; do : >"$work/$header"; done
"${CC:-cc}" -std=gnu17 -fsyntax-only -I "$LP_SOURCE" -I "$work" -isystem "$nccl" -isystem "$cuda" "$LP_SOURCE/tests/gpu/nccl_abi.c" 2>"$work/err" ||
  fail "numbers: $(grep -m 5 error "$work/err")"
library=$(ls "$nccl"/../lib/libnccl.so.2 "$nccl"/../lib/*/libnccl.so.2 2>/dev/null | head -n 1)
for symbol in $(grep -o 'nccl[A-Z][A-Za-z]*, (' "$LP_SOURCE/runtime/collective/nccl_abi.h" | tr -d ', ('); do
  [ -z "$library" ] || nm -D "$library" | grep -q " [TW] $symbol\$" || fail "$library has no $symbol"
done
finish
