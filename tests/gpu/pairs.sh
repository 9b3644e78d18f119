# pairs.sh FAKE MODEL.onnx TOKENS.json [MODEL.onnx TOKENS.json ...]: for both pairs of the cloud-device study, each half
# is code for its machine, and tokens are those of ONNX Runtime: a Jetson Nano (CUDA, sm_53) with a V100S (CUDA, sm_70),
# and a Snapdragon 8s Gen 3 (OpenCL) with an A100 (CUDA, sm_80). FAKE holds stand-ins for NVIDIA's driver and compiler;
# OpenCL runs on the device that there is. Where there are compilers, the sources of the first model compile for these
# GPUs; nvcc.sh and spirv.sh compile those of others.
. "$LP_SOURCE/tests/gpu/lib.sh"
fake=$1
shift
clang=${LP_CLANG:-clang-19}
python=${LP_PYTHON:-$LP_SOURCE/../venv/bin/python}
export XDG_CACHE_HOME="$work/cache"
with_fake="$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" # only for llmpart: NVRTC and clang need their own libraries
"$python" "$LP_SOURCE/tests/gpu/nvrtc.py" --find >"$work/found" 2>/dev/null || python=
command -v "$clang" >/dev/null || clang=
[ -n "$python" ] || echo "$name: skipped: no Python with NVRTC (LP_PYTHON): CUDA code is compiled only by the stand-in"
[ -n "$clang" ] || echo "$name: skipped: there is no clang-19 (LP_CLANG): OpenCL code is not compiled for SPIR-V"

# check_half SIDE FILE TRIPLE MARCH MACHINE: what the manifest says, and the kernels' file.
check_half() {
  [ -s "$work/pair.llmpart/$1/$2" ] || fail "$pair_name, $model: there is no $1/$2"
  found=$(sed -n "/^ *\"$1\": {/,/^  }/p" "$work/pair.llmpart/manifest.json" |
    sed -n 's/^ *"\(triple\|march\|machine\)": "\(.*\)",*$/\2/p' | tr '\n' ' ')
  same "$pair_name, $model, $1" "$3 $4 $5 " "$found"
}

cuda_compiles() { # cuda_compiles FILE ARCHITECTURE
  [ -z "$python" ] || "$python" "$LP_SOURCE/tests/gpu/nvrtc.py" "$1" "$2" >"$work/said" 2>"$work/err" || fail "$model: $2: $(tail -n 1 "$work/err")"
}

opencl_compiles() { # opencl_compiles FILE
  [ -z "$clang" ] || "$clang" -x cl -cl-std=CL1.2 --target=spir64 -Xclang -cl-ext=-all -Wall -Wextra -Wno-unused-parameter \
    -Wno-unused-function -Wno-self-assign -Werror -O2 -S -emit-llvm -o "$work/code.ll" "$1" 2>"$work/said" ||
    fail "$model: SPIR-V: $(head -n 3 "$work/said")"
}

# check_pair NAME CLOUD_SM DEVICE_SM: the device is a process with a GPU of DEVICE_SM, the worker one of CLOUD_SM.
check_pair() {
  pair_name=$1 cloud_sm=$2 device_sm=$3
  for prompt in $prompts; do
    LD_LIBRARY_PATH="$with_fake" LP_FAKE_CUDA_SM=$cloud_sm serve "$work/pair.llmpart"
    want=$(row "$lists" tokens "$prompt" | cut -d , -f "-$count")
    same "$pair_name, $model, prompt $prompt" "$want" "$(LD_LIBRARY_PATH="$with_fake" LP_FAKE_CUDA_SM=$device_sm tokens "$work/pair.llmpart" \
      "$(row "$lists" prompts "$prompt")" "$count" --cloud="$address")"
    kill "$worker" && wait "$worker" 2>/dev/null
  done
}

count=${LP_COUNT:-4} prompts=${LP_PROMPTS:-1}
sample=long # the first model; the soak has the others
while [ $# -ge 2 ]; do
  model=$1 lists=$2 which=$sample sample=soak
  shift 2
  [ $which = long ] || python='' clang=''
  part $which || continue
  pair_name=jetson-nano+v100s
  compile "$model" "$work/pair.llmpart" --device=jetson-nano --cloud=v100s --link=lan --scheduler=cut --cut=1 || continue
  [ ! -s "$work/err" ] || fail "$pair_name, $model: $(cat "$work/err")"
  check_half device kernels.cu nvptx64-nvidia-cuda sm_53 jetson-nano
  check_half cloud kernels.cu nvptx64-nvidia-cuda sm_70 v100s
  cuda_compiles "$work/pair.llmpart/device/kernels.cu" sm_53
  cuda_compiles "$work/pair.llmpart/cloud/kernels.cu" sm_70
  check_pair "$pair_name" 70 53

  pair_name=snapdragon-8s-gen3+a100
  compile "$model" "$work/pair.llmpart" --device=snapdragon-8s-gen3 --cloud=a100 --link=lan --scheduler=cut --cut=1 || continue
  [ ! -s "$work/err" ] || fail "$pair_name, $model: $(cat "$work/err")"
  check_half device kernels.cl opencl 1.2 snapdragon-8s-gen3
  check_half cloud kernels.cu nvptx64-nvidia-cuda sm_80 a100
  cuda_compiles "$work/pair.llmpart/cloud/kernels.cu" sm_80
  opencl_compiles "$work/pair.llmpart/device/kernels.cl"
  LD_LIBRARY_PATH="$with_fake" "$LLMPART" run "$work/pair.llmpart" --tokens=1 -n 1 --in-process >"$work/said" 2>&1
  if grep -Eq 'there is no (OpenCL device|libOpenCL)' "$work/said"; then
    echo "$name: skipped: $pair_name: $(head -n 1 "$work/said")"
  else
    check_pair "$pair_name" 80 80
  fi
done
finish
