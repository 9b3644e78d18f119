# Each call of files, sockets, threads and processes fails once, then each allocation: the command must give the
# undisturbed result or one clean error, lose nothing, and neither crash, hang nor leak (under AddressSanitizer).
#   inject.sh run|worker|serve|memory INJECT_CALLS INJECT_MEMORY TOY_WRITE
# The quick part lets one of some dozen calls fail, the soak up to each second one. Allocations of
# our own end the command (lp_alloc); those of libraries do not.
. "$LP_SOURCE/tests/e2e/lib.sh"
what=$1 calls=$2 memory=$3 toy_write=$4
preload=$calls
export ASAN_OPTIONS=verify_asan_link_order=0
unset LLMPART_KEY

# one_in QUICK SOAK: in each part, one of so many calls fails
one_in() { if part soak; then stride=$2; else stride=$1; fi; }

injected() { # injected CALL COMMAND ...: runs it for at most two minutes and lets this call fail
  number=$1
  shift
  rm -f "$work/place"
  # shellcheck disable=SC2086 # words
  timeout 120 env LD_PRELOAD="$preload" LP_INJECT="$number" LP_INJECT_REPORT="$work/place" "$@"
}
happened() { [ -e "$work/place" ]; }

wrong() { # wrong TEXT: the call that failed, and what came of it
  fail "$scenario, call $number ($(cat "$work/place" 2>/dev/null)): $*: $(head -n 4 "$work/err")"
}

# clean STATUS OUT WANTED: was the end one of those that are allowed?
clean() {
  case $1 in
  0) [ "$(cat "$2")" = "$3" ] || wrong "another result: $(cat "$2")" ;;
  1)
    case $3 in "$(cat "$2")"*) ;; *) wrong "wrong before the error: $(cat "$2")" ;; esac
    grep -q 'error: ' "$work/err" || wrong 'no error'
    ;;
  134) # for want of memory, or because libmicrohttpd cannot wake its thread
    if [ "$preload" = "$memory" ]; then why='out of memory'; else why='^Fatal error in GNU libmicrohttpd'; fi
    grep -q "$why" "$work/err" || wrong aborted
    ;;
  *) wrong "exit status $1" ;;
  esac
}

# each NAME FUNCTION QUICK SOAK: calls FUNCTION NUMBER with growing numbers until nothing fails any more
each() {
  scenario=$1 began=$(date +%s)
  one_in "$3" "$4"
  call=1
  while :; do
    "$2" "$call"
    happened || break
    [ "$failures" -lt 20 ] || finish
    call=$((call + stride))
  done
  echo "$scenario: $(((call - 1) / stride)) faults, $call calls, $(($(date +%s) - began)) s"
}

# ---- run ----

runs() { # runs CALL: $command
  # shellcheck disable=SC2086 # words
  injected "$1" "$LLMPART" run $command >"$work/out" 2>"$work/err"
  clean $? "$work/out" "$wanted"
}
# A generation that is saved continues where it was, whatever failed while it was saved.
saves() {
  rm -f "$work/saved"
  runs "$1"
  [ -e "$work/saved" ] || return
  resumed=$("$LLMPART" run "$work/whole" --session="$work/saved" --resume 2>"$work/err") || wrong 'cannot be continued'
  [ "$resumed" = "$wanted" ] || wrong "continues with '$resumed'"
}
# The file from which a generation continues survives a failure.
continues() {
  cp "$work/begun" "$work/again"
  runs "$1"
  resumed=$("$LLMPART" run "$work/split" --session="$work/again" --resume 2>"$work/err") || wrong 'cannot be continued again'
  [ "$resumed" = "$wanted" ] || wrong "continues again with '$resumed'"
}

"$toy_write" "$work" whole dddddd
"$toy_write" "$work" split ddccdd
"$toy_write" "$work" exits ddcccc ddcccc 2
words='--tokens=1,2,3 -n 12 --threads=2'
# shellcheck disable=SC2086 # words
wanted=$("$LLMPART" run "$work/whole" $words) || fail 'the toy does not run'

has_begun() { [ "$(wc -w <"$work/begins")" -gt 3 ]; }

run_all() { # run_all QUICK SOAK
  command="$work/whole $words"
  each run runs "$@"
  command="$work/split $words"
  each 'run, split' runs "$@"
  command="$work/split $words --in-process"
  each 'run, in one process' runs "$@"
  command="$work/exits $words"
  each 'run, exits' runs "$@"
  command="$work/whole $words --session=$work/saved"
  each 'run, saving' saves "$@"
  # A device that was killed in mid-generation.
  "$LLMPART" run "$work/split" --tokens=1,2,3 -n 12 --link=rtt=30ms --session="$work/begun" >"$work/begins" 2>"$work/err" &
  process=$! started=$!
  await has_begun || fail 'does not begin'
  kill -9 "$process"
  wait "$process" 2>/dev/null
  command="$work/split --session=$work/again --resume --threads=1"
  each 'run, resuming' continues "$@"
}

