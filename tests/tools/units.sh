# The units for systemd: systemd reads them without a complaint and rates their sandbox; `run` with its worker needs no
# system call that they deny, and no memory that is both written and executed.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v systemd-analyze >/dev/null || skip 'systemd-analyze is not installed'
most=20 # tenths of exposure

rating() { systemd-analyze security --no-pager --offline=true --threshold=$most "$1" >"$work/rating" 2>&1; }

for unit in worker serve; do
  file=$work/llmpart-$unit.service
  sed "s,^ExecStart=[^ ]*,ExecStart=$LLMPART," "$LP_BUILD/units/llmpart-$unit.service" >"$file"
  grep -q "^ExecStart=$LLMPART $unit " "$file" || fail "$unit: no ExecStart"
  said=$(systemd-analyze verify --man=no "$file" 2>&1) || fail "verify $unit: exit status $?"
  same "what verify says of $unit" '' "$said"
  rating "$file" || fail "security $unit: $(tail -n 2 "$work/rating")"
done

# Both judges find faults.
mkdir "$work/bad"
sed '/^SystemCallFilter\|^CapabilityBoundingSet\|^Protect\|^Restrict/d' "$work/llmpart-worker.service" >"$work/bad/llmpart-worker.service"
! rating "$work/bad/llmpart-worker.service" || fail 'an open unit passes'
echo '[Service]
NoSuchSetting=yes' >>"$work/bad/llmpart-worker.service"
systemd-analyze verify --man=no "$work/bad/llmpart-worker.service" 2>&1 | grep -q NoSuchSetting ||
  fail 'an unknown setting passes'

command -v strace >/dev/null || { echo 'note: no strace, so system calls are not compared'; finish; }
# shellcheck disable=SC2086 # a list of options
compile "$LP_SOURCE/examples/default-model/model.onnx" "$work/m.llmpart" $pair --cut=4 || finish
strace -f -o "$work/trace" "$LLMPART" run "$work/m.llmpart" --tokens=1,2,3 -n 4 >"$work/out" 2>"$work/err" ||
  skip "strace: $(tail -n 1 "$work/err")"
filter() { systemd-analyze syscall-filter --no-pager "$1" | sed -n 's/^ *\([a-z@][a-z0-9_-]*\)$/\1/p' | sort -u; }
all() { # all SET ...: the calls of the sets, and of the sets in them
  for set in "$@"; do filter "$set" | sed 1d | grep -v '^@'; all $(filter "$set" | grep '^@' | grep -vx "$set"); done
}
all @system-service | sort -u >"$work/admitted"
sed -n 's/^SystemCallFilter=\([a-z].*\)/\1/p' "$LP_SOURCE/tools/install/sandbox.conf" | tr ' ' '\n' >"$work/named"
all @privileged @resources | sort -u | grep -vxFf "$work/named" >"$work/denied"
[ "$(wc -l <"$work/admitted")" -gt 100 ] || fail 'the admitted calls are not found'
sed -n 's/^[0-9]* *\([a-z][a-z0-9_]*\)(.*/\1/p' "$work/trace" | sort -u >"$work/used"
[ "$(wc -l <"$work/used")" -gt 20 ] || fail 'the calls are not found'
same 'calls that are not admitted' '' "$(comm -23 "$work/used" "$work/admitted" | tr '\n' ' ')"
same 'calls that are denied' '' "$(comm -12 "$work/used" "$work/denied" | tr '\n' ' ')"

# Without memory that was written and is executed: PR_SET_MDWE, of Linux 6.3, denies what MemoryDenyWriteExecute denies.
cat >"$work/deny.py" <<'PYTHON'
import ctypes, os, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) != 0: sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
PYTHON
generate() { "$@" run "$work/m.llmpart" --prompt='Once upon a time' -n 8 2>>"$work/err"; }
found=$(generate python3 "$work/deny.py" "$LLMPART")
case $? in
77 | 127) echo 'note: this kernel cannot deny executable memory, or there is no python3' ;;
*) same 'the text without such memory' "$(generate "$LLMPART")" "$found" ;;
esac
finish
