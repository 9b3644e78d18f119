# Includes point only along the arrows of the tree. First the check proves on a tree with known faults that it finds each.
set -u
here=$LP_SOURCE/tests/structure
check() { # check ROOT
  (cd "$1" && find base ir hwmodels frontend passes backend runtime tools \
    \( -name '*.c' -o -name '*.h' -o -name '*.def' \) 2>/dev/null | LC_ALL=C sort | xargs awk -f "$here/includes.awk")
}
if found=$(check "$here/fixture") || [ "$found" != "$(cat "$here/fixture/expected.txt")" ]; then
  printf 'the check does not find the faults of its fixture; it finds:\n%s\n' "$found"
  exit 1
fi
check "$LP_SOURCE"
