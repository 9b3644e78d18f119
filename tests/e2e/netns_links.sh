# netns_links.sh RELAY: the default model and SmolLM2 over three and four places, each in a network namespace of its
# own, with a cable and a link of its own between each two: Wi-Fi, 5G, LTE and a LAN. The tokens are ONNX Runtime's,
# also when each place but the device is killed in the middle of a text. Prints what the plan predicts and what was
# measured. Three places of the default model are the long part, the rest the soak.
# SmolLM2 is not committed: `sh tools/demo.sh smollm2` puts it where this test looks, else it is left out.
if [ "${2:-}" != inside ]; then
  why=$(unshare -rn true 2>&1) || { echo "netns_links: skipped: no network namespaces here: $why"; exit 77; }
  command -v nsenter >/dev/null || { echo 'netns_links: skipped: nsenter is missing'; exit 77; }
  exec unshare -rn sh "$0" "$1" inside
fi
. "$LP_SOURCE/tests/e2e/lib.sh"
relay=$1 nodes='edge server far'

# ---- machines, cables and links -------------------------------------------------------------------------------------

holder() { # holder NODE: the process that keeps the network namespace of this node
  case $1 in phone) echo self ;; *) cat "$work/$1.node" ;; esac
}
at() { # at NODE COMMAND ..
  this=$(holder "$1")
  shift
  if [ "$this" = self ]; then "$@"; else nsenter -t "$this" -n "$@"; fi
}
for node in $nodes; do
  unshare -n sleep 1200 &
  echo $! >"$work/$node.node"
  started="$started $!"
done
apart() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
for node in $nodes; do await apart "$(holder "$node")" || fail 'unshare -n makes no namespace'; done
# 10.79.N.1 and .2 are the ends of cable N.
cable() { # cable N NODE NODE
  end=$(holder "$3")
  ip link add "a$1" type veth peer name "b$1" && ip link set "b$1" netns "$end" || return
  [ "$2" = phone ] || ip link set "a$1" netns "$(holder "$2")" || return
  at "$2" ip addr add "10.79.$1.1/24" dev "a$1" && at "$2" ip link set "a$1" up &&
    at "$3" ip addr add "10.79.$1.2/24" dev "b$1" && at "$3" ip link set "b$1" up || return
  printf '%s %s 10.79.%s.2\n%s %s 10.79.%s.1\n' "$2" "$3" "$1" "$3" "$2" "$1" >>"$work/cables"
}
why=$({ for node in phone $nodes; do at "$node" ip link set lo up || exit; done
  cable 1 phone edge && cable 2 phone server && cable 3 phone far && cable 4 edge server && cable 5 edge far &&
    cable 6 server far; } 2>&1) || skip "no cables between namespaces: $why"

# The links of the catalogue (hwmodels/links), as the relays have them.
wifi=rtt=4ms,up=200Mbit/s,down=200Mbit/s
five=rtt=10ms,up=50Mbit/s,down=100Mbit/s
lte=rtt=50ms,up=12.5Mbit/s,down=37.5Mbit/s
lan=rtt=0.5ms,up=941Mbit/s,down=941Mbit/s
three="--link=phone-edge=$wifi --link=phone-server=$five --link=edge-server=$lan"
four="$three --link=phone-far=$lte --link=edge-far=$wifi --link=server-far=$lan"
shape() { # shape NODE NODE: the link between them
  case $1-$2 in
  phone-edge | edge-far | far-edge) echo $wifi ;;
  phone-server) echo $five ;;
  phone-far) echo $lte ;;
  *) echo $lan ;;
  esac
}
# joined NODE NODE: the second one's address for the first one, at a relay in the first one's namespace, which has the
# link
mkfifo "$work/open" # a relay ends with its input, so it holds this one open itself
joined() {
  to=$(sed -n "s/^$1 $2 //p" "$work/cables"):7700 from_process=$(holder "$1")
  [ "$from_process" != self ] || from_process=$$
  nsenter -t "$from_process" -n "$relay" "$(shape "$1" "$2")" "$to" <>"$work/open" >"$work/$1-$2.via" 2>>"$work/relays" &
  started="$started $!"
  await test -s "$work/$1-$2.via" || fail "no relay from $1 to $2: $(cat "$work/relays")"
}
for from in phone $nodes; do
  for to in $nodes; do [ "$from" = "$to" ] || joined "$from" "$to"; done
done
reach() { # reach NODE OPTION: the option for each other place of $others
  for other in $others; do [ "$other" = "$1" ] || printf -- '--%s=%s=%s ' "$2" "$other" "$(cat "$work/$1-$other.via")"; done
}

# ---- workers --------------------------------------------------------------------------------------------------------

