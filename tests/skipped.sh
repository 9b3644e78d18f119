#!/bin/sh
# skipped.sh LOG: the tests of a run of ctest (its LastTest.log) that skipped something, a line each: NAME: reason. A
# test that ctest takes for skipped and that gives no reason is listed as such.
set -eu
awk '
  /^[0-9]+\/[0-9]+ Testing: / { name = $3; reason = ""; next }
  /skipped: / && name != "" && reason == "" { reason = $0; sub(/^.*skipped: /, "", reason); print name ": " reason; next }
  /^Test Skipped\./ && reason == "" { print name ": no reason is given" }
' "$1"
