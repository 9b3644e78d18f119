#!/bin/sh
# Checks formatting and runs clang-tidy over the sources: tools/lint.sh [--fix] [FILE...]. --fix formats in place.
set -eu
cd "$(dirname "$0")/.."
fix=
if [ "${1:-}" = --fix ]; then
  fix=1
  shift
fi
if [ $# = 0 ]; then
  # shellcheck disable=SC2046 # a list of words
  set -- $(git ls-files '*.c' '*.h' | grep -v '/fixture/')
fi

if [ -n "$fix" ]; then
  clang-format-19 -i "$@"
else
  clang-format-19 --dry-run --Werror "$@"
fi

build=build/dev
[ -f $build/compile_commands.json ] || cmake --preset dev >/dev/null
status=0
for file in "$@"; do
  # Headers are seen through the files that include them; kernels are built by rules of their own.
  grep -q "/$file\"" $build/compile_commands.json || continue
  clang-tidy-19 --quiet -p $build "$file" 2>/dev/null || status=1
done
exit $status
