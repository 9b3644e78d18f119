#!/bin/sh
# skipped.sh LOG: what a run of ctest (its LastTest.log) skipped, a line each: NAME: reason. A test may run and skip
# only some of what it has; one that ctest takes for skipped and that gives no reason is listed as such.
set -eu
awk '
  /^[0-9]+\/[0-9]+ Testing: / { name = $3; reasons = 0; next }
  /skipped: / && name != "" { reasons++; sub(/^.*skipped: /, ""); print name ": " $0; next }
  /^Test Skipped\./ && reasons == 0 { print name ": no reason is given" }
' "$1"
