# nvcc.sh MODEL.onnx ...: emitted CUDA code compiles, warnings as errors, for every architecture; no kernel spills
# registers, and an SM of each has room for a block of every kernel; occupancy is printed (occupancy.py); emission is
# deterministic. The compiler is LP_NVCC or nvcc. For architectures that it
# lacks, NVIDIA's run-time compilers of CUDA 11 and 12 in the Python of LP_PYTHON (requirements.txt) compile only the
# kernels.
. "$LP_SOURCE/tests/e2e/lib.sh"
nvcc=${LP_NVCC:-nvcc}
command -v "$nvcc" >/dev/null || nvcc=
python=${LP_PYTHON:-$LP_SOURCE/../venv/bin/python}
"$python" "$LP_SOURCE/tests/gpu/nvrtc.py" --find >"$work/found" 2>/dev/null || python=
[ -n "$nvcc$python" ] || skip 'there is no nvcc (LP_NVCC) and no Python with NVRTC (LP_PYTHON): the code is not compiled'
known=
[ -z "$nvcc" ] || known=$("$nvcc" --list-gpu-arch | sed 's/compute/sm/' | tr '\n' ' ')

emit() { # emit MODEL OUT [option ...]
  compile_model=$1 out=$2
  shift 2
  # shellcheck disable=SC2086 # a list of options
  compile "$compile_model" "$out" $pair --scheduler=cut --cut=0 --emit=cuda "$@"
}

check_occupancy() { # check_occupancy LAUNCHES: of the kernels of which $work/said tells
  python3 "$LP_SOURCE/tests/gpu/occupancy.py" --summary "$work/said" "$1" 2>"$work/err" || fail "$(head -n 4 "$work/err")"
}

build() { # build FOLDER ARCHITECTURE ...: with what compiles for each of them
  folder=$1
  shift
  codes='' rest=''
  for arch in "$@"; do
    case " $known " in
    *" $arch "*) codes="$codes -gencode arch=compute_${arch#sm_},code=$arch" ;;
    *) rest="$rest $arch" ;;
    esac
  done
  : >"$work/said"
  # shellcheck disable=SC2086 # lists of words
  [ -z "$codes" ] || "$nvcc" -std=c++14 -O3 --threads 2 $codes -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror,-fPIC \
    -Xptxas -v -c "$folder/cloud.cu" -o "$work/cloud.o" >"$work/said" 2>&1 ||
    fail "nvcc $codes: $(grep -E 'error|warning' "$work/said" | head -n 5)"
  if [ -n "$rest" ] && [ -z "$python" ]; then
    echo "$name: note: no compiler for$rest"
  elif [ -n "$rest" ]; then
    # shellcheck disable=SC2086 # a list of words
    "$python" "$LP_SOURCE/tests/gpu/nvrtc.py" "$folder/kernels.cuh" $rest >>"$work/said" 2>"$work/err" || fail "NVRTC: $(cat "$work/err")"
  fi
  [ -z "$codes$python" ] || check_occupancy "$folder/cloud.cu"
}

# A kernel that spills is found, and one of which a Jetson Nano holds no block of 512 threads.
faulty() { # faulty REGISTERS SPILT WANTED
  printf "Compiling entry function '%s' for 'sm_53'\n %s bytes spill stores, 0 bytes spill loads\n Used %s registers\n" "some" "$2" "$1" >"$work/said"
  printf 'launch(f, some, groups(f.b * (f.s), 2), 1, 512, f.b);\n' >"$work/launches.cu"
  python3 "$LP_SOURCE/tests/gpu/occupancy.py" "$work/said" "$work/launches.cu" >"$work/out" 2>"$work/err"
  same "$1 registers, $2 bytes" "$3" "$(sed -n 's/^.* | \([0-9]*%\) |$/\1/p' "$work/out") $(sed 's/^error: some for sm_53 \([a-z]* [a-z0-9]*\).*/\1/' "$work/err")"
}
faulty 64 0 '50% '
faulty 32 0 '100% '
faulty 32 8 '100% spills 8'
faulty 65 0 '0% cannot be'

