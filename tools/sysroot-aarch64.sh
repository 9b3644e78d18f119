#!/bin/sh
# Fills a folder with the arm64 libraries that the runtime links, from Debian, without touching the system: for cross
# builds with cmake/aarch64.cmake. Usage: tools/sysroot-aarch64.sh FOLDER
set -eu
sysroot=${1:?usage: tools/sysroot-aarch64.sh FOLDER}
packages="libonig5 libonig-dev libutf8proc2 libutf8proc-dev libprotobuf-c1 libprotobuf-c-dev libssl3 libssl-dev
  libyaml-0-2 libyaml-dev libgsl27 libgslcblas0 libgsl-dev"
if [ "$(cat "$sysroot/.complete" 2>/dev/null)" = "$packages" ]; then exit 0; fi # the list may have grown
mkdir -p "$sysroot/apt/lists/partial" "$sysroot/apt/cache/archives/partial" "$sysroot/debs"
sysroot=$(cd "$sysroot" && pwd)
options="-oAPT::Architecture=arm64 -oAPT::Architectures=arm64 -oDir::State::Lists=$sysroot/apt/lists
  -oDir::State::status=/dev/null -oDir::Cache=$sysroot/apt/cache -oAPT::Sandbox::User=root"
# shellcheck disable=SC2086  # the lists are meant to be split
apt-get $options update >/dev/null
cd "$sysroot/debs"
# shellcheck disable=SC2086
apt-get $options download $packages >/dev/null
for deb in *.deb; do dpkg -x "$deb" "$sysroot"; done
# Debian has no static Oniguruma: it is built from Debian's source.
curl -fsS -o onig.tar.gz http://deb.debian.org/debian/pool/main/libo/libonig/libonig_6.9.8.orig.tar.gz
echo "26372720bab6733c869a9eb69377f73971138dc5e3eff4a81f5ba8aea5435fb2  onig.tar.gz" | sha256sum -c --quiet
tar xzf onig.tar.gz
cmake -S oniguruma-6.9.8 -B onig -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DBUILD_SHARED_LIBS=OFF \
  -DCMAKE_C_FLAGS="-w -Os -fPIC -ffunction-sections -fdata-sections" >/dev/null
cmake --build onig >/dev/null
cp onig/libonig.a "$sysroot/usr/lib/aarch64-linux-gnu/"
rm -rf "$sysroot/apt" "$sysroot/debs"
echo "$packages" >"$sysroot/.complete"
