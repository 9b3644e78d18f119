# Checks the model of the protocol, docs/protocol.pml, with spin: every state under two faults; no cycle without
# progress. Changed so that a rule of the worker is missing, which is the part of the soak, the model must fail:
# otherwise it would say nothing.
set -u
command -v spin >/dev/null || { echo 'protocol: skipped: spin is not installed (tools/setup.sh)'; exit 77; }
model=$LP_SOURCE/docs/protocol.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

errors() { # errors MODEL FAULTS safety|progress: how many spin finds
  spin -DFAULTS="$2" -a "$1" >log || { cat log; exit 1; }
  if [ "$3" = safety ]; then define=-DSAFETY search=-n; else define=-DNP search=-l; fi
  cc -O1 -w "$define" -DMEMLIM=2000 -o pan pan.c || exit 1
  ./pan -m1000000 "$search" >log
  grep -q 'max search depth too small\|out of memory' log && { cat log; exit 1; }
  sed -n 's/.*errors: \([0-9]*\)$/\1/p' log
}

failures=0
check() { # check WHAT WANTED FOUND
  [ "$2" = "$3" ] || { echo "protocol: $1: $3 errors, wanted $2"; failures=$((failures + 1)); }
}

if [ "${LP_PART-}" != soak ]; then
  check 'every state under two faults' 0 "$(errors "$model" 2 safety)"
  check 'cycles without progress' 0 "$(errors "$model" 1 progress)"
fi
case ${LP_PART-soak} in *soak*) ;; *) [ "$failures" = 0 ]; exit ;; esac

without() { # without RULE SED-COMMAND safety|progress
  sed "$2" "$model" >changed.pml
  cmp -s changed.pml "$model" && { echo "protocol: '$1' changes nothing"; failures=$((failures + 1)); }
  if [ "$3" = safety ]; then faults=2; else faults=1; fi
  check "without '$1'" 1 "$(errors changed.pml "$faults" "$3")"
}
without 'a newer epoch forgets rows from its floor on' 's/e == wepoch + 1 -> forget_from(f); wepoch = e/e == wepoch + 1 -> wepoch = e/' safety
without 'rows of an older epoch are left out' 's/:: known && e >= wepoch ->$/:: known ->/' safety
without 'a device that resumes begins a new epoch' 's/epoch = epoch + 2;/skip;/' safety
without 'epochs left out forget from the older floor on' 's/forget_from(k); wepoch = e; wfloor = f/wepoch = e; wfloor = f/' safety
without 'a question that comes again is answered again' 's/n == answered -> reply(ANSWER, n, accepted)/n == answered -> skip/' progress
[ "$failures" = 0 ]
