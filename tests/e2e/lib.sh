# Functions of the end-to-end tests; each test begins with `. "$LP_SOURCE/tests/e2e/lib.sh"` and ends with `finish`.
set -u
: "${LP_SOURCE:?is set by ctest}" "${LLMPART:?is set by ctest}"
export LLMPART_HOST="${LLMPART_HOST-$LP_SOURCE/tests/models/host.yaml}" # the figures of `host`
name=$(basename "$0" .sh)
work=$(mktemp -d)
started="" # processes to end
failures=0

clean_up() {
  # shellcheck disable=SC2086 # a list of numbers
  [ -z "$started" ] || kill $started 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

fail() { # fail TEXT: notes a failure and goes on
  echo "$name: $*"
  failures=$((failures + 1))
}

finish() {
  [ "$failures" = 0 ] || { echo "$name: $failures failures"; exit 1; }
  exit 0
}

# part quick|long|soak: does this run include the part? ctest runs the parts long and soak as tests of their own, with
# the part as label, and a script that is run by hand does everything. LP_PART is absent or names the parts.
part() { case " ${LP_PART:-$1} " in *" $1 "*) ;; *) return 1 ;; esac; }

# sampled N: of what a loop repeats, is this turn one that the run includes? Each N-th is of the long part, the others
# are of the soak.
turn=0
sampled() {
  turn=$((turn + 1))
  if [ $((turn % $1)) = 0 ]; then part long; else part soak; fi
}

skip() { # skip WHY: ctest counts it as skipped (SKIP_RETURN_CODE)
  [ "$failures" = 0 ] || finish
  echo "$name: skipped: $*"
  exit 77
}

same() { # same WHAT WANTED FOUND
  [ "$2" = "$3" ] || fail "$1: wanted
  $2
found
  $3"
}

# Machines whose figures do not depend on where the test runs, and the cheapest plan; the code is for the processor that
# it runs on.
pair="--device=jetson-nano-p1 --cloud=v100s-p1 --link=lan --objective=cost --march=native"

# compile MODEL OUT [option ...]: without --device and its like, a device alone; without -O, at $LP_LEVEL. A function's
# variables are the script's own, so these have names that no script uses.
compile() {
  lib_model=$1 lib_out=$2
  shift 2
  case "$*" in *-O[0-3]*) ;; *) set -- ${LP_LEVEL:+"$LP_LEVEL"} "$@" ;; esac
  case "$*" in *--device*) ;; *) set -- --device=jetson-nano --march=native "$@" ;; esac
  "$LLMPART" compile "$lib_model" "$@" -o "$lib_out" >"$work/out" 2>"$work/err" || {
    fail "compile $lib_model $*: exit status $?: $(head -n 3 "$work/err")"
    return 1
  }
  sed -i '/; next: llmpart run/d' "$work/err" # what is left are warnings and notes
}

seal() { # seal BUNDLE: computes the seal again after a test has changed lines of the manifest
  sed '/^ "seal": /,$d' "$1/manifest.json" >"$work/unsealed"
  printf ' "seal": "%s"\n}\n' "$(sha256sum <"$work/unsealed" | cut -d ' ' -f 1)" | cat "$work/unsealed" - >"$1/manifest.json"
}

tokens() { # tokens BUNDLE IDS COUNT [option ...]: the ids that are generated, a line 1,2,3 per sequence
  bundle=$1 ids=$2 count=$3
  shift 3
  "$LLMPART" run "$bundle" --tokens="$ids" -n "$count" --threads=1 --ignore-eos -o json "$@" 2>"$work/err" >"$work/json" || {
    echo "run $*: exit status $?: $(head -n 3 "$work/err")"
    return
  }
  sequences "$work/json"
}

# await COMMAND ...: tries the command until it succeeds, for at least three minutes; false when it never did.
await() {
  for _ in $(seq 3600); do
    "$@" && return
    sleep 0.05
  done
  return 1
}

# serve BUNDLE [option ...]: starts a worker at $where (a free port); sets $worker and $address; $work/listening is what
# it prints.
serve() {
  bundle=$1
  shift
  : >"$work/listening"
  "$LLMPART" worker "$bundle" --listen="${where:-127.0.0.1:0}" --threads=1 "$@" 2>"$work/listening" &
  worker=$!
  started="$started $worker"
  await listens_or_ended
  [ -n "$address" ] && return
  fail "the worker does not listen: $(cat "$work/listening")"
  finish
}

listens_or_ended() {
  address=$(sed -n 's/^listening on //p' "$work/listening")
  [ -n "$address" ] || ! kill -0 "$worker" 2>/dev/null
}

