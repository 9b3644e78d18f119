# awk -f comments.awk LIST FILE...: prints each file name in a comment that names no file of the tree, and each comment
# beyond 120 columns, and fails when there is one. LIST has a line for each path of the tree. A name is right when it is
# a path from the root, when a file of that name (or of a path that ends in it) lies beside or below the folder of the
# comment, or when exactly one file of the tree is called so. Files are named from the root. C files have comments
# between /* and */, all others after a #.
# `outside` are files of other projects, files that the build generates and names that stand for any file.
BEGIN {
  n = split("math.h cublasLt.h onnx.proto ContribOperators.md templates.c a.c b.c test_a.c fuzz.c script.sh file.c PAGE.md writer.h", list, " ")
  for (i = 1; i <= n; i++) outside[list[i]] = 1
}

FNR == 1 {
  first = NR == 1
  folder = FILENAME
  sub(/^\.\//, "", folder)
  if (!sub(/\/[^\/]*$/, "", folder)) folder = ""
  in_comment = 0
  is_c = FILENAME ~ /\.([ch]|def)$/
}

NR == FNR { # the list
  paths[$0] = 1
  name = $0
  sub(/^.*\//, "", name)
  called[name]++
  at[name] = at[name] " " $0
  for (rest = $0; sub(/^[^\/]*\//, "", rest);) tails[rest]++
  next
}

# The text of the line's comments.
function comment_of(line,    out, start, end) {
  if (!is_c) return match(line, /(^|[ \t])#/) ? substr(line, RSTART) : ""
  while (line != "") {
    if (!in_comment) {
      start = index(line, "/*")
      if (start == 0) return out
      line = substr(line, start + 2)
      in_comment = 1
    }
    end = index(line, "*/")
    if (end == 0) return out " " line
    out = out " " substr(line, 1, end - 1)
    line = substr(line, end + 2)
    in_comment = 0
  }
  return out
}

function is_there(word,    name, list, n, i) {
  name = word
  sub(/^.*\//, "", name)
  if (name in outside || word in paths || tails[word] == 1) return 1
  n = split(at[name], list, " ")
  for (i = 1; i <= n; i++)
    if (index(list[i], folder "/") == 1 && substr(list[i], length(list[i]) - length(word)) == "/" word) return 1
  return 0
}

{
  text = comment_of($0)
  line = $0
  gsub(/[\200-\277]/, "", line) # a character is its first byte
  if (length(line) > 120 && text != "" && (is_c || $0 ~ /^[ \t]*#/)) {
    printf "%s:%d: a comment of %d columns, at most 120 are allowed\n", FILENAME, FNR, length(line)
    bad = 1
  }
  while (match(text, /[A-Za-z0-9_.\/-]*[A-Za-z0-9_]\.(c|h|def|md|awk|cmake|py|sh|proto)([^A-Za-z0-9_.\/-]|[.,:;)]*$|[.,:;)]+[ ])/)) {
    before = RSTART > 1 ? substr(text, RSTART - 1, 1) : " "
    word = substr(text, RSTART, RLENGTH)
    text = substr(text, RSTART + RLENGTH - 1)
    sub(/[^A-Za-z0-9_]+$/, "", word)
    if (before ~ /[<*$%{}~]/ || word ~ /^[\/.]/ || word ~ /^(FILE|NAME|X|x)\./) continue
    if (!is_there(word)) {
      printf "%s:%d: no file '%s'\n", FILENAME, FNR, word
      bad = 1
    }
  }
}

END { exit bad }
