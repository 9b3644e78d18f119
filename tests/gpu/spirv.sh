# spirv.sh MODEL.onnx ...: emitted OpenCL code compiles, warnings as errors, with clang for SPIR-V of 32 and 64 bits,
# without any extension: neither halves (cl_khr_fp16), nor doubles, nor subgroups; and with those that it can use. All
# models share helpers, of which a kernel may use none. The compiler is LP_CLANG or clang-19.
. "$LP_SOURCE/tests/e2e/lib.sh"
clang=${LP_CLANG:-clang-19}
command -v "$clang" >/dev/null || skip "there is no $clang (LP_CLANG): the OpenCL code is not compiled"

spirv() { # spirv FILE: compiles it for both address sizes
  for target in spir spir64; do
    # shellcheck disable=SC2086 # a list of options
    "$clang" -x cl ${language:--cl-std=CL1.2 -Xclang -cl-ext=-all} --target=$target -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -Wno-self-assign -Werror -O2 -S -emit-llvm \
      -o "$work/code.ll" "$1" 2>"$work/said" || return 1
  done
}

# The compiler refuses code that needs an extension.
echo '__kernel void twice(__global half *x) { x[0] = x[0] + x[0]; }' >"$work/half.cl"
spirv "$work/half.cl" && fail 'cl_khr_fp16 is on'
grep -q 'cl_khr_fp16' "$work/said" || fail "another refusal: $(head -n 3 "$work/said")"

compiles() { # compiles MODEL [option ...]
  what=$*
  compile "$@" || return
  spirv "$2" || fail "$what: $(head -n 3 "$work/said")"
  grep -q 'spir_kernel void' "$work/code.ll" || fail "$what: there is no kernel"
}

device="--device=snapdragon-8s-gen3 --side=device --emit=opencl"
# shellcheck disable=SC2086 # lists of options
{
  if part quick; then
    compiles "$1" "$work/device.cl" $device --dtype-device=int4 --kv-dtype=f16
    compiles "$1" "$work/device.cl" $device --dtype-device=int4 --activations=auto
    # The same source uses the dot product of bytes of compilers that have one.
    dots=__opencl_c_integer_dot_product_input_4x8bit
    language="-cl-std=CL3.0 -Xclang -cl-ext=-all,+cl_khr_integer_dot_product,+$dots,+${dots}_packed"
    spirv "$work/device.cl" || fail "with dot products: $(head -n 3 "$work/said")"
    grep -q 'dot_4x8packed' "$work/code.ll" || fail 'no dot product is used'
    # And multiplies halves where the compiler can.
    for dtype in f16 int8 int4; do
      language=
      compiles "$1" "$work/device.cl" $device --dtype-device=$dtype --activations=f32
      ! grep -q 'x half>' "$work/code.ll" || fail "$dtype: halves without the extension"
      language="-cl-std=CL1.2 -Xclang -cl-ext=-all,+cl_khr_fp16"
      spirv "$work/device.cl" || fail "$dtype, with halves: $(head -n 3 "$work/said")"
      grep -q 'x half>' "$work/code.ll" || fail "$dtype: no halves are multiplied"
    done
    language=
    # A machine that is as fast with floats gets no such kernels.
    sed 's/types: f32 f16/types: f32/; /^peak_f16/d' "$LP_SOURCE/hwmodels/machines/snapdragon-8s-gen3.yaml" >"$work/floats.yaml"
    compiles "$1" "$work/device.cl" $device --device="$work/floats.yaml" --dtype-device=f16
    ! grep -q LP_HALF "$work/device.cl" || fail 'halves for a machine without f16'
  fi
  part long || part soak || finish
  for model in "$@"; do
    for types in '--dtype-device=f32' '--dtype-device=f16 --kv-dtype=f16' '--dtype-device=int8'; do
      sampled 4 || continue
      compiles "$model" "$work/device.cl" $device $types
    done
  done
}
finish
