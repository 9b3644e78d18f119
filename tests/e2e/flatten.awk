# From manifest.json, as llmpart writes it (a member per line), to lines for foreign_run.c:
#   vocab N | state ELEMENTS-PER-POSITION | program NAME LAYOUT BUFFERS | input BUFFER | run SEGMENT | output BUFFER
function text(    parts) { split($0, parts, "\""); return parts[4] }
function number(    value) { value = $0; gsub(/[^0-9]/, "", value); return value }
/^ "states"/ { part = "states"; next }
/^ "inputs"/ { part = "inputs" }
/^ "programs"/ { part = "programs"; next }
/^ "vocab"/ { print "vocab", number() }
part == "states" && /"shape"/ { product = 1; shape = 1; next }
part == "states" && shape && /\]/ { print "state", product; shape = 0 }
part == "states" && shape && /"[0-9]+"/ { product *= number() }
part == "programs" && /^  "[a-z]+": \{/ { split($0, quoted, "\""); name = quoted[2] }
part == "programs" && /"device": "/ { layout = text() }
part == "programs" && /"device": [0-9]/ { print "program", name, layout, number() }
part == "programs" && /"op":/ { op = text() }
part == "programs" && op == "run" && /"segment":/ { print "run", text() }
part == "programs" && (op == "input" || op == "output") && /"buffer":/ { print op, number() }