part soak && archs='sm_53 sm_70 sm_75 sm_80 sm_86 sm_89 sm_90' || archs='sm_53 sm_90'
for model in "$@"; do
  emit "$model" "$work/code"
  for arch in $archs; do
    emit "$model" "$work/same" --march=$arch
    grep -q "ARCHITECTURES ${arch#sm_} " "$work/same/CMakeLists.txt" || fail "$arch is not in CMakeLists.txt"
    for file in cloud.cu kernels.cuh weights.safetensors; do
      cmp -s "$work/code/$file" "$work/same/$file" || fail "$file is another for $arch"
    done
  done
  # shellcheck disable=SC2086 # a list of words
  build "$work/code" $archs
  part soak || continue
  emit "$model" "$work/fewer" --dtype-cloud=bf16 --kv-dtype=bf16
  build "$work/fewer" sm_53 sm_80
  emit "$model" "$work/fewer" --dtype-cloud=int4 --kv-dtype=f16
  build "$work/fewer" sm_90
  emit "$model" "$work/fewer" --dtype-cloud=f16
  build "$work/fewer" sm_53 sm_70
  emit "$model" "$work/fewer" --dtype-cloud=int4 --activations=auto
  build "$work/fewer" sm_53 sm_61 sm_75
done

refused 'an architecture' "sm_99.*not a CUDA architecture" "$LLMPART" compile "$1" --device=jetson-nano --side=device --emit=cuda \
  --march=sm_99 -o "$work/made/x"
refused 'an empty side' "nothing runs on the side 'cloud'" "$LLMPART" compile "$1" --device=jetson-nano --emit=cuda -o "$work/made/x"
part soak || finish

# What a bundle has in addition, for products by a library.
if [ -n "$python" ]; then
  # shellcheck disable=SC2086 # a list of options
  compile "$1" "$work/bundle.llmpart" $pair --scheduler=cut --cut=0 --backend-cloud=cuda --dtype-cloud=f16
  "$python" "$LP_SOURCE/tests/gpu/nvrtc.py" "$work/bundle.llmpart/cloud/kernels.cu" sm_75 sm_80 sm_90 >"$work/said" 2>"$work/err" || fail "NVRTC: $(cat "$work/err")"
  grep -q 'finish' "$work/bundle.llmpart/cloud/kernels.cu" || fail 'nothing finishes products'
  grep -q 'finish' "$work/code/kernels.cuh" && fail 'sources finish products that they do not have'
  check_occupancy "$work/bundle.llmpart/cloud/launches.json"
fi

# Heads as wide as models have them, where there is a Python that writes such a model.
wide() { # wide HEAD_DIM DTYPE KV_DTYPE
  "$onnx" "$LP_SOURCE/tests/models/llama7b.py" --out "$work/wide" --weights absent --layers 1 --hidden 512 --ffn 512 --heads 4 --kv-heads 2 \
    --head-dim "$1" --vocab 512 >"$work/said" 2>&1 || fail "llama7b.py: $(tail -n 1 "$work/said")"
  # shellcheck disable=SC2086 # a list of options
  compile "$work/wide/model.onnx" "$work/wide/cloud.cu" $pair --scheduler=cloud-only --emit=cuda --dtype-cloud="$2" --kv-dtype="$3"
  grep -q "attention_4x$1_tensor" "$work/wide/cloud.cu" || fail "heads of $1: no attention on tensor cores"
  build "$work/wide" sm_80 sm_90
}
onnx=${LP_PYTHON:-$LP_SOURCE/../venv/bin/python}
case $known in
*sm_80*sm_90*) ;;
*) onnx=false ;;
esac
if "$onnx" -c 'import onnx' 2>/dev/null; then
  wide 64 f16 bf16
  wide 128 int4 f16
  wide 256 bf16 bf16
fi
finish
