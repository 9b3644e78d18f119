# Comments name only files that exist, and fit 120 columns. First the check proves on a tree with known faults that it
# finds each.
set -u
here=$LP_SOURCE/tests/structure
cd "$here/comments" || exit 1
if found=$(awk -f "$here/comments.awk" list.txt base/named.c base/named.h ir/script.sh) || [ "$found" != "$(cat expected.txt)" ]; then
  printf 'the check does not find the faults of its fixture; it finds:\n%s\n' "$found"
  exit 1
fi
cd "$LP_SOURCE" || exit 1
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
find . -type f ! -path './.git/*' ! -path './build/*' ! -path './shared/*' ! -path '*/.venv/*' ! -path '*/venv/*' \
  ! -path './tests/structure/fixture/*' ! -path './tests/structure/comments/*' | sed 's|^\./||' | LC_ALL=C sort >"$work/list"
grep -E '\.(c|h|def|cmake|sh|awk|py|yaml|proto)$|(^|/)CMakeLists\.txt$' "$work/list" | grep -v '^tests/structure/comments\.awk$' |
  xargs awk -f "$here/comments.awk" "$work/list"
