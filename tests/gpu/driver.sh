# driver.sh MODEL.onnx TOKENS.json FAKE [DTYPES [errors]]: with halves as CUDA code that the runtime compiles and
# launches, greedy tokens are those of ONNX Runtime where weights are f32 and those of the cpu backend in fewer bits;
# through a worker and in one process. FAKE holds stand-ins for NVIDIA's driver and compiler, which run the kernels on
# this processor. With `errors` also that what is missing or wrong is said.
. "$LP_SOURCE/tests/gpu/lib.sh"
model=$1 lists=$2 fake=$3
gpu="--backend-device=cuda --backend-cloud=cuda"
export XDG_CACHE_HOME="$work/cache"
# shellcheck disable=SC2031 # each is meant for what follows in its own shell
export LD_LIBRARY_PATH="$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

split mixed 1 --backend-cloud=cuda
if part quick; then
  check mixed 1 5
  check mixed 3 5 --in-process
  # shellcheck disable=SC2086 # a list of options
  split gpu 1 $gpu
  check gpu 2 5 --in-process
fi

for dtype in ${4:-}; do
  ids=$(row "$lists" prompts 2)
  split cpu 1 --dtype-cloud="$dtype" --kv-dtype=f16 --activations=f32
  split fewer 1 --backend-cloud=cuda --dtype-cloud="$dtype" --kv-dtype=f16 --activations=f32
  same "weights in $dtype" "$(tokens "$work/cpu.llmpart" "$ids" 3 --in-process)" "$(tokens "$work/fewer.llmpart" "$ids" 3 --in-process)"
  # with products on tensor cores, and on a GPU that has none
  ids=$(row "$lists" prompts 3),$ids,$(row "$lists" prompts 3)
  want=$(tokens "$work/cpu.llmpart" "$ids" 3 --in-process)
  for sm in 90 70 61 53; do
    same "a prompt with weights in $dtype on sm_$sm" "$want" "$(LP_FAKE_CUDA_SM=$sm tokens "$work/fewer.llmpart" "$ids" 3 --in-process)"
  done
  case $dtype in int*) ;; *) continue ;; esac
  # Activations are rounded as on processors: their codes are the same, so the sums are too.
  split cpu 1 --dtype-cloud="$dtype" --activations=auto
  split fewer 1 --backend-cloud=cuda --dtype-cloud="$dtype" --activations=auto
  ids=$(row "$lists" prompts 2)
  same "rounded activations with weights in $dtype" "$(tokens "$work/cpu.llmpart" "$ids" 3 --in-process)" \
    "$(LP_FAKE_CUDA_SM=61 tokens "$work/fewer.llmpart" "$ids" 3 --in-process)"
  grep -q '"activations": "int8"' "$work/fewer.llmpart/manifest.json" || fail 'the manifest does not state activations'
done
[ "${5:-}" = errors ] || finish

