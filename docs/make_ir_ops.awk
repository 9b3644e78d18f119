# Writes docs/ops.md from ir/ops.def: awk -f docs/make_ir_ops.awk ir/ops.def >docs/ops.md
#
# A comment directly above an entry is its page. A comment with a line of dashes is the heading of the entries after it. ONNX describes its own operators, and docs/operators.md lists them: only the others get a section.

BEGIN {
  print "# Operators\n"
  print "Made from `ir/ops.def` by `awk -f docs/make_ir_ops.awk ir/ops.def >docs/ops.md`; do not edit it by hand. [ir.md](ir.md)"
  print "explains levels, types and attributes.\n"
  print "Counts are minimum to maximum; `any` is no limit. An attribute with `?` may be left out. *Rule* is the type check of"
  print "`ir/rules.c`, *cost* the closed form in `ir/cost.c`. ONNX describes its own operators: [operators.md](operators.md) lists"
  print "those that llmpart reads, and comments in `ir/ops.def` note where their form in the IR differs."
  started = 0
}

function counts(least, most) {
  if (least == most) return least
  return most == -1 ? least " to any" : least " to " most
}

# "LP_PURE | LP_LINEAR_OP" -> "pure, linear_op"
function traits_text(text) {
  if (text == "EW") return "pure, elementwise"
  sub(/^EW \| /, "LP_PURE | LP_ELEMENTWISE | ", text)
  gsub(/LP_/, "", text)
  gsub(/ *\| */, ", ", text)
  return text == "0" ? "none" : tolower(text)
}

# "a:i64 b?:str" -> "`a`: i64, `b?`: str"
function attrs_text(text,    n, i, parts, pair, out) {
  if (text == "*") return "any"
  n = split(text, parts, " ")
  for (i = 1; i <= n; i++) {
    split(parts[i], pair, ":")
    out = out (i > 1 ? ", " : "") "`" pair[1] "`: " pair[2]
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

function section(n,    line) {
  printf "%s", heading
  heading = ""
  printf "\n### `%s`\n\n", f[2]
  if (comment != "") printf "%s\n\n", comment
  line = "operands " counts(f[3], f[4]) "; results " counts(f[5], f[6])
  if (f[8] != "") line = line "; attributes " attrs_text(f[8])
  if (traits_text(f[7]) != "none") line = line "; traits " traits_text(f[7])
  if (n >= 10 && f[9] == f[10]) line = line "; rule and cost `" f[9] "`"
  else if (n >= 10) line = line "; rule `" f[9] "`, cost `" f[10] "`"
  print toupper(substr(line, 1, 1)) substr(line, 2) "."
}

function end_comment() {
  gsub(/ +/, " ", comment)
  gsub(/^ +| +$/, "", comment)
  if (!started) comment = "" # the file's own comment
  started = 1
  if (comment ~ /^----/) {
    gsub(/^-+ *| *-+$/, "", comment)
    heading = sprintf("\n## %s%s\n", toupper(substr(comment, 1, 1)), substr(comment, 2))
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
  n = columns(text)
  if (kind != "LP_ONNX") section(n)
  comment = ""
}