# ---- worker and serve ----

await_start() { # await_start PATTERN: sets $address, empty when the process ended
  address=$(sed -n "s/^listening on //p" "$work/err")
  [ -n "$address" ] || ! kill -0 "$process" 2>/dev/null
}

# starts CALL COMMAND ...: in the background; false when it ended before it listened, as it may
starts() {
  number=$1
  shift
  rm -f "$work/place"
  : >"$work/err"
  LD_PRELOAD=$preload LP_INJECT=$number LP_INJECT_REPORT=$work/place "$@" 2>"$work/err" &
  process=$! started=$!
  await await_start || wrong 'neither listens nor ends'
  [ -n "$address" ] && return
  status=0
  wait "$process" || status=$?
  : >"$work/out"
  [ "$status" != 0 ] || wrong 'ends without an error'
  clean "$status" "$work/out" ''
  return 1
}

ended() { ! kill -0 "$process" 2>/dev/null; }

# ends: what was started ends cleanly when it is told to
ends() {
  kill "$process" 2>/dev/null
  await ended || { wrong 'does not end'; kill -9 "$process"; }
  status=0
  wait "$process" || status=$?
  : >"$work/out"
  clean "$status" "$work/out" ''
}

# A worker that listens serves whatever fails, but for the device that it happens to.
works() {
  # shellcheck disable=SC2086 # words
  starts "$1" "$LLMPART" worker "$work/$bundle" --listen=127.0.0.1:0 --threads=2 $options || return
  spared=""
  for device in first second; do
    # shellcheck disable=SC2086 # words
    timeout 120 "$LLMPART" run "$work/$bundle" $words --cloud="$address" $device_options >"$work/out" 2>"$work/device"
    status=$?
    [ "$status $(cat "$work/out")" = "0 $wanted" ] && continue
    [ "$status$spared" = 1 ] && grep -q 'error: ' "$work/device" && spared=yes && continue
    ended && [ "$preload" = "$memory" ] && break
    wrong "the $device device: status $status: $(cat "$work/out"): $(cat "$work/device")"
  done
  ends
}

worker_all() { # worker_all QUICK SOAK
  bundle=split options="" device_options=""
  each worker works "$@"
  tls=$LP_SOURCE/tests/runtime/link/tls
  cp "$tls/worker.key" "$work/private"
  chmod 600 "$work/private"
  options="--cert=$tls/worker.crt --cert-key=$work/private"
  device_options="--ca=$tls/worker.crt --tls-name=worker.test"
  each 'worker, TLS' works "$@"
  bundle=exits options="--context-dir=$work/contexts" device_options=""
  each 'worker, contexts' works "$@"
}

# A server that listens answers whatever fails, but for the request that it happens to.
serves() {
  starts "$1" "$LLMPART" serve "$work/serve.yaml" --listen=127.0.0.1:0 || return
  spared=""
  for request in first second; do
    answer=$(curl -sS --max-time 120 -H 'Content-Type: application/json' -d "$body" "http://$address/v1/completions" 2>&1)
    case $answer in
    *"$text"*) continue ;;
    *'"error":'* | curl:*) [ -z "$spared" ] && spared=yes && continue ;;
    esac
    ended && [ "$preload" = "$memory" ] && break
    wrong "the $request request: $answer"
  done
  ends
}

serve_all() { # serve_all QUICK SOAK
  command -v curl >/dev/null || skip 'curl is not there'
  default=$LP_SOURCE/examples/default-model
  compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
  text=$("$LLMPART" run "$work/story.llmpart" --prompt='Once upon a time' -n 6 --threads=1)
  body='{"model":"auto","prompt":"Once upon a time","max_tokens":6,"temperature":0}'
  echo "edge: { bundle: story.llmpart, threads: 2 }
router: { policy: edge, pool: pool.db }" >"$work/serve.yaml"
  each serve serves "$@"
}

case $what in
run) run_all 25 2 ;;
worker) worker_all 47 4 ;;
serve) serve_all 59 2 ;;
memory)
  preload=$memory
  run_all 901 61
  worker_all 4001 901
  [ ! -e "$LP_BUILD/runtime/serve" ] || serve_all 6001 1801
  ;;
esac
finish