sequences() { # sequences JSON: the tokens of each sequence of a run's JSON
  awk '/"sequences":/ { begun = 1 }
       begun && /"tokens": \[/ { inside = 1; line = ""; next }
       inside && /\]/ { inside = 0; print line; next }
       inside { gsub(/[^0-9]/, ""); line = line (line == "" ? "" : ",") $0 }' "$1"
}

rows() { # rows FILE KEY: the lists of tokens.json's KEY, a line each: 1,2,3
  sed -n "s/^ *\"$2\": \[\[\(.*\)\]\],*\$/\1/p" "$1" | sed 's/\], \[/\n/g' | tr -d ' '
}

row() { rows "$1" "$2" | sed -n "$3p"; } # row FILE KEY NUMBER

same_lists() { # same_lists NAME TOKENS.json: $work/NAME.llmpart generates the lists of the first three prompts
  for i in 1 2 3; do
    want=$(row "$2" tokens "$i")
    same "$1, prompt $i" "$want" "$(tokens "$work/$1.llmpart" "$(row "$2" prompts "$i")" "$(length "$want")")"
  done
}

length() { echo "$1" | awk -F, '{ print NF }'; } # length 1,2,3

number() { # number FILE KEY: the first value of "KEY": in a JSON file
  sed -n "s/^.*\"$2\": *\([-0-9.e+]*\).*\$/\1/p" "$1" | head -n 1
}

plan() { # plan MODEL OUT [option ...]: the report as text
  model=$1 out=$2
  shift 2
  "$LLMPART" compile "$model" "$@" --emit=report -o txt >"$out" 2>"$work/err" ||
    fail "plan $model $*: exit status $?: $(head -n 3 "$work/err")"
}

layers() { sed -n 's/^model .*, \([0-9]*\) layers.*/\1/p' "$1"; } # layers REPORT

# share REPORT OF COLUMN: this share of a time, in milliseconds; column 2 is TTFT, 3 TPOT.
share() {
  awk -v share="$2" -v at="$((2 * ($3 - 1)))" 'BEGIN { ms["s"] = 1e3; ms["ms"] = 1; ms["us"] = 1e-3; ms["ns"] = 1e-6 }
    $1 == "total" { print share * $at * ms[$(at + 1)] }' "$1"
}

# refused WHAT PATTERN COMMAND ...: the command must end with exit status $wanted_status (1) and one error that matches
# the extended PATTERN, and leave nothing in $work/made, where it is run with its output.
refused() {
  what=$1 pattern=$2
  shift 2
  rm -rf "$work/made"
  mkdir "$work/made"
  timeout 300 "$@" >"$work/out" 2>"$work/err"
  status=$?
  [ "$status" = "${wanted_status:-1}" ] || fail "$what: exit status $status, wanted ${wanted_status:-1}: $(head -n 3 "$work/err")"
  [ "$(grep -c 'error: ' "$work/err")" = 1 ] || fail "$what: wanted one error, found: $(head -n 5 "$work/err")"
  grep -Eq -e "$pattern" "$work/err" || fail "$what: no message matches '$pattern': $(head -n 3 "$work/err")"
  [ ! -s "$work/out" ] || fail "$what: it printed on stdout: $(head -n 2 "$work/out")"
  [ -z "$(ls -A "$work/made")" ] || fail "$what: it left $(ls -A "$work/made") behind"
}

onnx() { # onnx FILE: encodes the ModelProto in text form on stdin
  protoc --encode=onnx.ModelProto --proto_path="$onnx_proto" onnx/onnx.proto >"$1" 2>"$work/err" ||
    fail "protoc: $(head -n 2 "$work/err")"
}
change_onnx() { # change_onnx FILE SED OUT: changes the text form of an ONNX file
  protoc --decode=onnx.ModelProto --proto_path="$onnx_proto" onnx/onnx.proto <"$1" 2>"$work/err" | sed "$2" | onnx "$3"
}
onnx_proto=${ONNX_PROTO:-/usr/include}
one_f32='\\000\\000\\200?' # the bytes of 1.0 in the text form, as a pattern

machine() { # machine NAME FLOPS BANDWIDTH: $work/NAME.yaml, a machine without measured operators
  {
    printf 'machine: %s\ntitle: A machine for a test\nkind: cpu\ntarget: { os: linux, cpu: x86-64 x86-64-v3, types: f32 }\n' "$1"
    printf 'peak_f32: { value: %s, source: assumed }\nmemory_bandwidth: { value: %s, source: assumed }\n' "$2" "$3"
    printf 'memory: { value: 1 GB, source: assumed }\ncompute_utilisation: { value: 1, source: assumed }\n'
    printf 'memory_utilisation: { value: 1, source: assumed }\nlaunch: { value: 0us, source: assumed }\n'
    printf 'price_usd_per_s: { value: 0.001, source: assumed }\npower: { value: 10 W, source: assumed }\n'
  } >"$work/$1.yaml"
}
