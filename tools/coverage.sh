#!/bin/sh
# Builds llmpart so that it counts which lines and branches run (preset coverage), runs the quick tests or those that
# ctest's options choose, and prints a table: the shares of lines and branches that ran, by folder.
#   sh tools/coverage.sh [ctest option ...]    sh tools/coverage.sh -R '^runtime_'
#   sh tools/coverage.sh --report [PATH ...]   the table of what was counted before; of PATHs each line with its count
# Not counted: emitted code and its kernels, processes that a signal ended, and all of tests/, with the stand-ins of GPU
# drivers.
set -eu
cd "$(dirname "$0")/.."
build=build/coverage counts=$PWD/build/coverage/counts
llvm=/usr/lib/llvm-19/bin

if [ "${1-}" != --report ]; then
  cmake --preset coverage >/dev/null
  cmake --build --preset coverage --parallel 2
  rm -rf "$counts"
  # Each program adds its counts to one of two files.
  LLVM_PROFILE_FILE="$counts/%2m.profraw" ctest --preset coverage --parallel 2 "$@" ||
    echo "coverage: some tests failed; their counts are in the table" >&2
else
  shift
  set -- --report "$@"
fi

objects=""
for file in $(find $build -type f -perm -u+x ! -name '*.so' ! -path '*/CMakeFiles/*'); do
  # Programs of the build that have a table of counters.
  if readelf -S "$file" 2>/dev/null | grep -q __llvm_covmap; then objects="$objects -object $file"; fi
done
"$llvm/llvm-profdata" merge -o "$counts/all.profdata" --failure-mode=all "$counts"/*.profraw
if [ "${1-}" = --report ] && [ $# -gt 1 ]; then
  shift
  # The first path that is no option's value is a program.
  # shellcheck disable=SC2086 # a list of words
  exec "$llvm/llvm-cov" show ${objects# -object } -instr-profile="$counts/all.profdata" --show-branches=count "$@"
fi
# shellcheck disable=SC2086 # a list of words
"$llvm/llvm-cov" export $objects -instr-profile="$counts/all.profdata" -summary-only >"$counts/summary.json"
awk -v root="$PWD/" '
  function number(key, what) { # of the record: "lines":{"count":12,"covered":3
    return match($0, "\"" key "\":[{]\"count\":[0-9]+,\"covered\":[0-9]+") ? part(substr($0, RSTART, RLENGTH), what) : 0
  }
  function part(text, what) {
    sub(".*\"" what "\":", "", text)
    return text + 0
  }
  function add(name) {
    lines[name] += number("lines", "count"); run[name] += number("lines", "covered")
    branches[name] += number("branches", "count"); taken[name] += number("branches", "covered")
  }
  function share(some, all) { return all ? sprintf("%.1f %%", 100 * some / all) : "" }
  BEGIN { RS = "\"filename\":" }
  NR > 1 {
    path = $0
    sub(/^"/, "", path); sub(/".*/, "", path)
    if (index(path, root) != 1) next
    path = substr(path, length(root) + 1)
    if (path ~ /^(tests|build)\// || path !~ /\.c$/) next
    folder = path
    sub(/\/[^\/]*$/, "", folder)
    if (folder !~ /^(passes|backend|runtime|frontend|tools)\//) sub(/\/.*/, "", folder)
    else if (split(folder, level, "/") > 2) folder = level[1] "/" level[2]
    add(folder); add("total")
  }
  END {
    print "| folder | lines | run | branches | run |\n| --- | ---: | ---: | ---: | ---: |"
    for (name in lines) if (name != "total") print row(name) | "sort"
    close("sort")
    print row("total")
  }
  function row(name) {
    return "| " name " | " lines[name] " | " share(run[name], lines[name]) " | " branches[name] " | " share(taken[name], branches[name]) " |"
  }' "$counts/summary.json"