if part long; then
  # Steps are recorded when they repeat, and anew when the context leaves a grain of 256 tokens; where they cannot be,
  # they are launched.
  ids=$(row "$lists" prompts 1)
  long=$ids
  while [ "$(length "$long")" -lt 250 ]; do long=$long,$ids; done
  long=$(echo "$long" | cut -d , -f -250)
  split host 1
  want=$(tokens "$work/host.llmpart" "$long" 12 --in-process)
  same 'steps recorded' "$want" "$(LP_FAKE_CUDA_LOG=$work/done tokens "$work/mixed.llmpart" "$long" 12 --in-process)"
  grep -Eq 'graphs 9 ' "$work/done" || fail "what was recorded: $(cat "$work/done")"
  grep -q 'bytes 0$' "$work/done" || fail "memory is left: $(cat "$work/done")"
  same 'steps launched' "$want" "$(LP_FAKE_CUDA_GRAPHS=0 LP_FAKE_CUDA_LOG=$work/launched tokens "$work/mixed.llmpart" "$long" 12 --in-process)"
  grep -q 'graphs 0 ' "$work/launched" || fail "recorded all the same: $(cat "$work/launched")"

  # Tokens are drawn from what the GPU finds to be the greatest logits, or from all of them; only in the second case do
  # those come back.
  for how in '--temperature=0.9 --top-k=9 --seed=3' '--temperature=0.9 --top-k=9 --top-p=0.8 --seed=4' '--temperature=0.9 --seed=5'; do
    # shellcheck disable=SC2086 # a list of options
    for way in --in-process ''; do
      same "drawn with $how $way" "$(tokens "$work/host.llmpart" "$ids" 8 $how --in-process)" "$(tokens "$work/mixed.llmpart" "$ids" 8 $how $way)"
    done
  done

  # Code is compiled for another GPU, and where there is no place to keep it.
  once() { # once VARIABLE=VALUE: the code is compiled once; $work/once.log has the compiler's options
    rm -f "$work/once.log"
    env "$1" LP_FAKE_NVRTC_LOG="$work/once.log" "$LLMPART" run "$work/mixed.llmpart" --tokens=1 -n 1 --in-process >"$work/out" 2>"$work/err" ||
      fail "$1: $(cat "$work/err")"
    [ "$(wc -l <"$work/once.log")" = 1 ] || fail "$1: $(cat "$work/once.log")"
  }
  once XDG_CACHE_HOME=/dev/null/nowhere
  once LP_FAKE_CUDA_SM=90
  grep -q -- '--gpu-architecture=sm_90' "$work/once.log" || fail "not for sm_90: $(cat "$work/once.log")"

  # The driver and the compiler of a Jetson Nano are of CUDA 10.2.
  old() { # old COMMAND ...
    LD_LIBRARY_PATH="${fake}_old" LP_FAKE_CUDA_SM=53 LP_FAKE_NVRTC_LOG=$work/old.log "$@"
  }
  ids=$(row "$lists" prompts 2)
  same 'CUDA 10.2' "$(tokens "$work/mixed.llmpart" "$ids" 6 --in-process)" "$(old tokens "$work/mixed.llmpart" "$ids" 6 --in-process)"
  grep -q -- '--gpu-architecture=compute_53 --std=c++14' "$work/old.log" || fail "not PTX for sm_53: $(cat "$work/old.log")"

  # An older bundle names no machine.
  # shellcheck disable=SC2086 # a list of options
  split gpu 1 $gpu
  cp -r "$work/gpu.llmpart" "$work/older.llmpart"
  sed -i 's/"machine": "[^"]*"/"older": true/' "$work/older.llmpart/manifest.json"
  awk '/^ "files": /{ exit } { if (NR > 1) printf "\n"; printf "%s", held; held = $0 } END { sub(/,$/, "", held); printf "\n%s", held }' \
    "$work/older.llmpart/manifest.json" | tail -n +2 >"$work/described"
  amend "$work/older.llmpart" device/launches.json "s/\(llmpart contract \)[0-9a-f]*/\1$(sha256sum <"$work/described" | cut -d ' ' -f 1)/"
  refused 'an older bundle' 'there is no NVIDIA GPU' env LP_FAKE_CUDA_GPUS=0 "$LLMPART" run "$work/older.llmpart" --tokens=1 -n 1 --in-process
  grep -q "note: the device's half was made for nvptx64-nvidia-cuda sm_53$" "$work/err" || fail "no target: $(cat "$work/err")"

  # A half that also has code for the processor runs without the GPU, by itself and at a worker, and says so.
  split both 1 --backend-cloud=cuda --fallback=cpu -O1
  check both 2 3 --in-process
  LP_FAKE_CUDA_GPUS=0 check both 2 3
  LP_FAKE_CUDA_GPUS=0 check both 2 3 --in-process
  grep -q "kernels.cu: warning: code for CUDA, and there is no NVIDIA GPU; the cloud's half runs on the processor instead" "$work/err" ||
    fail "nothing is said of the processor: $(cat "$work/err")"
  LP_FAKE_CUDA_GPUS=0 "$LLMPART" run "$work/both.llmpart" --tokens=1 -n 1 --in-process --check >"$work/out" 2>"$work/err" || fail "--check: $(cat "$work/err")"
  # Its code is not taken for that of another form.
  amend "$work/both.llmpart" cloud/launches.json 's/llmpart contract [0-9a-f]/llmpart contract x/'
  refused 'code of another manifest' 'the code was compiled for another manifest' env LP_FAKE_CUDA_GPUS=0 "$LLMPART" run "$work/both.llmpart" --tokens=1 -n 1 --in-process
fi
part quick || finish

