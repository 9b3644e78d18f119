#!/bin/sh
# Sets the machine up, builds llmpart as it is released, and runs every test: tools/test.sh [ctest options].
set -eu
cd "$(dirname "$0")/.."
sh tools/setup.sh
cmake --preset release
cmake --build --preset release --parallel
ctest --preset release --parallel 2 "$@"