printf 'a key that all places hold' >"$work/link.key"
cp "$LP_SOURCE"/tests/runtime/link/tls/worker.* "$work"
chmod 600 "$work"/*.key
secure="--key-file=$work/link.key --ca=$work/worker.crt"
begin() { # begin NODE: its worker
  : >"$work/$1.err"
  # shellcheck disable=SC2046,SC2086 # lists of options
  nsenter -t "$(holder "$1")" -n "$LLMPART" worker "$bundle" --place="$1" --listen=0.0.0.0:7700 $(reach "$1" peer) $secure \
    --cert="$work/worker.crt" --cert-key="$work/worker.key" 2>"$work/$1.err" &
  echo $! >"$work/$1.pid"
  started="$started $!"
  await grep -q 'listening on' "$work/$1.err" || fail "$1 does not listen: $(cat "$work/$1.err")"
}
end() { # end NODE ..
  for one in "$@"; do
    kill -9 "$(cat "$work/$one.pid")"
    wait "$(cat "$work/$one.pid")" 2>/dev/null
  done
}
over() { # over [option ..]: the tokens over the places
  # shellcheck disable=SC2046,SC2086 # lists of options
  tokens "$bundle" "$ids" "$count" $(reach phone cloud) $secure "$@"
}

grows() { [ -s "$work/saved" ] && [ "$(wc -c <"$work/saved")" -ge "$1" ]; } # grows BYTES: the file of the saved session has at least this size
grown_or_over() { grows "$1" || ! kill -0 "$device" 2>/dev/null; }
# dies NODE: its worker dies when a few tokens are there, and is started again. False: the text ended before, as it may
# where other work takes the processors.
dies() {
  rm -f "$work/saved"
  # shellcheck disable=SC2046,SC2086 # lists of options
  "$LLMPART" run "$bundle" --tokens="$ids" -n "$count" --ignore-eos -o json --session="$work/saved" $(reach phone cloud) $secure >"$work/json" 2>"$work/err" &
  device=$!
  started="$started $device"
  await grown_or_over 1 || fail "$what: no text is saved"
  await grown_or_over $(($(wc -c <"$work/saved") + 24)) || fail "$what: the saved text does not grow"
  end "$1"
  kill -0 "$device" 2>/dev/null && generates=yes || generates=''
  sleep 0.3
  begin "$1"
  wait "$device" || fail "$what, $1 was killed: exit status $?: $(cat "$work/err")"
  same "$what, $1 was killed" "$want" "$(sequences "$work/json")"
  [ -n "$generates" ]
}
killed() { # killed NODE
  tries=0
  until dies "$1" || [ $tries = 10 ]; do tries=$((tries + 1)); done
  [ $tries != 10 ] || fail "$what: the text always ended before $1 was killed"
}

figure() { sed -n '/^  "plan": {/,$p' "$1" | sed -n "s/^ *\"$2\": \([0-9.e+-]*\),*\$/\1/p" | head -n 1; } # figure REPORT KEY
# split WHAT MODEL DEVICE-MEMORY MEMORY LINKS PLACE ..: plans, runs and kills. Wants $ids, $count and $want.
split() {
  what=$1 model=$2 device_memory=$3 memory=$4 links=$5
  shift 5
  others=$*
  bundle=$work/split.llmpart
  rm -rf "$bundle"
  # shellcheck disable=SC2046,SC2086 # lists of options
  "$LLMPART" compile "$model" ${LP_LEVEL:-} --place=phone=host --device-memory="$device_memory" $(printf -- "--place=%s=host,memory=$memory " "$@") $links \
    --objective=latency --march=native --isl="$(length "$ids")" --osl="$count" --report="$work/report.json" -o "$bundle" >"$work/out" 2>"$work/err" ||
    { fail "$what: $(head -n 3 "$work/err")"; return; }
  for place in phone "$@"; do [ -f "$bundle/$place/model.so" ] || fail "$what: nothing is at $place"; done
  same "$what in one process" "$want" "$(tokens "$bundle" "$ids" "$count" --in-process)"
  one=$(number "$work/json" tpot_ms)
  for place in "$@"; do begin "$place"; done
  same "$what" "$want" "$(over)"
  same "$what, once more" "$want" "$(over --threads=0)" # the weights have been read
  printf '| %s | %.4g | %.4g | %.4g | %.4g | %.4g |\n' "$what" "$(figure "$work/report.json" ttft_ms)" "$(number "$work/json" ttft_ms)" \
    "$(figure "$work/report.json" tpot_ms)" "$(number "$work/json" tpot_ms)" "$one"
  for place in "$@"; do killed "$place"; done
  end "$@"
}

# ---- the models -----------------------------------------------------------------------------------------------------

echo '| model, places | TTFT predicted, ms | measured | TPOT predicted, ms | measured | in one process |'
model=$LP_SOURCE/examples/default-model/model.onnx
ids=$(row "$LP_SOURCE/tests/models/default/tokens.json" prompts 3)
want=$(row "$LP_SOURCE/tests/models/default/tokens.json" tokens 3)
count=$(length "$want")
part long && split 'default model, three' "$model" 3MB 3MB "$three" edge server
part soak || finish
split 'default model, four' "$model" 2400kB 2400kB "$four" edge server far

model=${SMOLLM2:-$LP_SOURCE/build/smollm2}/model.onnx
[ -e "$model" ] || { echo "netns_links: left out: there is no $model"; finish; }
question() { sed -n "s/^.*\"$1\": \[\([0-9, ]*\)\].*\$/\1/p" "$LP_SOURCE/examples/smollm2/tokens.json" | tr -d ' ' | sed -n 2p; }
ids=$(question prompt_ids)
want=$(question tokens)
count=$(length "$want")
split 'SmolLM2-135M, three' "$model" 220MB 280MB "$three" edge server
split 'SmolLM2-135M, four' "$model" 175MB 175MB "$four" edge server far
finish
