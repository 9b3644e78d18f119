# awk -v rooms=FILE -f includes.awk SOURCE...: prints each include that points against the arrows of the tree, and fails
# when there is one. Sources are named from the root: folder/name or folder/room/name.
#   - A folder may include the folders that `may` lists, by their public headers: those at the top of the folder, and
#     those that a line "public: HEADER ..." of the rooms file names.
#   - Within a folder a room may include itself, the folder it stands in, the rooms in it, and those that its line, or
#     that of the room it stands in, lists: "ROOM: ROOM ...".
BEGIN {
  may["base"] = ""
  may["ir"] = "base"
  may["hwmodels"] = "base ir"
  may["frontend"] = "base ir"
  may["passes"] = "base ir hwmodels"
  may["backend"] = "base ir hwmodels"
  may["proof"] = "base"
  may["runtime"] = "base"
  may["fleet"] = "base ir hwmodels passes runtime"
  may["tools"] = "base ir hwmodels frontend passes backend proof runtime fleet"
  while ((getline line <rooms) > 0) {
    sub(/#.*/, "", line)
    count = split(line, word, " ")
    if (!count) continue
    key = word[1]
    sub(/:$/, "", key)
    for (i = 2; i <= count; i++)
      if (key == "public") public[word[i]]
      else allowed[key, word[i]]
  }
}

function complain(why) {
  printf "%s:%d: %s\n", FILENAME, FNR, why
  bad = 1
}

function folder_of(path) {
  return path ~ /\// ? substr(path, 1, index(path, "/") - 1) : ""
}

function room_of(path) {
  sub(/\/[^\/]*$/, "", path)
  return path
}

function within(room, outer) { # is it the room itself, or does it stand in it?
  return index(room "/", outer "/") == 1
}

function listed(room, other) {
  for (; room ~ /\//; room = room_of(room))
    if ((room, other) in allowed) return 1
  return 0
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
  line = $0
  sub(/^[^"<]*/, "", line)
  system_header = line ~ /^</
  sub(/^["<]/, "", line)
  sub(/[">].*/, "", line)
  source = FILENAME
  sub(/^\.\//, "", source)
  from = folder_of(source)
  to = folder_of(line)
  if (system_header) {
    if (line ~ /^llvm/ && from != "backend") complain("only backend/ knows LLVM: " line)
    next
  }
  if (line ~ /\.\./) complain("name headers from the root: " line)
  else if (to == "") next
  else if (to == from) {
    a = room_of(source)
    b = room_of(line)
    if (!within(a, b) && !within(b, a) && !listed(a, b) && !(line in public)) complain(a "/ may not include " b "/: " line)
  } else if (index(" " may[from] " ", " " to " ") == 0) complain(from "/ may not include " to "/: " line)
  else if (line ~ /_internal\.h$/ || !(line in public) && line !~ /\.def$/ && room_of(line) != to) complain(to "/ keeps this header to itself: " line)
}

END { exit bad }
