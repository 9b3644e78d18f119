# Writes docs/ops.md from ir/ops.def: awk -f docs/make_ir_ops.awk ir/ops.def >docs/ops.md
#
# A comment directly above an entry is its text. A comment with a line of dashes is the heading of the entries after it.
# ONNX describes its own operators, and docs/operators.md lists them: only the others get an entry.

BEGIN {
  print "# Operators\n"
  print "Made from `ir/ops.def` by `awk -f docs/make_ir_ops.awk ir/ops.def >docs/ops.md`; do not edit it by hand. [ir.md](ir.md)"
  print "explains levels, types and attributes.\n"
  print "An entry has the numbers of operands and results (`2..9`: at least and at most; `1..`: no limit), the attributes with their types"
  print "(`?`: may be left out), the traits, and the meaning. ONNX describes its own operators: [operators.md](operators.md) lists"
  print "those that llmpart reads, and comments in `ir/ops.def` note where their form in the IR differs."
  started = 0
}

function counts(least, most) {
  if (least == most) return least
  return least ".." (most == -1 ? "" : most)
}

# "LP_PURE | LP_LINEAR_OP" -> "pure, linear_op"
function traits_text(text) {
  if (text == "EW") return "pure, elementwise"
  sub(/^EW \| /, "LP_PURE | LP_ELEMENTWISE | ", text)
  gsub(/LP_/, "", text)
  gsub(/ *\| */, ", ", text)
  return text == "0" ? "none" : tolower(text)
}

# "a:i64 b?:str" -> "`a:i64`, `b?:str`"
function attrs_text(text,    n, i, parts, out) {
  if (text == "*") return "any"
  n = split(text, parts, " ")
  for (i = 1; i <= n; i++) {
    out = out (i > 1 ? ", " : "") "`" parts[i] "`"
  }
  return out
}

# Splits an entry's columns at commas outside quotes into f[1..n].
function columns(text,    i, c, quoted, n) {
  n = 1
  delete f
  for (i = 1; i <= length(text); i++) {
    c = substr(text, i, 1)
    if (c == "\"") quoted = !quoted
    else if (c == "," && !quoted) n++
    else f[n] = f[n] c
  }
  for (i = 1; i <= n; i++) gsub(/^ +| +$/, "", f[i])
  return n
}

function entry(    line) {
  printf "%s", heading
  heading = ""
  line = "* `" f[2] "` " counts(f[3], f[4]) " -> " counts(f[5], f[6])
  if (f[8] != "") line = line ", " attrs_text(f[8])
  if (traits_text(f[7]) != "none") line = line "; " traits_text(f[7])
  print line "." (comment != "" ? " " comment : "")
}

function end_comment() {
  gsub(/ +/, " ", comment)
  gsub(/^ +| +$/, "", comment)
  if (!started) comment = "" # the file's own comment
  started = 1
  if (comment ~ /^----/) {
    gsub(/^-+ *| *-+$/, "", comment)
    heading = sprintf("\n## %s%s\n\n", toupper(substr(comment, 1, 1)), substr(comment, 2))
    comment = ""
  } else if (comment !~ /\.$/) comment = ""
}

/^\/\*/ { comment = ""; in_comment = 1 }
in_comment {
  line = $0
  done = sub(/\*\/.*$/, "", line)
  sub(/^\/\*/, "", line)
  sub(/^ \* ?/, "", line)
  comment = comment " " line
  if (done) { in_comment = 0; end_comment() }
  next
}
/^LP_(STRUCT|ONNX|LAYER|OPERATOR)\(/ {
  kind = $0
  sub(/\(.*/, "", kind)
  text = $0
  sub(/^[A-Z_]*\(/, "", text)
  sub(/\) *$/, "", text)
  columns(text)
  if (kind != "LP_ONNX") entry()
  comment = ""
}
