#!/bin/sh
# Makes sure that the Debian packages are there which building and testing need: as root it installs what is missing,
# otherwise it says what to install and fails. Quick when nothing is missing.
#   sh tools/setup.sh [--all]   --all: also those that only long tests need
set -eu
packages="
  build-essential cmake ninja-build pkg-config git python3 python3-venv
  llvm-19-dev clang-19 lld-19 liblld-19-dev libclang-rt-19-dev
  llvm-19-tools mlir-19-tools clang-format-19 clang-tidy-19
  libprotobuf-c-dev protobuf-c-compiler protobuf-compiler libonnx-dev
  libcurl4-openssl-dev libsqlite3-dev libmicrohttpd-dev curl openssl
  libgsl-dev libyaml-dev libssl-dev libonig-dev libutf8proc-dev libzstd-dev zlib1g-dev
  check libedit2 libjansson-dev spin qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross
"
missing="" optional=""
[ "${1-}" != --all ] || optional="ccache debootstrap lintian buildah chromium fonts-dejavu-core postgresql redis-server"
for package in $packages; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing="$missing $package"
done

# Without these some tests are skipped (OpenCL code, ONNX's own node tests, namespaces, MPI, databases, schemas,
# packages), which is no reason to fail.
install_optional() {
  [ "$(id -u)" = 0 ] || return 0
  for package in ocl-icd-libopencl1 pocl-opencl-icd libonnx-testdata iproute2 libopenmpi-dev openmpi-bin libpq-dev libhiredis-dev python3-jsonschema $optional; do
    dpkg-query -W "$package" >/dev/null 2>&1 && continue
    install="apt-get install -y -qq --no-install-recommends $package"
    DEBIAN_FRONTEND=noninteractive $install >/dev/null 2>&1 || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive $install; } >/dev/null 2>&1 ||
      echo "setup: note: $package cannot be installed; tests that need it are skipped" >&2
  done
}
if [ -z "$missing" ]; then
  install_optional
  exit 0
fi

if [ "$(id -u)" != 0 ]; then
  echo "setup: these Debian 12 packages are missing; install them as root:" >&2
  echo "  apt-get install --no-install-recommends$missing" >&2
  exit 1
fi
echo "setup: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $missing >/dev/null
install_optional