# Code is compiled once, and kept as long as it is whole.
log=$work/compiled
compilations() { # compilations WHAT WANTED: of one more run
  LP_FAKE_NVRTC_LOG=$log tokens "$work/mixed.llmpart" 1 1 --in-process >/dev/null
  same "$1" "$2" "$(cat "$log" 2>/dev/null | wc -l)"
}
: >"$log"
compilations 'kept code' 0
kept=$(ls "$XDG_CACHE_HOME"/llmpart/cuda/*.cubin)
for file in $kept; do
  printf x | dd of="$file" bs=1 seek=100 conv=notrunc 2>/dev/null
done
compilations 'code that was spoilt' 1
compilations 'code that was made anew' 1
[ "$(find "$XDG_CACHE_HOME" ! -name '*.cubin' -type f | wc -l)" = 0 ] || fail 'files are left in the cache'
LP_FAKE_CUDA_SM=120 compilations 'a GPU newer than the compiler' 2
grep -q -- '--gpu-architecture=compute_90' "$log" || fail "no PTX: $(cat "$log")"

# What is missing.
run="$LLMPART run $work/mixed.llmpart --tokens=1 -n 1 --in-process"
mkdir "$work/driver" && ln -s "$fake/libcuda.so.1" "$work/driver"
export XDG_CACHE_HOME="$work/empty"
# shellcheck disable=SC2086 # commands
{
  [ -n "$(ldconfig -p 2>/dev/null | grep libcuda.so.1)" ] || refused 'no driver' 'no NVIDIA driver \(libcuda' env LD_LIBRARY_PATH= $run
  refused 'no GPU' 'there is no NVIDIA GPU' env LP_FAKE_CUDA_GPUS=0 $run
  grep -q "note: the cloud's half was made for the GPU of 'v100s[^']*' (nvptx64-nvidia-cuda sm_70)" "$work/err" || fail "no target: $(cat "$work/err")"
  [ -n "$(ldconfig -p 2>/dev/null | grep libnvrtc)" ] || [ -e /usr/local/cuda ] ||
    refused 'no compiler' 'there is no NVRTC \(libnvrtc.so.12\)' env LD_LIBRARY_PATH="$work/driver" $run
  refused 'an architecture that it lacks' "NVRTC 12.[0-9]* has no sm_53, which 'Fake GPU' is; its oldest is sm_80" env LP_FAKE_CUDA_SM=53 LP_FAKE_NVRTC_ARCHS=80,90 $run
  refused 'no room for weights' "has no room for .* of weights: .* free" env LP_FAKE_CUDA_MEMORY=100000 $run
}
weights=$(wc -c <"$work/mixed.llmpart/cloud/weights.safetensors")
refused 'no room for activations' "has no room for .* of (activations|KV caches): .* free" env LP_FAKE_CUDA_MEMORY=$((weights + 8192)) $run
grep -q 'a shorter context' "$work/err" || fail "no advice: $(cat "$work/err")"
grep -q 'backend-cloud=cpu' "$work/err" && fail 'advice that does not help'

# Only the compiler makes PTX; without one nothing is written.
ptx="$LLMPART compile $model --device=jetson-nano --cloud=v100s --scheduler=cloud-only --emit=ptx"
# shellcheck disable=SC2086 # a command
{
  LP_FAKE_NVRTC_LOG=$work/ptx.log $ptx --march=sm_86 -o "$work/model.ptx" || fail 'no PTX'
  [ -s "$work/model.ptx" ] && grep -q -- '--gpu-architecture=compute_86' "$work/ptx.log" || fail "PTX: $(cat "$work/ptx.log")"
  [ -n "$(ldconfig -p 2>/dev/null | grep libnvrtc)" ] || [ -e /usr/local/cuda ] ||
    refused 'no compiler for PTX' 'there is no NVRTC' env LD_LIBRARY_PATH="$work/driver" $ptx -o "$work/none.ptx"
}
[ ! -e "$work/none.ptx" ] || fail 'PTX without a compiler'

# The worker says the same, and the device's half does without it.
refused 'a worker without a GPU' 'there is no NVIDIA GPU' env LP_FAKE_CUDA_GPUS=0 "$LLMPART" worker "$work/mixed.llmpart" --listen=127.0.0.1:0
split exits 2 --backend-cloud=cuda --exits=1
same 'the device alone' 3 "$(length "$(LP_FAKE_CUDA_GPUS=0 tokens "$work/exits.llmpart" 1,2 3 --mode=standalone)")"
finish
