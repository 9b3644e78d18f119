# awk -f includes.awk FILE...: prints each include that points against the arrows of the tree, and fails when there is
# one. Files are named from the root: folder/name. Each folder may include itself, `may` and the system. A subfolder in `only`
# may include itself and what is listed there, nothing else of the project.
BEGIN {
  may["base"] = ""
  may["ir"] = "base"
  may["hwmodels"] = "base ir"
  may["frontend"] = "base ir"
  may["passes"] = "base ir hwmodels"
  may["backend"] = "base ir hwmodels"
  may["runtime"] = "base"
  may["tools"] = "base ir hwmodels frontend passes backend runtime"
  only["tools/certificate"] = "base" # the checker of certificates shares no code with the planner
}

function complain(why) {
  printf "%s:%d: %s\n", FILENAME, FNR, why
  bad = 1
}

function folder_of(path) {
  sub(/^\.\//, "", path)
  return path ~ /\// ? substr(path, 1, index(path, "/") - 1) : ""
}

function room_of(path) {
  sub(/^\.\//, "", path)
  sub(/\/[^\/]*$/, "", path)
  return path
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
  line = $0
  sub(/^[^"<]*/, "", line)
  system_header = line ~ /^</
  sub(/^["<]/, "", line)
  sub(/[">].*/, "", line)
  from = folder_of(FILENAME)
  to = folder_of(line)
  if (system_header) {
    if (line ~ /^llvm/ && from != "backend") complain("only backend/ knows LLVM: " line)
    next
  }
  room = room_of(FILENAME)
  if (room in only && room_of(line) != room && index(" " only[room] " ", " " to " ") == 0)
    complain(room "/ may include only " only[room] "/: " line)
  if (line ~ /\.\./) complain("name headers from the root: " line)
  else if (to == "" || to == from) next
  else if (index(" " may[from] " ", " " to " ") == 0) complain(from "/ may not include " to "/: " line)
  else if (line ~ /_internal\.h$/) complain(to "/ keeps this header to itself: " line)
}

END { exit bad }
