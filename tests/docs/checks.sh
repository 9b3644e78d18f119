# The checks of the documents find faults: commands.sh, options.sh and cells.sh on a page that has some.
set -eu
: "${LP_SOURCE:?is set by ctest}" "${LLMPART:?is set by ctest}"
here=$LP_SOURCE/tests/docs
page=tests/docs/fixture/fails.md
failures=0
expect() { # expect SCRIPT TEXT: the script fails on the page and says TEXT
  if found=$(sh "$here/$1" $page 2>&1) || [ "${found#*"$2"}" = "$found" ]; then
    printf '%s does not find the fault: %s\n' "$1" "$found"
    failures=1
  fi
}
expect commands.sh "$page:15: exit status 1, expected 0"
expect options.sh "$page:11: llmpart run has no option '--no-such-option'"
expect cells.sh "$page:20: a cell of 121 characters"
exit $failures
