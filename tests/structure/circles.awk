# nm -A -g OBJECT... | awk -f circles.awk: prints "CALLER CALLED SYMBOL" for each symbol of a source file of a top-level
# folder that another source file of that folder uses. Files are named from the root: folder/room/name.
function source(object,   folder, file) {
  folder = file = object
  sub(/\/?CMakeFiles\/.*/, "", folder)      # runtime/CMakeFiles/lp_runtime.dir/exec/pool.c.o
  sub(/^.*CMakeFiles\/[^\/]*\.dir\//, "", file)
  sub(/\.o$/, "", file)
  return folder "/" file
}
function top(file) {
  return substr(file, 1, index(file, "/") - 1)
}
{
  object = $0
  sub(/:.*/, "", object)
  line = substr($0, length(object) + 2)
  count = split(line, part, " ")
  symbol = part[count]
  file = source(object)
  if (part[count - 1] == "U") used[file, symbol] = 1
  else if (part[count - 1] ~ /^[TDBRVWC]$/) defined[symbol] = file
}
END {
  for (pair in used) {
    split(pair, name, SUBSEP)
    to = defined[name[2]]
    if (to != "" && to != name[1] && top(to) == top(name[1])) print name[1], to, name[2]
  }
}
