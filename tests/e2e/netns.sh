# netns.sh: device and worker in network namespaces of their own, with a cable between them, with key and TLS: as two
# machines. The cable is narrow (tc tbf), slow and lossy (tc netem), and pulled out in the middle; exact mode's tokens
# stay the full model's. The test leaves out what the machine does not support: namespaces need user namespaces or root,
# and netem a module of the kernel.
if [ "${1:-}" != inside ]; then
  why=$(unshare -rn true 2>&1) || { echo "netns: skipped: no network namespaces here: $why"; exit 77; }
  command -v tc >/dev/null && command -v nsenter >/dev/null || { echo 'netns: skipped: tc (iproute2) or nsenter is missing'; exit 77; }
  exec unshare -rn sh "$0" inside
fi
. "$LP_SOURCE/tests/e2e/lib.sh"
unshare -n sleep 600 &
cloud=$!
started=$cloud
apart() { [ "$(readlink /proc/$cloud/ns/net)" != "$(readlink /proc/self/ns/net)" ]; }
await apart || fail 'unshare -n makes no namespace'
there() { nsenter -t "$cloud" -n "$@"; }
why=$({ ip link set lo up && ip link add dev0 type veth peer name cloud0 && ip link set cloud0 netns "$cloud" &&
  ip addr add 10.77.0.1/24 dev dev0 && ip link set dev0 up && there ip link set lo up && there ip addr add 10.77.0.2/24 dev cloud0 &&
  there ip link set cloud0 up; } 2>&1) || skip "no cable between namespaces: $why"

bundle=$work/default.llmpart count=48
# shellcheck disable=SC2086 # a list of options
compile "$LP_SOURCE/examples/default-model/model.onnx" "$bundle" $pair --exits=2,6 || finish
ids=$(row "$LP_SOURCE/tests/models/default/tokens.json" prompts 1)
want=$(tokens "$bundle" "$ids" "$count" --in-process)
cp "$LP_SOURCE"/tests/runtime/link/tls/worker.* "$work"
echo 'a key that both sides hold' >"$work/link.key"
chmod 600 "$work"/*.key
secure="--key-file=$work/link.key --ca=$work/worker.crt"
: >"$work/listening"
# No function here: the process that is to be ended must be the worker itself.
nsenter -t "$cloud" -n "$LLMPART" worker "$bundle" --listen=10.77.0.2:7700 --threads=1 --key-file="$work/link.key" \
  --cert="$work/worker.crt" --cert-key="$work/worker.key" 2>"$work/listening" &
started="$started $!"
await grep -q 'listening on' "$work/listening" || fail "the worker does not listen: $(cat "$work/listening")"

over() { # over WHAT [option ...]: the tokens over the cable as it is now
  what=$1
  shift
  # shellcheck disable=SC2086 # a list of options
  same "$what" "$want" "$(tokens "$bundle" "$ids" "$count" --cloud=10.77.0.2:7700 $secure "$@")"
}

shape() { # shape QDISC ...: both ends of the cable; false when the kernel does not know it
  tc qdisc del dev dev0 root 2>/dev/null
  there tc qdisc del dev cloud0 root 2>/dev/null
  tc qdisc add dev dev0 root "$@" 2>"$work/tc" && there tc qdisc add dev cloud0 root "$@" 2>"$work/tc" && return
  echo "netns: left out: tc $*: $(head -n 1 "$work/tc")"
  return 1
}

over 'a cable'
over 'a cable, each token from the cloud' --mode=full
refused 'off loopback without a key' 'error: .*off loopback' "$LLMPART" run "$bundle" --tokens=1 -n 1 --cloud=10.77.0.2:7700
shape tbf rate 2mbit burst 4kb latency 400ms && over 'a narrow cable'
shape netem delay 25ms && {
  over 'a slow cable'
  awk -v waits="$(number "$work/json" cloud_requests)" -v comm="$(number "$work/json" comm_ms)" \
    'BEGIN { exit !(comm >= 45 * waits) }' || fail "round trips of 50 ms do not show: $(grep comm_ms "$work/json")"
}
shape netem delay 10ms 5ms loss 3% duplicate 2% reorder 20% && over 'a bad cable'
tc qdisc del dev dev0 root 2>/dev/null
there tc qdisc del dev cloud0 root 2>/dev/null

# Pulled out for 2 s while it generates, over a link so slow that it has not ended by then. What was sent
# meanwhile is sent again. shellcheck disable=SC2086 # a list of options
"$LLMPART" run "$bundle" --tokens="$ids" -n "$count" --threads=1 --ignore-eos -o json --cloud=10.77.0.2:7700 $secure \
  --link=rtt=60ms >"$work/json" 2>"$work/err" &
device=$!
started="$started $device"
sleep 0.5
ip link set dev0 down
sleep 2
ip link set dev0 up
wait "$device" || fail "the cable was pulled out: exit status $?: $(cat "$work/err")"
same 'a cable that was pulled out' "$want" "$(sequences "$work/json")"
finish
