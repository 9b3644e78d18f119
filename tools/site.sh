#!/bin/sh
# Makes a website of the documents: site.sh [OUT] writes to OUT (build/site), with MkDocs (pip install mkdocs). Pages
# are those of docs/ and the README of each example. The reference comes from sources: the options of each subcommand
# from the command, the C library from its header, JSON from docs/schemas/.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/site}
python=${LP_PYTHON:-python3}
llmpart=${LLMPART:-build/release/tools/llmpart}
"$python" -c 'import mkdocs' 2>/dev/null || { echo "site: $python has no mkdocs: pip install mkdocs" >&2; exit 1; }
[ -x "$llmpart" ] || { echo "site: $llmpart is missing: build it, or name it in LLMPART" >&2; exit 1; }
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
trap 'exit 1' INT TERM HUP
"$python" tools/install/site.py . "$stage" "$llmpart"
case $out in /*) ;; *) out=$PWD/$out ;; esac
"$python" -m mkdocs build --quiet --strict --config-file "$stage/mkdocs.yml" --site-dir "$out"
echo "site: $out/index.html"
