# hw_over.sh FAKE: `llmpart hw profile --over` measures the machine of a worker with --profile, by code of every
# backend, and writes its file. FAKE holds stand-ins for NVIDIA's driver and compiler; OpenCL runs on the device that
# there is.
. "$LP_SOURCE/tests/e2e/lib.sh"
fake=$1
export XDG_CACHE_HOME="$work/cache"
mkdir "$XDG_CACHE_HOME"

# over MACHINE BACKEND MARCH [option ...]: measures the machine through a worker on loopback.
over() {
  machine=$1 backend=$2
  subject="--machine=$1 --backend=$2 --march=$3 --widths=1 --budget=0ms"
  shift 3
  rm -rf "$work/bundles" "$work/made.yaml"
  # shellcheck disable=SC2086 # a list of options
  {
    "$LLMPART" hw profile $subject --bundles="$work/bundles" 2>"$work/err" || fail "$backend: --bundles: $(head -n 3 "$work/err")"
    serve "$work/bundles/width-128.llmpart" --profile "$@"
    "$LLMPART" hw profile $subject --over="$address" "$@" -o "$work/made.yaml" 2>"$work/err" || fail "$backend: --over: $(head -n 3 "$work/err")"
  }
  for wanted in "machine: \"$machine\"" '^measured:' "kernels: $backend" 'op: linear' 'op: attention' 'op: norm' "over $address"; do
    grep -q "$wanted" "$work/made.yaml" || fail "$backend: the file lacks '$wanted'"
  done
  "$LLMPART" hw predict "$work/made.yaml" --op=linear --m=1 --n=128 --k=128 --dtype=f32 >"$work/out" || fail "$backend: no prediction"
}

if part quick; then
  openssl rand -hex 32 >"$work/key" && chmod 600 "$work/key"
  over epyc-9654 cpu native --key-file="$work/key"
  grep -q '0.00 octaves' "$work/out" || fail "a measured operator is not near: $(cat "$work/out")"
  # shellcheck disable=SC2086 # a list of options
  {
    refused 'no key' 'cannot reach the cloud' "$LLMPART" hw profile $subject --over="$address" -o "$work/made/x.yaml"
    refused 'another bundle' "another bundle|not the same bundle|bundle" "$LLMPART" hw profile $subject -o "$work/made/x.yaml" --backend=opencl \
      --over="$address" --key-file="$work/key"
    wanted_status=2
    refused 'no machine' "over: error: --machine=NAME has to name" "$LLMPART" hw profile --over="$address"
    refused 'a machine that is here' 'only a profile of another machine' "$LLMPART" hw profile --machine=a100
    refused 'several bundles' 'only a worker with --profile takes several' "$LLMPART" worker "$work/bundles/width-128.llmpart" another
    wanted_status=1
  }
fi
part long || finish

export LD_LIBRARY_PATH="$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
LP_FAKE_CUDA_SM=53 over jetson-nano cuda sm_53
if "$LLMPART" hw profile --machine=snapdragon-8s-gen3 --widths=1 --bundles="$work/cl" 2>"$work/err" &&
  ! "$LLMPART" bench "$work/cl/width-128.llmpart" -p 1 -n 0 -r 1 >"$work/out" 2>"$work/err" &&
  grep -Eq 'there is no (OpenCL device|libOpenCL)' "$work/err"; then
  echo "$name: skipped: $(head -n 1 "$work/err")"
else
  over snapdragon-8s-gen3 opencl native
fi
finish
