#!/bin/sh
# An edge, two workers behind TLS, and a cloud with an API of its own, each in a network namespace, over links with the
# rates of a radio cell. Clients send mixed requests. In the middle of the load a worker is killed and started again,
# and a link is cut and mended. Every request must be answered, as it was without load and faults.
#
#   LLMPART=build/release/tools/llmpart sh examples/deployment/deployment.sh [OUT]
#
# CLIENTS (8) and REQUESTS (12) size the load. OUT, a folder that is made (deployment.out), gets the configurations, the
# logs and the answers. The exit status is 0 only if no request was lost and none was answered wrongly, and 77 if the
# machine lacks network namespaces.
set -eu
: "${LLMPART:=llmpart}" "${CLIENTS:=8}" "${REQUESTS:=12}"
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-deployment.out}
if [ "${LP_INSIDE:-}" != 1 ]; then
  why=$(unshare -rn true 2>&1) || { echo "deployment: skipped: no network namespaces here: $why"; exit 77; }
  command -v tc >/dev/null && command -v nsenter >/dev/null || { echo 'deployment: skipped: tc (iproute2) or nsenter is missing'; exit 77; }
  mkdir -p "$out"
  LP_INSIDE=1 exec unshare -rn sh "$0" "$out"
fi

started=''
clean_up() {
  # shellcheck disable=SC2086 # a list of numbers
  [ -z "$started" ] || kill -9 $started 2>/dev/null || true
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP
fail() { echo "deployment: $*"; exit 1; }
await() { # await WHAT COMMAND ...: tries the command until it succeeds, for a minute
  what=$1
  shift
  for _ in $(seq 600); do
    "$@" && return
    sleep 0.1
  done
  fail "$what"
}

# ---- places: a namespace with a cable for each -----------------------------------------------------------------------
# A radio link has the capacity of the blocks that the user gets at its signal to interference and noise.
capacity() { "$LLMPART" radio capacity "$@" | awk '{ printf "%.0f", $1 }'; } # in bit/s
up=$(capacity --sinr=8 --blocks=50) down=$(capacity --sinr=16 --blocks=100)
shape() { # shape RATE DEVICE [nsenter ...]: no more than the rate, and 4 ms if the kernel knows netem
  rate=$1 device=$2
  shift 2
  "$@" tc qdisc add dev "$device" root handle 1: tbf rate "${rate}bit" burst 32kb latency 400ms 2>/dev/null || { echo "deployment: no tbf: a link has no limit"; return 0; }
  "$@" tc qdisc add dev "$device" parent 1: handle 2: netem delay 4ms 2>/dev/null || true
}
apart() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
place() { # place NUMBER: a namespace at 10.77.NUMBER.2, of the process $space
  unshare -n sleep 3600 &
  space=$! started="$started $!"
  await 'no namespace' apart "$space"
  ip link add "radio$1" type veth peer name up0 netns "$space"
  ip addr add "10.77.$1.1/24" dev "radio$1"
  ip link set "radio$1" up
  nsenter -t "$space" -n sh -c "ip link set lo up; ip addr add 10.77.$1.2/24 dev up0; ip link set up0 up"
  shape "$up" "radio$1" env
  shape "$down" up0 nsenter -t "$space" -n
}
ip link set lo up
place 1
first=$space
place 2
second=$space
place 3
cloud=$space

# ---- bundles, keys, certificates -------------------------------------------------------------------------------------
model=$here/../default-model
"$LLMPART" compile "$model/model.onnx" --device=host --tokenizer="$model/tokenizer.json" -o "$out/whole.llmpart" >/dev/null
"$LLMPART" compile "$model/model.onnx" --device=jetson-nano --cloud=v100s --link=lan --march=native --scheduler=cut --cut=3 \
  --tokenizer="$model/tokenizer.json" -o "$out/split.llmpart" >/dev/null
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=worker -keyout "$out/worker.key" -out "$out/worker.crt" 2>/dev/null
head -c 32 /dev/urandom | base64 >"$out/link.key"
chmod 600 "$out/link.key" "$out/worker.key"
CLOUD_KEY=$(head -c 16 /dev/urandom | base64)
export CLOUD_KEY

# ---- the processes ---------------------------------------------------------------------------------------------------
worker() { # worker NUMBER NAMESPACE: sets $worker_pid
  nsenter -t "$2" -n "$LLMPART" worker "$out/split.llmpart" --listen="10.77.$1.2:7700" --threads=1 --key-file="$out/link.key" \
    --cert="$out/worker.crt" --cert-key="$out/worker.key" 2>>"$out/worker$1.log" &
  worker_pid=$! started="$started $!"
}
worker 1 "$first"
first_pid=$worker_pid
worker 2 "$second"
cat >"$out/cloud.yaml" <<END
listen: 10.77.3.2:8080
key_env: CLOUD_KEY
log: cloud-requests.log
edge: { bundle: whole.llmpart, model: large, threads: 1 }
END
cat >"$out/edge.yaml" <<END
listen: 127.0.0.1:8080
log: requests.log
edge: { bundle: whole.llmpart, model: small, threads: 1, parallel: 2, queue: 2, kv_cache: 64MiB }
split: { bundle: split.llmpart, model: halves, workers: ["10.77.1.2:7700", "10.77.2.2:7700"], key_file: link.key, ca: worker.crt, threads: 1 }
cloud: { url: "http://10.77.3.2:8080/v1", model: large, key_env: CLOUD_KEY }
router: { policy: quickest, pool: pool.db }
END
rm -f "$out/requests.log" "$out/cloud-requests.log" "$out/pool.db"
nsenter -t "$cloud" -n "$LLMPART" serve "$out/cloud.yaml" 2>"$out/cloud.log" &
started="$started $!"
"$LLMPART" serve "$out/edge.yaml" 2>"$out/edge.log" &
edge_pid=$!
started="$started $!"
url=http://127.0.0.1:8080
is_ready() { curl -sS --max-time 5 "$url/readyz" 2>/dev/null | grep -q '"status":"ready"'; }
await "the deployment is not ready: $(cat "$out/edge.log")" is_ready
await 'the cloud does not listen' grep -q 'listening on' "$out/cloud.log"

# ---- the load: quiet for the answers to expect, then with faults -----------------------------------------------------
python3 "$here/load.py" "$url" 1 "$REQUESTS" "$CLIENTS" >"$out/quiet.jsonl"
: >"$out/load.jsonl"
rm -f "$out/enough"
python3 "$here/load.py" "$url" "$CLIENTS" "$REQUESTS" "$CLIENTS" "$out/enough" >"$out/load.jsonl" &
load=$!
answers() { wc -l <"$out/load.jsonl"; }
further() { # further COUNT: waits until as many further requests are answered
  wanted=$(($(answers) + $1))
  await 'the load stands still' reached
}
reached() { [ "$(answers)" -ge "$wanted" ]; }
is_degraded() { curl -sS --max-time 5 "$url/readyz" | grep -q '"workers":2,"workers_up":1'; }
further "$CLIENTS"
kill -9 "$first_pid"
echo "killed worker 1 after $(answers) answers"
await 'the loss of a worker is not noticed' is_degraded
further $((2 * CLIENTS))
worker 1 "$first"
await 'the killed worker does not come back' is_ready
echo "worker 1 is back after $(answers) answers"
further "$CLIENTS"
nsenter -t "$second" -n ip link set up0 down # at the far end, so that bytes vanish without an error here
echo "cut the link to worker 2 after $(answers) answers"
await 'the cut link is not noticed' is_degraded
further $((2 * CLIENTS))
nsenter -t "$second" -n ip link set up0 up
await 'the mended link is not in use again' is_ready
echo "the link is mended after $(answers) answers"
further "$CLIENTS"
touch "$out/enough"
wait "$load" || fail "a request was lost: $(grep '"error"' "$out/load.jsonl" | head -n 3)"
curl -sS "$url/v1/status" >"$out/status.json"
kill -TERM "$edge_pid"
wait "$edge_pid" || fail "the server ends with $?"
python3 "$here/load.py" --compare "$out/quiet.jsonl" "$out/load.jsonl" "$out/requests.log"
