#!/bin/sh
# Checks formatting and runs clang-tidy over the sources: tools/lint.sh [--fix | --changed | --analyze] [FILE...]
#   --fix      formats in place
#   --changed  compiles the 60 files that changed last as the preset dev does, whose optimiser finds what the other
#              presets tell gcc not to look for, and runs clang-tidy only over 16 of them
#   --analyze  runs the static analyzers instead, clang's and gcc's (-fanalyzer), and prints what findings.txt lacks
# clang-tidy takes five seconds for each file; build/lint keeps which preprocessed files are clean.
set -eu
cd "$(dirname "$0")/.."
fix="" analyze="" changed=""
case ${1:-} in
--fix) fix=1 ;;
--changed) changed=1 ;;
--analyze) analyze=1 ;;
esac
case ${1:-} in
--compile | --tidy) # one file, by this script itself
  compile=$(grep -m 1 -B 2 -F "\"file\": \"$PWD/$2\"" build/dev/compile_commands.json | sed -n 's/\\\(.\)/\1/g; s/^ *"command": "\(.*\) -o .*/\1/p')
  [ "$1" = --tidy ] || { eval "$compile -c $2 -o /dev/null"; exit; }
  key=build/lint/$( (cat .clang-tidy; eval "$compile -E -C $2") | sha256sum | cut -c 1-40)
  [ -e "$key" ] || { clang-tidy-19 --quiet -p build/dev "$2" 2>/dev/null && mkdir -p build/lint && : >"$key"; }
  exit
  ;;
esac
[ -z "$fix$analyze$changed" ] || shift
if [ $# = 0 ]; then
  # shellcheck disable=SC2046 # a list of words
  set -- $(git ls-files '*.c' '*.h' | grep -v '/fixture/')
fi

build=build/dev status=0
[ -f $build/compile_commands.json ] || cmake --preset dev >/dev/null
# shellcheck disable=SC2046 # a list of words
ninja -C $build $(ninja -C $build -t targets all | sed -n 's/^\([^/].*\.pb-c\.h\): .*/\1/p') >/dev/null # what the sources include

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

built() { for file in "$@"; do ! is_built "$file" || echo "$file"; done; } # built FILE ...: those that are
if [ -n "$changed" ]; then
  # shellcheck disable=SC2046 # a list of words
  set -- $({ git diff --name-only HEAD && git log --max-count=50 --name-only --format=; } | grep '\.c$' |
    awk '!seen[$0]++' | while read -r file; do [ ! -f "$file" ] || built "$file"; done | head -n 60)
  printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 -r sh tools/lint.sh --compile || status=1
fi
built "$@" | if [ -n "$changed" ]; then head -n 16; else cat; fi | xargs -P "$(nproc)" -n 1 -r sh tools/lint.sh --tidy || status=1
exit $status
