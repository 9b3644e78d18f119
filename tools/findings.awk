# Compares what the static analyzers say with the findings that are known to be none.
#   awk -v root=FOLDER/ -v known=LIST -f findings.awk REPORT
# REPORT has the lines of gcc and clang-tidy, "PATH:LINE:COLUMN: error: TEXT [CHECK]". A line of LIST is
# "FILE | CHECK | SOURCE LINE" without its indentation, so that it holds until that line changes; lines that begin with
# "#" say why the findings below them are none. Prints the findings that LIST lacks, and then its lines for files of
# REPORT that nothing matches. Exit status 1: LIST lacks one.
function trimmed(text) {
  gsub(/^[ \t]+|[ \t\r]+$/, "", text)
  return text
}
function source_line(path, wanted,   text, at) {
  text = ""
  for (at = 1; at <= wanted && (getline text < path) > 0; at++);
  close(path)
  return trimmed(text)
}
BEGIN {
  while ((getline text < known) > 0)
    if (text !~ /^#/ && text != "") listed[text] = ++count
}
match($0, /^[^: ]+:[0-9]+:[0-9]+: (fatal error|error|warning): /) {
  split($0, part, ":")
  path = part[1]
  sub(/^(\.\.\/)+/, "", path) # gcc's are those of the build folder
  file = index(path, root) == 1 ? substr(path, length(root) + 1) : path
  check = "none"
  if (match($0, /\[[^][]*\]$/)) check = substr($0, RSTART + 1, RLENGTH - 2)
  sub(/^-Werror=|^-W/, "", check)
  sub(/,-warnings-as-errors$/, "", check)
  key = file " | " check " | " source_line(path, part[2])
  seen[file] = 1
  if (!(key in listed)) {
    if (!(key in told)) print $0 "\n  " key
    told[key] = bad = 1
  }
  found[key] = 1
}
END {
  for (key in listed) {
    file = key
    sub(/ \|.*/, "", file)
    if (file in seen && !(key in found)) stale[listed[key]] = key
  }
  for (i = 1; i <= count; i++)
    if (i in stale) print known ": not found any more: " stale[i]
  exit bad
}
