#!/bin/sh
# Sets the machine up, builds llmpart as it is released, and runs the tests (tests/README.md).
#   sh tools/test.sh [ctest option ...]   the quick tests: at most 8 minutes on 2 cores, with the build
#   sh tools/test.sh --all                also the long ones, those that need packages from PyPI, and the sanitizers: an
#   hour at most
# At the end stand the tests that were skipped, each with its reason. Everything it makes goes to build/.
set -eu
cd "$(dirname "$0")/.."
all=
[ "${1-}" = --all ] && all=yes && shift
failed=""

# Packages that tests --all need, in build/venv-tests; a test whose packages are not there is skipped.
install_packages() {
  export LP_PYTHON="$PWD/build/venv-tests/bin/python"
  python3 -m venv build/venv-tests || return 0
  for list in tests/gpu/requirements.txt examples/smollm2/requirements.txt; do
    "$LP_PYTHON" -m pip install -q --disable-pip-version-check -r $list || echo "test: note: pip cannot install what $list names" >&2
  done
  [ -e build/smollm2/model.onnx ] || "$LP_PYTHON" examples/smollm2/export.py --out build/smollm2 >build/smollm2.log 2>&1 ||
    echo "test: note: SmolLM2 cannot be exported: $(tail -n 1 build/smollm2.log)" >&2
}

# run PRESET BUILD [option ...]: one run of ctest; what it skips is listed at the end.
run() {
  preset=$1 build=$2
  shift 2
  echo "== tests: $preset"
  ctest --preset "$preset" --parallel 2 --no-tests=error "$@" || failed="$failed $preset"
  sh tests/skipped.sh "$build/Testing/Temporary/LastTest.log" >>build/skipped.txt
}

build() { # build PRESET [cmake option ...]
  cmake --preset "$@" >/dev/null
  cmake --build --preset "$1" --parallel
}

sh tools/setup.sh
build release -DBUILD_TESTING=ON # the demo builds there without
: >build/skipped.txt
run release build/release "$@"
if [ "$all" ]; then
  install_packages
  run release-long build/release
  # Compiling a model under a sanitizer takes minutes: units and the runtime's commands run there, the backends' suites
  # do not.
  build asan
  run asan build/asan -R '^(base|ir_|hwmodels|frontend_|passes_|runtime_|router_|serve_|kernels_asan|backend_(bundle|moves|onnx))'
  build tsan
  run tsan build/tsan -R '^(runtime_|router_|serve_)'
fi

if [ -s build/skipped.txt ]; then
  echo "== skipped"
  sort -u build/skipped.txt
fi
[ -z "$failed" ] || { echo "test: failed:$failed" >&2; exit 1; }
