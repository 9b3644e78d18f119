#!/bin/sh
# Sets the machine up, builds llmpart as it is released, and runs every test: tools/test.sh [ctest options].
set -eu
cd "$(dirname "$0")/.."
sh tools/setup.sh
cmake --preset release -DBUILD_TESTING=ON # the demo builds there without
cmake --build --preset release --parallel
ctest --preset release --parallel 2 --no-tests=error "$@"
