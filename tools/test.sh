#!/bin/sh
# Sets the machine up, builds llmpart as it is released, and runs the tests (tests/README.md).
#   sh tools/test.sh [ctest option ...]   the quick tests: 5 to 9 minutes on 2 cores, with the build
#   sh tools/test.sh --all [PART ...]     the parts quick, long, asan, tsan and lint, about an hour; or the named
#                                         ones, of which `soak` runs what these do over more inputs
# A part that fails does not keep the others from running. A test that fails runs once more, because many tests talk
# over sockets under time limits and the machine may be busy with other work. Four run at a time on 2 cores, because
# some wait for sockets and timers. At the end stand the minutes of each part, the tests that were skipped, each with
# its reason, and the tests that failed at first, with the end of what they printed. Everything it makes goes to build/.
set -eu
cd "$(dirname "$0")/.."
# Compiling a model under a sanitizer takes minutes: units and the runtime's commands run there, the backends' suites do
# not.
asan='^(base|ir_|hwmodels|frontend_|passes_|runtime_|router_|serve_|kernels_asan|backend_(bundle|moves|onnx))'
# router_embedded needs a model that is compiled, runtime_tokenizer_random a program that is no test, and
# runtime_chat_limits reaches every limit, which takes a quarter of an hour there.
asan_not='^(router_embedded|runtime_tokenizer_random|runtime_chat_limits)$'
# Those of the runtime that start threads.
tsan='^(runtime_(bundle|verifier|engine|pool|trace|session|resume|plans|collaborate|context|calibrate|link|socket|transport|security|faults|worker|together)|'
tsan="$tsan"'runtime_(store|fair|divided)|router_(store|endpoint|backends))'
parts=quick failed="" minutes=""
if [ "${1-}" = --all ]; then
  shift
  parts=${*:-quick long asan tsan lint}
  set --
  for part in $parts; do
    case $part in quick | long | asan | tsan | lint | soak) ;; *) echo "test: there is no part '$part'" >&2; exit 2 ;; esac
  done
fi

report() {
  [ -z "$minutes" ] || printf '== minutes\n%s' "$minutes"
  if [ -s build/skipped.txt ]; then
    echo "== skipped"
    sort -u build/skipped.txt
  fi
  if [ -s build/failed.txt ]; then
    echo "== failed at least once"
    sort build/failed.txt | uniq -c
    cat build/said.txt
  fi
  [ -z "$failed" ] || echo "test: failed:$failed" >&2
}

# step NAME COMMAND ...: notes the time that the command takes and whether it fails.
step() {
  name=$1 began=$(date +%s)
  shift
  echo "== $name"
  if "$@"; then ended=""; else
    ended=", failed"
    failed="$failed '$name'"
  fi
  minutes="$minutes$(awk -v name="$name$ended" -v s="$(($(date +%s) - began))" 'BEGIN { printf "%5.1f  %s", s / 60, name }')
"
  [ -z "$ended" ]
}

# The source of the openai package that is installed, whose own tests serve_upstream runs.
fetch_openai() {
  version=$("$LP_PYTHON" -c 'import openai; print(openai.__version__)') || return 1
  "$LP_PYTHON" -m pip download -q --disable-pip-version-check --no-deps --no-binary openai -d build/openai "openai==$version" || return 1
  tar -xzf "build/openai/openai-$version.tar.gz" -C build/openai && ln -sfn "openai-$version" build/openai/source
}

# Packages from PyPI for the tests that use some, in build/venv-tests; a test is skipped if its packages are missing.
install_packages() {
  python3 -m venv build/venv-tests || return 0
  for list in tests/gpu/requirements.txt tests/oracle/requirements.txt tests/fleet/requirements.txt tests/python/requirements.txt \
    tests/runtime/serve/requirements.txt \
    examples/smollm2/requirements.txt; do
    "$LP_PYTHON" -m pip install -q --no-compile --disable-pip-version-check -r $list || echo "test: note: pip cannot install what $list names" >&2
  done
  fetch_openai || echo "test: note: the source of PyPI's openai cannot be fetched" >&2
  [ -e build/smollm2/model.onnx ] || "$LP_PYTHON" examples/smollm2/export.py --out build/smollm2 ||
    echo "test: note: SmolLM2 cannot be exported" >&2
}

