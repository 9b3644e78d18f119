# No cell of a table is longer than 120 characters: longer text belongs below the table. Code blocks are left out.
# cells.sh [PAGE.md]: of this page only.
set -eu
: "${LP_SOURCE:?is set by ctest}"
cd "$LP_SOURCE"
[ $# != 0 ] || set -- README.md CONTRIBUTING.md docs examples tests/README.md
found=$(find "$@" -name '*.md' ! -path '*/build/*' | sort | xargs awk '
  FNR == 1 { inside = 0 }
  /^```/ { inside = !inside; next }
  inside || !/^ *\|/ { next }
  {
    line = $0
    gsub(/\\\|/, "/", line) # a bar within a cell
    count = split(line, cell, "|")
    for (i = 2; i < count; i++) {
      gsub(/^ +| +$/, "", cell[i])
      if (length(cell[i]) > 120) print FILENAME ":" FNR ": a cell of " length(cell[i]) " characters: " substr(cell[i], 1, 60)
    }
  }')
[ -z "$found" ] || { echo "$found"; exit 1; }
