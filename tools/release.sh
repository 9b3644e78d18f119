#!/bin/sh
# Makes a release of the version in CMakeLists.txt and tags the commit:
#   sh tools/release.sh [FOLDER]   writes to FOLDER (build/release-VERSION)
# the Debian packages, the wheel, the sources, their checksums, and the wheel's bill of materials (CycloneDX). The tree
# must be clean, and CHANGELOG.md must have a section of this version with its date.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(llmpart VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
out=${1:-build/release-$version}
stop() { echo "release: $*" >&2; exit 1; }
[ -z "$(git status --porcelain)" ] || stop 'the tree has changes that are not committed'
grep -Eq "^## $version, [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md || stop "CHANGELOG.md has no section '## $version, YEAR-MONTH-DAY'"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || stop "the tag v$version exists"
mkdir -p "$out"
sh tools/package.sh "$out"
sh tools/package.sh --wheel "$out"
git archive --format=tar.gz --prefix="llmpart-$version/" -o "$out/llmpart-$version.tar.gz" HEAD
build/venv-wheel/bin/python - "$out" "$version" <<'PY'
import sys
import zipfile
from pathlib import Path

out, version = Path(sys.argv[1]), sys.argv[2]
with zipfile.ZipFile(next(out.glob("llmpart-*.whl"))) as wheel:
    name = next(n for n in wheel.namelist() if n.endswith(".cdx.json"))
    (out / f"llmpart-{version}.cdx.json").write_bytes(wheel.read(name))
PY
(cd "$out" && sha256sum -- *.deb *.whl *.tar.gz *.json >SHA256SUMS)
git tag -a "v$version" -m "llmpart $version"
echo "$out is ready; push the tag v$version and attach the files:"
ls "$out"
