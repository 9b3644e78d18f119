#!/bin/sh
# Checks formatting and runs clang-tidy over the sources: tools/lint.sh [--fix | --changed | --analyze] [FILE...]
#   --fix      formats in place
#   --changed  runs clang-tidy, which takes seconds for each file, only over the 16 files that changed last
#   --analyze  runs the static analyzers instead, clang's and gcc's (-fanalyzer), and prints what findings.txt lacks
set -eu
cd "$(dirname "$0")/.."
fix="" analyze="" changed=""
case ${1:-} in
--fix) fix=1 ;;
--changed) changed=1 ;;
--analyze) analyze=1 ;;
esac
[ -z "$fix$analyze$changed" ] || shift
if [ $# = 0 ]; then
  # shellcheck disable=SC2046 # a list of words
  set -- $(git ls-files '*.c' '*.h' | grep -v '/fixture/')
fi

build=build/dev status=0
[ -f $build/compile_commands.json ] || cmake --preset dev >/dev/null

# Headers are seen through the files that include them; kernels are built by rules of their own.
is_built() {
  grep -q "/$1\"" $build/compile_commands.json
}

if [ -n "$analyze" ]; then
  build=build/analyze # also makes the headers that clang reads
  cmake -S . -B $build -G Ninja -DCMAKE_C_FLAGS=-fanalyzer >/dev/null
  objects=""
  for file in "$@"; do
    ! is_built "$file" || objects="$objects $PWD/$file^"
  done
  # shellcheck disable=SC2086 # a list of words
  if ! ninja -C $build -k 100000 $objects >$build/report && ! grep -q ': error: ' $build/report; then
    cat $build/report # what is no finding
    exit 1
  fi
  # The same commands without gcc's option.
  mkdir -p $build/clang
  sed 's/ -fanalyzer//' $build/compile_commands.json >$build/clang/compile_commands.json
  for file in "$@"; do
    is_built "$file" || continue
    clang-tidy-19 --quiet -p $build/clang \
      --checks='-*,clang-analyzer-*,-clang-analyzer-security.FloatLoopCounter,-clang-analyzer-optin.performance.Padding,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling' \
      "$file" 2>/dev/null >>$build/report || true
  done
  awk -v root="$PWD/" -v known=tools/findings.txt -f tools/findings.awk $build/report || status=1
  exit $status
fi

if [ -n "$fix" ]; then
  clang-format-19 -i "$@"
else
  clang-format-19 --dry-run --Werror "$@"
fi

if [ -n "$changed" ]; then
  # shellcheck disable=SC2046 # a list of words
  set -- $({ git diff --name-only HEAD && git log --max-count=50 --name-only --format=; } | grep '\.c$' |
    awk '!seen[$0]++' | while read -r file; do [ ! -f "$file" ] || echo "$file"; done | head -n 16)
fi
for file in "$@"; do
  ! is_built "$file" || echo "$file"
done | xargs -P "$(nproc)" -n 1 -r clang-tidy-19 --quiet -p $build 2>/dev/null
