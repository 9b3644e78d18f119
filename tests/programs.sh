#!/bin/sh
# programs.sh BUILD REGEX: the programs in the configured folder BUILD that tests run, if the tests' names match the
# extended REGEX, as targets of its build: a word each. They are what add_test's command and LLMPART in its environment
# name.
set -eu
find "$1" -name CTestTestfile.cmake -exec cat {} + | awk -v build="$(cd "$1" && pwd)/" -v regex="$2" '
  /^(add_test|set_tests_properties)\(\[=\[/ {
    name = $0
    sub(/^[a-z_]*\(\[=\[/, "", name)
    sub(/\]=\].*/, "", name)
    if (name !~ regex || (/^set/ && !sub(/^.*LLMPART=/, ""))) next
    while ((at = index($0, build)) > 0) {
      $0 = substr($0, at + length(build))
      path = $0
      sub(/[";].*/, "", path)
      if (!seen[path]++) print path
    }
  }'
