# The source files of a top-level folder call each other without circles, and so do its rooms: read from the symbols of
# the object files, not from includes. A room and the folder that holds it are not compared: a folder's own files hold
# the tables of its rooms.
set -u
here=$LP_SOURCE/tests/structure
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# circles CALLS: the circles in lines of "CALLER CALLED SYMBOL", as the calls between their members. Fails when there is
# one.
circles() {
  awk '{ print $1, $2 }' "$1" | LC_ALL=C sort -u | tsort 2>"$work/loops" >/dev/null
  [ -s "$work/loops" ] || return 0
  sed -n 's/^tsort: \([^:]*\.c\|[a-z_/]*\)$/\1/p' "$work/loops" | LC_ALL=C sort -u >"$work/members"
  awk 'NR == FNR { member[$1]; next } $1 in member && $2 in member' "$work/members" "$1" | LC_ALL=C sort -u
  return 1
}

# rooms CALLS: the calls between rooms of one folder.
rooms() {
  awk '
    function room(file) { sub(/\/[^\/]*$/, "", file); return file }
    function within(a, b) { return index(a "/", b "/") == 1 }
    { from = room($1); to = room($2) }
    from ~ /\// && to ~ /\// && !within(from, to) && !within(to, from) { print from, to, $3 "(" $1 ")" }' "$1"
}

# check CALLS: complains of circles.
check() {
  status=0
  circles "$1" >"$work/files" || { echo 'files call each other in circles:'; cat "$work/files"; status=1; }
  rooms "$1" >"$work/between"
  circles "$work/between" >"$work/files" || { echo 'rooms call each other in circles:'; cat "$work/files"; status=1; }
  return $status
}

# First the check proves that it finds a circle of files and one of rooms.
awk -f "$here/circles.awk" "$here/fixture/circles.nm" | LC_ALL=C sort >"$work/calls"
if found=$(check "$work/calls") || [ "$found" != "$(cat "$here/fixture/circles.txt")" ]; then
  printf 'the check does not find the circles of its fixture; it finds:\n%s\n' "$found"
  exit 1
fi

cd "$LP_BUILD" || exit 1
find base ir hwmodels frontend passes backend proof runtime fleet tools -name '*.c.o' ! -name '*.pb-c.c.o' 2>/dev/null | LC_ALL=C sort |
  xargs nm -A -g 2>/dev/null | awk -f "$here/circles.awk" | LC_ALL=C sort >"$work/found"
# Objects of sources that are no longer there stay in a build folder.
awk '{ print $1; print $2 }' "$work/found" | sort -u | while read -r file; do [ -e "$LP_SOURCE/$file" ] && echo "$file"; done >"$work/sources"
awk 'NR == FNR { there[$1]; next } $1 in there && $2 in there' "$work/sources" "$work/found" >"$work/calls"
[ "$(wc -l <"$work/calls")" -gt 100 ] || { echo "no calls found among the object files of $LP_BUILD"; exit 1; }
check "$work/calls"
