#!/bin/sh
# Fills a folder with the arm64 libraries that the runtime links, from Debian, without touching the system: for cross
# builds with cmake/aarch64.cmake. Usage: tools/sysroot-aarch64.sh FOLDER
set -eu
sysroot=${1:?usage: tools/sysroot-aarch64.sh FOLDER}
packages="libpcre2-8-0 libpcre2-dev libutf8proc2 libutf8proc-dev libprotobuf-c1 libprotobuf-c-dev libssl3 libssl-dev
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
rm -rf "$sysroot/apt" "$sysroot/debs"
echo "$packages" >"$sysroot/.complete"
