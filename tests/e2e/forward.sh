# A bundle of three and four places over as many processes: the tokens are those of one process, with a key and
# certificates, and, in the long part and the soak, when places are killed at random in mid-generation and come back.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/examples/default-model/model.onnx
ids=1,5,9,20,33,2 count=40
# No place has memory for the whole model.
over() { # over MEMORY PLACE ..: the options of these places after the device
  memory=$1
  shift
  printf -- '--place=phone=host --device-memory=%s --link=lan --march=native --isl=16 --osl=16' "$memory"
  printf -- " --place=%s=host,memory=$memory" "$@"
}
split() { # split OUT MEMORY PLACE ..
  out=$1
  shift
  # shellcheck disable=SC2046 # a list of options
  "$LLMPART" compile "$model" ${LP_LEVEL:-} $(over "$@") -o "$out" >"$work/out" 2>"$work/err" && return
  fail "$out: $(head -n 3 "$work/err")"
  finish
}
split "$work/three.llmpart" 3MB edge server
for place in edge server; do [ -d "$work/three.llmpart/$place" ] || fail "the bundle has no part for $place"; done
want=$(tokens "$work/three.llmpart" "$ids" "$count" --in-process)
same 'workers that run starts' "$want" "$(tokens "$work/three.llmpart" "$ids" "$count")"
refused 'a worker of no place' "wanted --place=NAME, one of .*'edge'" "$LLMPART" worker "$work/three.llmpart" --listen=127.0.0.1:0
refused 'a place that there is not' "a worker serves one of .*'edge'" "$LLMPART" worker "$work/three.llmpart" --place=cloud --listen=127.0.0.1:0
refused 'a place that does not know another' "sends to '[a-z]*': wanted --peer=" "$LLMPART" worker "$work/three.llmpart" --place=edge --listen=127.0.0.1:0
refused 'one address of two' 'no worker is given for the place' "$LLMPART" run "$work/three.llmpart" --tokens=1 -n 1 --cloud=edge=127.0.0.1:1
refused 'an address without a name' 'wanted the name of the place' "$LLMPART" run "$work/three.llmpart" --tokens=1 -n 1 --cloud=127.0.0.1:1

cp "$LP_SOURCE"/tests/runtime/link/tls/worker.* "$work"
echo 'a key that all places hold' >"$work/link.key"
chmod 600 "$work"/*.key

# Unix sockets, whose addresses are known before the workers listen.
place() { # place BUNDLE NAME OTHER ..: starts the worker of a place, and sets pid_NAME
  bundle=$1 this=$2
  shift 2
  peers=""
  for other in "$@"; do peers="$peers --peer=$other=unix:$work/$other.socket"; done
  : >"$work/$this.err"
  # shellcheck disable=SC2086 # lists of options
  "$LLMPART" worker "$bundle" --place="$this" --listen="unix:$work/$this.socket" --threads=1 $peers $worker_security 2>"$work/$this.err" &
  eval "pid_$this=$!"
  started="$started $!"
  await grep -q 'listening on' "$work/$this.err" || fail "$this does not listen: $(cat "$work/$this.err")"
}
stop() { # stop NAME ..
  for one in "$@"; do
    eval "kill -9 \$pid_$one"
    eval "wait \$pid_$one" 2>/dev/null
  done
}
worker_security="--key-file=$work/link.key --cert=$work/worker.crt --cert-key=$work/worker.key --ca=$work/worker.crt"
secure="--key-file=$work/link.key --ca=$work/worker.crt"
place "$work/three.llmpart" edge server
place "$work/three.llmpart" server edge
at="--cloud=edge=unix:$work/edge.socket --cloud=server=unix:$work/server.socket"
# shellcheck disable=SC2086 # lists of options
{
  same 'a key and certificates' "$want" "$(tokens "$work/three.llmpart" "$ids" "$count" $at $secure)"
  refused 'no key' 'wants a key' "$LLMPART" run "$work/three.llmpart" --tokens=1 -n 1 $at --ca="$work/worker.crt"
  swapped="--cloud=edge=unix:$work/server.socket --cloud=server=unix:$work/edge.socket"
  refused 'two addresses in each other'"'"'s place' "serves the place 'server', not 'edge'" "$LLMPART" run "$work/three.llmpart" --tokens=1 -n 1 $swapped $secure
}

part long || part soak || finish
# A place is killed some time after the first token, and started again.
text() { "$LLMPART" run "$1" --tokens="$ids" -n "$count" --threads=1 --ignore-eos "$2"; }
want_text=$(text "$work/three.llmpart" --in-process)
killed() { # killed BUNDLE NAME AFTER OTHER ..: the place NAME dies AFTER seconds
  bundle=$1 victim=$2 after=$3
  shift 3
  : >"$work/text"
  # shellcheck disable=SC2086 # lists of options
  timeout 600 "$LLMPART" run "$bundle" --tokens="$ids" -n "$count" --threads=1 --ignore-eos --link=rtt=10ms $at $secure >"$work/text" 2>"$work/err" &
  device=$!
  await test -s "$work/text" || fail "no token comes: $(cat "$work/err")"
  sleep "$after"
  stop "$victim"
  place "$bundle" "$victim" "$@"
  wait "$device" || fail "$victim killed after $after s: exit status $?: $(cat "$work/err")"
  same "$victim killed after $after s" "$want_text" "$(cat "$work/text")"
}
killed "$work/three.llmpart" server 0.1 edge
killed "$work/three.llmpart" edge 0.2 server

# A place that stays away is named.
stop server
# shellcheck disable=SC2086 # lists of options
refused 'a place that is not there' "the place 'server' at unix:" "$LLMPART" run "$work/three.llmpart" --tokens=1 -n 1 $at $secure --cloud-timeout=1s
stop edge

worker_security="" secure=""
split "$work/four.llmpart" 2.4MB edge server far
same 'four processes' "$want" "$(tokens "$work/four.llmpart" "$ids" "$count")"
place "$work/four.llmpart" edge server far
place "$work/four.llmpart" server edge far
place "$work/four.llmpart" far edge server
at="$at --cloud=far=unix:$work/far.socket"
first=1 last=40
part long || first=4
part soak || last=3
for i in $(seq $first $last); do
  after=$(awk -v seed="$i" 'BEGIN { srand(seed); print rand() * 0.5 }')
  case $((i % 3)) in
  0) killed "$work/four.llmpart" edge "$after" server far ;;
  1) killed "$work/four.llmpart" server "$after" edge far ;;
  2) killed "$work/four.llmpart" far "$after" edge server ;;
  esac
done
finish
