# opencl.sh MODEL.onnx TOKENS.json [DTYPES [errors]]: with both halves as OpenCL code, greedy tokens are those of ONNX
# Runtime where weights are f32 and those of the cpu backend in fewer bits; through a worker and in one process; with
# `errors` also that what is wrong with a side is said.
. "$LP_SOURCE/tests/gpu/lib.sh"
model=$1 lists=$2
gpu="--backend-device=opencl --backend-cloud=opencl"

# shellcheck disable=SC2086 # a list of options
split gpu 1 $gpu
if ! "$LLMPART" run "$work/gpu.llmpart" --tokens=1 -n 1 --in-process >"$work/out" 2>"$work/err"; then
  grep -Eq 'there is no (OpenCL device|libOpenCL)' "$work/err" && skip "$(head -n 1 "$work/err")"
fi
check gpu 1 8 --in-process
check gpu 2 8
split mixed 1 --backend-cloud=opencl
check mixed 3 8 --in-process

for dtype in ${3:-}; do
  ids=$(row "$lists" prompts 2)
  split cpu 1 --dtype-cloud="$dtype" --kv-dtype=f16
  # shellcheck disable=SC2086 # a list of options
  split fewer 1 $gpu --dtype-cloud="$dtype" --kv-dtype=f16
  same "weights in $dtype" "$(tokens "$work/cpu.llmpart" "$ids" 4 --in-process)" "$(tokens "$work/fewer.llmpart" "$ids" 4 --in-process)"
done

[ "${4:-}" = errors ] || finish
# A kernel that does not compile, a table that does not fit.
spoil() { # spoil WHAT FILE SED PATTERN: the sum in the manifest is that of the spoilt file
  cp -r "$work/mixed.llmpart" "$work/spoilt.llmpart"
  amend "$work/spoilt.llmpart" "$2" "$3"
  refused "$1" "$4" "$LLMPART" run "$work/spoilt.llmpart" --tokens=1 -n 1 --in-process
  rm -rf "$work/spoilt.llmpart"
}
spoil 'kernels' cloud/kernels.cl 's/^__kernel/__kernel what/' "kernels.cl: error: the compiler of '.*' refuses the kernels"
spoil 'a kernel that is not there' cloud/launches.json 's/"kernel": "/"kernel": "x/' "launches.json: error: the kernels have no 'x"
spoil 'a buffer that is not there' cloud/launches.json 's/"b[0-9][0-9]*"/"b9999"/' "launches.json: error: there is no 'lp_segment"
refused 'no device' "there is no OpenCL device" env OCL_ICD_VENDORS=/nowhere "$LLMPART" run "$work/mixed.llmpart" --tokens=1 -n 1 --in-process
finish
