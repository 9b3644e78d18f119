# Writes docs/ops.md from ir/ops.def: awk -f docs/make_ir_ops.awk ir/ops.def >docs/ops.md
#
# A comment directly above an entry is its page. A comment that does not end with a full stop is a heading, a line of
# dashes included. ONNX's own operators are described by ONNX: they get a table, the others a section each.

BEGIN {
  print "# Operators\n"
  print "Made from `ir/ops.def` by `awk -f docs/make_ir_ops.awk ir/ops.def >docs/ops.md`; do not edit it by hand. [ir.md](ir.md)"
  print "explains levels, types and attributes.\n"
  print "Counts are minimum to maximum; `any` is no limit. An attribute with `?` may be left out. *Rule* is the shape rule of"
  print "`ir/infer*.c` (ONNX) or the type check of `ir/rules.c`; *cost* the closed form in `ir/cost.c`; *lowering* the rule"
  print "in `passes/lower/`."
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
  if (text == "") return "none"
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

function onnx_link(name,    plain) {
  plain = name
  sub(/^.*\./, "", plain)
  if (name ~ /^com\.microsoft\./)
    return "https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#" name
  return "https://onnx.ai/onnx/operators/onnx__" plain ".html"
}

function onnx_row() {
  if (!in_table) {
    print "\n| operator | operands | results | attributes | traits | rule | lowering |"
    print "| --- | --- | --- | --- | --- | --- | --- |"
    in_table = 1
  }
  printf "| [`%s`](%s) | %s | %s | %s | %s | %s | %s |\n", f[2], onnx_link(f[2]), counts(f[3], f[4]), counts(f[5], f[6]),
         attrs_text(f[8]), traits_text(f[7]), f[9], f[10]
  if (comment != "") notes = notes "\n`" f[2] "`: " comment "\n"
}

function end_table() {
  if (notes != "") printf "%s", notes
  in_table = 0
  notes = ""
}

function section(n) {
  end_table()
  printf "\n### `%s`\n\n", f[2]
  if (comment != "") printf "%s\n\n", comment
  printf "* operands %s, results %s\n", counts(f[3], f[4]), counts(f[5], f[6])
  printf "* attributes: %s\n", attrs_text(f[8])
  printf "* traits: %s\n", traits_text(f[7])
  if (n >= 10) printf "* rule `%s`, cost `%s`\n", f[9], f[10]
}

function heading(text, mark) {
  end_table()
  printf "\n%s %s%s\n", mark, toupper(substr(text, 1, 1)), substr(text, 2)
}

function end_comment() {
  gsub(/ +/, " ", comment)
  gsub(/^ +| +$/, "", comment)
  if (!started) comment = "" # the file's own comment
  started = 1
  if (comment ~ /^----/) {
    gsub(/^-+ *| *-+$/, "", comment)
    heading(comment, "##")
    comment = ""
  } else if (comment != "" && comment !~ /\.$/) {
    end_table()
    printf "\n%s:\n", comment
    comment = ""
  }
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
  if (kind == "LP_ONNX") onnx_row()
  else section(n)
  comment = ""
}
END { end_table() }
