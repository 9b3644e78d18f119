# netns_places.sh: a device, an edge and a server in network namespaces of their own, with a cable between each two,
# with a key and certificates: as three machines with different links. The cable between edge and server is pulled out
# in the middle. The test leaves out what the machine does not support.
if [ "${1:-}" != inside ]; then
  why=$(unshare -rn true 2>&1) || { echo "netns_places: skipped: no network namespaces here: $why"; exit 77; }
  command -v tc >/dev/null && command -v nsenter >/dev/null || { echo 'netns_places: skipped: tc (iproute2) or nsenter is missing'; exit 77; }
  exec unshare -rn sh "$0" inside
fi
. "$LP_SOURCE/tests/e2e/lib.sh"
unshare -n sleep 600 &
edge=$!
unshare -n sleep 600 &
server=$!
started="$edge $server"
apart() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
await apart "$edge" && await apart "$server" || fail 'unshare -n makes no namespace'
at() { # at PROCESS COMMAND ..: in its namespace
  process=$1
  shift
  nsenter -t "$process" -n "$@"
}
# 10.78.1.0/24 joins device and edge, .2 device and server, .3 edge and server.
cable() { # cable NUMBER NAME PROCESS NAME PROCESS: the first end has the address .1, the second .2
  ip link add "$2" type veth peer name "$4" && ip link set "$4" netns "$5" || return
  at "$5" ip addr add "10.78.$1.2/24" dev "$4" && at "$5" ip link set "$4" up || return
  if [ "$3" = self ]; then
    ip addr add "10.78.$1.1/24" dev "$2" && ip link set "$2" up
  else
    ip link set "$2" netns "$3" && at "$3" ip addr add "10.78.$1.1/24" dev "$2" && at "$3" ip link set "$2" up
  fi
}
why=$({ ip link set lo up && at "$edge" ip link set lo up && at "$server" ip link set lo up && cable 1 device1 self edge1 "$edge" &&
  cable 2 device2 self server2 "$server" && cable 3 edge3 "$edge" server3 "$server"; } 2>&1) || skip "no cables between namespaces: $why"

bundle=$work/three.llmpart ids=1,5,9,20,33,2 count=40
"$LLMPART" compile "$LP_SOURCE/examples/default-model/model.onnx" ${LP_LEVEL:-} --place=phone=host --place=edge=host,memory=3MB --place=server=host,memory=3MB \
  --device-memory=3MB --link=lan --march=native --isl=16 --osl=16 -o "$bundle" >"$work/out" 2>"$work/err" || { fail "$(head -n 3 "$work/err")"; finish; }
want=$(tokens "$bundle" "$ids" "$count" --in-process)
cp "$LP_SOURCE"/tests/runtime/link/tls/worker.* "$work"
echo 'a key that all places hold' >"$work/link.key"
chmod 600 "$work"/*.key
secure="--key-file=$work/link.key --ca=$work/worker.crt"
worker() { # worker PROCESS NAME PEER: in the namespace
  : >"$work/$2.err"
  # shellcheck disable=SC2086 # a list of options
  nsenter -t "$1" -n "$LLMPART" worker "$bundle" --place="$2" --listen=0.0.0.0:7700 --threads=1 --peer="$3" $secure --cert="$work/worker.crt" \
    --cert-key="$work/worker.key" 2>"$work/$2.err" &
  started="$started $!"
  await grep -q 'listening on' "$work/$2.err" || fail "$2 does not listen: $(cat "$work/$2.err")"
}
worker "$edge" edge server=10.78.3.2:7700
worker "$server" server edge=10.78.3.1:7700
over() { # over WHAT: the tokens over the cables as they are now
  # shellcheck disable=SC2086 # a list of options
  same "$1" "$want" "$(tokens "$bundle" "$ids" "$count" --cloud=edge=10.78.1.2:7700 --cloud=server=10.78.2.2:7700 $secure)"
}
over 'three machines'
# Between edge and server a slower link than to the device, then a narrow one to the server.
shape() { # shape PROCESS DEVICE QDISC ..: false when the kernel does not know it
  process=$1 end=$2
  shift 2
  at "$process" tc qdisc replace dev "$end" root "$@" 2>"$work/tc" && return
  echo "netns_places: left out: tc $*: $(head -n 1 "$work/tc")"
  return 1
}
shape "$edge" edge3 tbf rate 4mbit burst 4kb latency 400ms && shape "$server" server2 tbf rate 1mbit burst 4kb latency 400ms && over 'narrow links'
shape "$edge" edge3 netem delay 8ms && shape "$server" server3 netem delay 8ms && shape "$server" server2 netem delay 3ms && over 'slow links'

# The cable between edge and server is out for 7 s: each device connection stays, and a place tells of its loss.
# shellcheck disable=SC2086 # a list of options
"$LLMPART" run "$bundle" --tokens="$ids" -n "$count" --threads=1 --ignore-eos -o json --cloud=edge=10.78.1.2:7700 --cloud=server=10.78.2.2:7700 $secure \
  --link=rtt=40ms >"$work/json" 2>"$work/err" &
device=$!
started="$started $device"
sleep 0.7
at "$edge" ip link set edge3 down
sleep 7
at "$edge" ip link set edge3 up
wait "$device" || fail "the cable was pulled out: exit status $?: $(cat "$work/err")"
same 'a cable that was pulled out' "$want" "$(sequences "$work/json")"
grep -q 'was lost' "$work/edge.err" "$work/server.err" || fail 'no place noticed'
finish
