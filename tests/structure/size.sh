# No source file is longer than 500 lines, but for those of long_files.txt, which says how long each may be.
set -u
list=$LP_SOURCE/tests/structure/long_files.txt
too_long() { # too_long LIMIT: files below $LP_SOURCE, and entries of the list that are not needed
  (cd "$LP_SOURCE" && find base ir hwmodels frontend passes backend proof runtime fleet tools python tests cmake examples docs \
    -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.py' -o -name '*.sh' -o -name '*.cmake' -o -name '*.awk' \) \
    ! -path '*/.venv/*' ! -path '*/venv/*' -exec wc -l {} + 2>/dev/null) | LC_ALL=C sort -k 2 | awk -v limit="$1" '
      NR == FNR { if ($1 !~ /^#/) most[$1] = $2; next }
      $2 == "total" { next }
      $2 in most && $1 <= limit { print $2 ": " $1 " lines: it leaves long_files.txt" }
      $1 > ($2 in most ? most[$2] : limit) { print $2 ": " $1 " lines, at most " ($2 in most ? most[$2] : limit) " are allowed" }
      { delete most[$2] }
      END { for (file in most) print file ": is not there: it leaves long_files.txt" }' "$list" -
}
# With a limit of 10 this very script must be found: a search that finds nothing would pass for ever.
too_long 10 | grep -q '^tests/structure/size.sh: .* at most 10 ' || { echo 'the search finds no files'; exit 1; }
# And with one of 5,000 every entry of the list is one that is not needed.
[ "$(too_long 5000 | grep -c 'leaves long_files.txt')" = "$(grep -vc '^#' "$list")" ] || { echo 'entries that are not needed are not found'; exit 1; }
found=$(too_long 500)
[ -z "$found" ] || { echo "$found"; exit 1; }
