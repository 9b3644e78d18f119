# races_opencl.sh MODEL.onnx TOKENS.json: Oclgrind, which simulates an OpenCL device, finds no race between the
# work-items of emitted kernels, for a prompt of many rows and single tokens; and it notices barriers that are left out.
# LP_OCLGRIND is its library, by default that of Debian's package oclgrind. CUDA has a check of its own (races.sh).
. "$LP_SOURCE/tests/gpu/lib.sh"
model=$1 lists=$2
simulator=${LP_OCLGRIND:-/usr/lib/oclgrind/liboclgrind-rt-icd.so}
[ -e "$simulator" ] || skip "there is no $simulator (LP_OCLGRIND): races between work-items are not looked for"
echo "$simulator" >"$work/oclgrind.icd"

ids=$(row "$lists" prompts 1)
while [ "$(length "$ids")" -lt 70 ]; do ids=$ids,$ids; done
simulate() { # simulate BUNDLE: $work/races says which accesses race
  : >"$work/races"
  OCL_ICD_VENDORS="$work/oclgrind.icd" OCLGRIND_DATA_RACES=1 OCLGRIND_MAX_ERRORS=4 OCLGRIND_LOG="$work/races" \
    "$LLMPART" run "$1" --tokens="$ids" -n 2 --in-process >"$work/out" 2>"$work/err"
}

for types in 'int4 --kv-dtype=f16' 'int8 --activations=auto'; do
  # shellcheck disable=SC2086 # a list of options
  split race 0 --backend-cloud=opencl --dtype-cloud=$types
  simulate "$work/race.llmpart" || fail "$types: $(head -n 3 "$work/err")"
  ! grep -q 'data race' "$work/races" || fail "$types: $(head -n 12 "$work/races")"
done

# Of the sum over a group, without the barrier before its result is read.
amend "$work/race.llmpart" cloud/kernels.cl '/^static float join/,/^}/s/barrier(CLK_LOCAL_MEM_FENCE);//'
simulate "$work/race.llmpart"
grep -q 'data race' "$work/races" || fail 'nothing notices that the barriers of a sum are missing'
finish