# kept COMMAND ...: with a cache of objects, where ccache is installed and the caller has no launcher of their own. The
# packages hold what the release build holds, and tests/package builds them in a folder of their own.
kept() {
  if command -v ccache >/dev/null && [ -z "${CMAKE_C_COMPILER_LAUNCHER-}" ]; then
    (export CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_DIR="$PWD/build/ccache" CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1 && "$@")
  else
    "$@"
  fi
}

build() { # build PRESET [REGEX]: everything, or the programs of the tests with matching names
  case $1 in
  release) cmake --preset release -DBUILD_TESTING=ON >/dev/null || return 1 ;; # the demo builds there without
  *) cmake --preset "$1" >/dev/null || return 1 ;;
  esac
  if [ $# = 1 ]; then
    cmake --build --preset "$1" --parallel
  else
    # shellcheck disable=SC2046 # a list of programs
    cmake --build --preset "$1" --parallel --target $(sh tests/programs.sh "build/$1" "$2")
  fi
}

# said LOG: the last 12 lines of each test that failed.
said() {
  awk '/^[0-9]+\/[0-9]+ Testing: / { name = $3 }
    { line[lines++] = $0 }
    /^Output:/ { lines = -1 } # a rule follows
    /^<end of output>/ { end = lines - 1 }
    /^Test (Failed|Timeout)/ {
      print "-- " name
      for (i = end > 12 ? end - 12 : 0; i < end; i++) print substr(line[i], 1, 400)
    }' "$1"
}

# tests PRESET BUILD [ctest option ...]
tests() {
  preset=$1 build=$2 status=0
  shift 2
  ctest --preset "$preset" --parallel 4 --no-tests=error --repeat until-pass:2 "$@" || status=1
  log="$build/Testing/Temporary/LastTest.log"
  sh tests/skipped.sh "$log" >>build/skipped.txt
  awk '/^[0-9]+\/[0-9]+ Testing: / { name = $3 } /^Test (Failed|Timeout)/ { print name }' "$log" >>build/failed.txt
  said "$log" >>build/said.txt
  return $status
}

mkdir -p build
: >build/skipped.txt
: >build/failed.txt
: >build/said.txt
trap report EXIT
case $parts in *long* | *soak*) step 'set up' sh tools/setup.sh --all ;; *) step 'set up' sh tools/setup.sh ;; esac
case $parts in
*long* | *soak*)
  export LP_PYTHON="$PWD/build/venv-tests/bin/python" LP_OPENAI_SOURCE="$PWD/build/openai/source"
  install_packages >build/packages.log 2>&1 &
  packages=$!
  ;;
esac
case $parts in
*long* | *soak*) step 'build release' kept build release && built=yes || built="" ;;
*quick*) step 'build release' build release && built=yes || built="" ;;
esac
case $parts in
*long* | *soak*)
  step 'wait for packages' wait "$packages" || true
  grep '^test: note' build/packages.log || true
  ;;
esac
for part in $parts; do
  case $part in
  quick) [ -z "$built" ] || step 'quick tests' tests release build/release "$@" || true ;;
  long) [ -z "$built" ] || step 'long tests' kept tests release-long build/release || true ;;
  soak)
    [ -z "$built" ] || step 'soak' kept tests release-soak build/release || true
    step 'build dev' build dev '^e2e-bind$' || true # the other presets tell gcc not to look for some defects
    step 'lint of all files' sh tools/lint.sh || true
    ;;
  asan) step 'build asan' build asan "$asan" && step 'tests under AddressSanitizer' tests asan build/asan -R "$asan" -E "$asan_not" || true ;;
  lint) step 'lint' sh tools/lint.sh --changed || true ;;
  tsan) step 'build tsan' build tsan "$tsan" && step 'tests under ThreadSanitizer' tests tsan build/tsan -R "$tsan" || true ;;
  esac
done
[ -z "$failed" ]
