# valgrind runs emitted code for x86-64-v3 and finds no error of memory in it, nor in the command; the tokens are those
# without valgrind.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v valgrind >/dev/null || skip 'valgrind is not installed'
grep -qw avx2 /proc/cpuinfo || skip 'this processor cannot run code for x86-64-v3'
compile "$LP_SOURCE/examples/default-model/model.onnx" "$work/m.llmpart" --device=host --march=x86-64-v3 || finish
want=$(tokens "$work/m.llmpart" 1,2,3 4)
valgrind -q --error-exitcode=9 --log-file="$work/errors" "$LLMPART" run "$work/m.llmpart" --tokens=1,2,3 -n 4 --threads=1 \
  --ignore-eos -o json >"$work/json" 2>"$work/err" || fail "exit status $?: $(head -n 20 "$work/errors") $(head -n 3 "$work/err")"
same 'the tokens' "$want" "$(sequences "$work/json")"
finish
