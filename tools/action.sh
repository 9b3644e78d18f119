#!/bin/sh
# What action.yml runs: compiles, and compares the report with an older one. Errors become annotations of GitHub. Ends
# with the status of what failed: 3 if no plan meets the limits, 4 if a figure is worse or a gate closed.
set -u
status=0
# shellcheck disable=SC2086 # a list of options
llmpart compile "$LLMPART_MODEL" $LLMPART_OPTIONS --report="$LLMPART_REPORT" >llmpart.out 2>llmpart.err || status=$?
cat llmpart.out llmpart.err
sed -n 's/%/%25/g; s/^\(.*: \)\{0,1\}\(error\|warning\): \(.*\)/::\2 title=llmpart compile::\1\3/p' llmpart.err
[ "$status" -eq 0 ] || exit "$status"
[ -n "$LLMPART_BEFORE" ] || exit 0
llmpart diff "$LLMPART_BEFORE" "$LLMPART_REPORT" --max-regression="$LLMPART_MAX_REGRESSION" -o github
