# No source file is longer than 1,000 lines.
set -u
too_long() { # too_long LIMIT: files below $LP_SOURCE
  (cd "$LP_SOURCE" && find base ir hwmodels frontend passes backend proof runtime tools python tests cmake examples docs \
    -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.py' -o -name '*.sh' -o -name '*.cmake' -o -name '*.awk' \) \
    ! -path '*/.venv/*' ! -path '*/venv/*' 2>/dev/null | sort | while read -r file; do
      lines=$(wc -l <"$file")
      [ "$lines" -le "$1" ] || echo "$file: $lines lines, at most $1 are allowed"
    done)
}
# With a limit of 10 this very script must be found: a search that finds nothing would pass for ever.
too_long 10 | grep -q '^tests/structure/size.sh:' || { echo 'the search finds no files'; exit 1; }
found=$(too_long 1000)
[ -z "$found" ] || { echo "$found"; exit 1; }
