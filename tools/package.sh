#!/bin/sh
# Makes the Debian packages llmpart, libllmpart-runtime1 and libllmpart-runtime-dev.
#   sh tools/package.sh [FOLDER]   into FOLDER (build/packages)
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/packages}
sh tools/setup.sh
mkdir -p "$out"
out=$(cd "$out" && pwd)
# The router's model is compiled for every processor on which the packages may be installed, not for this one.
cmake --preset release -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX=/usr -DLP_ROUTER_MARCH=baseline -B build/package >/dev/null
cmake --build build/package --parallel
cd build/package
cpack -B "$out" >/dev/null
rm -rf "$out/_CPack_Packages"
ls "$out"
