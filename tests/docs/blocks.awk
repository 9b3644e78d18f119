# Splits a Markdown page into its code blocks, for commands.sh: writes one file per block into the folder `out` and
# prints one line per block: NUMBER KIND LINE ARGUMENT. The kinds:
#   run STATUS         ```sh: must end with STATUS, which is 0 unless the comment before it says otherwise
#   background         ```sh background: a server, which prints "listening" when it is ready
#   file NAME          any block after `<!-- file: NAME -->`: the text of that file
#   skip REASON        ```sh after `<!-- not run: REASON -->`
# A comment counts for the block that follows it, with at most one empty line between.
function begin(info) {
  number++
  path = sprintf("%s/%03d", out, number)
  printf "" >path
  if (comment ~ /^not run: ./) describe("skip", substr(comment, 10))
  else if (comment ~ /^file: ./) describe("file", substr(comment, 7))
  else if (info == "sh background") describe("background", "-")
  else if (info == "sh" && comment ~ /^exit status [0-9]+$/) describe("run", substr(comment, 13))
  else if (info == "sh") describe("run", "0")
  else describe("text", "-")
  inside = 1
}
function describe(kind, argument) { printf "%03d %s %d %s\n", number, kind, FNR + 1, argument }

/^```/ {
  if (inside) { inside = 0; close(path) }
  else begin(substr($0, 4))
  comment = ""
  next
}
inside { print >path; next }
/^<!-- .* -->$/ { comment = substr($0, 6, length($0) - 9); empty = 0; next }
/^$/ { if (++empty > 1) comment = ""; next }
{ comment = "" }
END { if (inside) { print "000 unclosed 0 -" } }
