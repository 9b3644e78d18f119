# Includes point only along the arrows of the tree and of its rooms (rooms.txt), which have no circles. First the check
# proves on a tree with known faults that it finds each.
set -u
here=$LP_SOURCE/tests/structure
check() { # check ROOT ROOMS
  (cd "$1" && find base ir hwmodels frontend passes backend proof runtime fleet tools \
    \( -name '*.c' -o -name '*.h' -o -name '*.def' \) 2>/dev/null | LC_ALL=C sort | xargs awk -v rooms="$2" -f "$here/includes.awk")
}
acyclic() { # acyclic ROOMS: prints a circle of rooms, if there is one
  sed 's/#.*//; /^public:/d; s/://' "$1" | awk '{ for (i = 2; i <= NF; i++) print $1, $i }' | tsort 2>&1 >/dev/null
}
if found=$(check "$here/fixture" "$here/fixture/rooms.txt") || [ "$found" != "$(cat "$here/fixture/expected.txt")" ]; then
  printf 'the check does not find the faults of its fixture; it finds:\n%s\n' "$found"
  exit 1
fi
[ -n "$(acyclic "$here/fixture/rooms.txt")" ] || { echo 'the check does not find the circle of its fixture'; exit 1; }
circle=$(acyclic "$here/rooms.txt")
[ -z "$circle" ] || { printf 'rooms include each other in a circle:\n%s\n' "$circle"; exit 1; }
check "$LP_SOURCE" "$here/rooms.txt"
