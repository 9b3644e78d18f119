# cublas.sh CHECK_CUBLAS: compares the runtime's constants of cuBLASLt with cublasLt.h, and its calls with the library,
# if the Python of LP_PYTHON has PyPI's nvidia-cublas-cu12 and nvidia-cuda-runtime-cu12. Needs no GPU.
. "$LP_SOURCE/tests/e2e/lib.sh"
packages=$("${LP_PYTHON:-$LP_SOURCE/../venv/bin/python}" -c 'import nvidia; print("\n".join(nvidia.__path__))' 2>/dev/null | head -n 1)
found=$(ls "$packages"/cublas/lib/libcublasLt.so.* 2>/dev/null | head -n 1)
[ -n "$packages" ] && [ -e "$packages/cublas/include/cublasLt.h" ] && [ -e "$packages/cuda_runtime/include/driver_types.h" ] ||
  skip 'there is no Python with nvidia-cublas-cu12 and nvidia-cuda-runtime-cu12 (LP_PYTHON)'
# What a compiler for GPUs defines, and headers of packages that are not needed here.
mkdir "$work/crt"
for word in __device_builtin__ __device_builtin_texture_type__ __device_builtin_surface_type__ __cudart_builtin__ __host__ __device__ CUDARTAPI '__align__(n)' \
  '__builtin_align__(n)'; do
  echo "#define $word"
done >"$work/crt/host_defines.h"
echo 'typedef struct { unsigned short x; } __half;' >"$work/cuda_fp16.h"
echo 'typedef struct { unsigned short x; } __nv_bfloat16;' >"$work/cuda_bf16.h"
"${CC:-cc}" -std=gnu17 -fsyntax-only -I "$LP_SOURCE" -I "$work" -isystem "$packages/cublas/include" -isystem "$packages/cuda_runtime/include" \
  "$LP_SOURCE/tests/gpu/cublas_abi.c" 2>"$work/err" || fail "numbers: $(grep -m 5 error "$work/err")"
"$1" "$found" >"$work/out"
same "exit status: $(cat "$work/out")" 0 $?
finish
