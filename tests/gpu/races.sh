# races.sh FAKE MODEL.onnx TOKENS.json: cuda_check.cpp finds each fault of faults.cpp, and none in kernels that are
# right; and none in the kernels of a model on GPUs of several ages, for a prompt of many rows and single tokens. FAKE
# holds stand-ins for NVIDIA's driver and compiler. LP_BARRIERS names the barriers of the emitted code that are left out
# in turn, to see that this is noticed. The conformance suite runs with cuda_check.cpp too (CMakeLists.txt).
. "$LP_SOURCE/tests/gpu/lib.sh"
fake=$1 model=$2 lists=$3
here=$LP_SOURCE/tests/gpu

"${LP_TEST_CXX:-g++}" -std=c++14 -O1 -Wall -Wextra -Werror -DLP_CHECK -fsanitize=thread -DLP_CUDA_HOST="\"$here/cuda_host.h\"" -c "$here/faults.cpp" \
  -o "$work/faults.o" 2>"$work/err" && "${LP_TEST_CXX:-g++}" -O2 -Wall -Wextra -Werror "$work/faults.o" "$here/cuda_check.cpp" -o "$work/faults" \
  2>>"$work/err" || { fail "faults.cpp: $(head -n 3 "$work/err")"; finish; }
count=0
while read -r wanted; do
  sh -c '"$0" "$1"; exit $?' "$work/faults" "$count" >"$work/out" 2>"$work/err"
  status=$?
  if [ "$wanted" = right ]; then
    [ $status = 0 ] || fail "kernel $count of faults.cpp is right: $(cat "$work/err")"
  elif [ $status = 0 ] || ! grep -q "^cuda_check: .*$wanted" "$work/err"; then
    fail "kernel $count of faults.cpp: wanted '$wanted', found: $(cat "$work/err")"
  fi
  count=$((count + 1))
done <<'END'
right
reads shared memory .*, which its block has not written
writes shared memory .*, which thread 0 reads, without a barrier between them
right
writes shared memory .*, which thread 0 writes too, without a barrier between them
right
thread 32 reads shared memory .*, which its block has not written
right
writes global memory .*, which another block writes too
right
reads global memory .*, which another block writes
right
reads shared memory .*, to which a copy is under way
writes shared memory .*, which thread 0 reads, without a barrier between them
reads shared memory .*, which thread 1 writes, without a barrier between them
END
"$work/faults" $count 2>/dev/null
[ $? = 2 ] || fail "faults.cpp has more kernels than $count"

export XDG_CACHE_HOME="$work/cache" LP_FAKE_NVRTC_CHECK=1
# shellcheck disable=SC2031 # each is meant for what follows in its own shell
export LD_LIBRARY_PATH="$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
ids=$(row "$lists" prompts 1)
while [ "$(length "$ids")" -lt 70 ]; do ids=$ids,$ids; done
for dtype in f32 f16 int4; do
  case $dtype in f16) part long ;; *) part soak ;; esac || continue
  # shellcheck disable=SC2086 # a list of options
  {
    compile "$model" "$work/cpu.llmpart" $pair --cut=0 --scheduler=cut --dtype-cloud=$dtype
    split gpu 0 --backend-cloud=cuda --dtype-cloud=$dtype
  }
  want=$(tokens "$work/cpu.llmpart" "$ids" 3 --in-process)
  for setting in SM=53 SM=61 SM=75 SM=80; do
    case $dtype,$setting in f16,SM=80) part long ;; *) part soak ;; esac || continue
    same "$dtype, $setting" "$want" "$(export LP_FAKE_CUDA_$setting; tokens "$work/gpu.llmpart" "$ids" 3 --in-process)"
  done
  part soak && same "$dtype, tensor cores for few rows" "$want" "$(LP_FAKE_NVRTC_TENSOR=1 tokens "$work/gpu.llmpart" "$ids" 3 --in-process)"
done

# A barrier that the emitted code lacks is noticed: of a sum over a block, and in the soak two of a maximum.
part soak && barriers='1 3 4' || barriers=1
for barrier in ${LP_BARRIERS:-$barriers}; do
  sh -c '"$@"; exit $?' sh env LP_FAKE_NVRTC_WITHOUT="$barrier" XDG_CACHE_HOME=/dev/null/nowhere "$LLMPART" run "$work/gpu.llmpart" \
    --tokens="$ids" -n 2 --in-process >"$work/out" 2>"$work/err"
  grep -q '^cuda_check: ' "$work/err" || fail "nothing notices that barrier $barrier is missing"
done
finish
