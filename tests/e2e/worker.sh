# The worker from a user's view: several devices at once, another bundle, a port in use, its death during a generation.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx
lists=$LP_SOURCE/tests/models/llama/tokens.json
for cut in 1 2; do
  # shellcheck disable=SC2086 # a list of options
  compile "$model" "$work/$cut.llmpart" $pair --scheduler=cut --cut=$cut || finish
done
ids=$(row "$lists" prompts 3)
want=$(row "$lists" tokens 3)

serve "$work/1.llmpart"
for i in 1 2; do
  same "request $i to a worker" "$want" "$(tokens "$work/1.llmpart" "$ids" "$(length "$want")" --cloud="$address")"
done
devices=""
for i in 1 2 3 4; do
  "$LLMPART" run "$work/1.llmpart" --tokens="$ids" -n "$(length "$want")" --threads=1 --cloud="$address" \
    >"$work/device.$i" 2>&1 &
  devices="$devices $!"
done
for device in $devices; do wait "$device" || fail "one of four devices at once: exit status $?"; done
for i in 1 2 3 4; do same "device $i of four at once" "$want" "$(tr ' ' , <"$work/device.$i")"; done

refused 'another bundle than the worker has' 'error: ' "$LLMPART" run "$work/2.llmpart" --tokens="$ids" -n 2 --cloud="$address"
refused 'a port that is taken' "$address.*error: |error: .*$address" "$LLMPART" worker "$work/1.llmpart" --listen="$address"
wanted_status=2 refused 'a port that is none' 'error: .*port|error: .*99999' "$LLMPART" worker "$work/1.llmpart" --listen=127.0.0.1:99999
refused 'listening to everyone' 'error: .*loopback' "$LLMPART" worker "$work/1.llmpart" --listen=0.0.0.0:0
cp "$LP_SOURCE"/tests/runtime/link/tls/worker.* "$work"
echo 'a key that both sides hold' >"$work/link.key"
echo 'a key that only one of them holds' >"$work/wrong.key"
chmod 600 "$work"/*.key
secure="--key-file=$work/link.key --ca=$work/worker.crt"
refused 'off loopback without a key' 'error: .*off loopback' \
  "$LLMPART" run "$work/1.llmpart" --tokens=1 -n 1 --cloud=192.0.2.1:7700 --ca="$work/worker.crt"
plain=$address
serve "$work/1.llmpart" --key-file="$work/link.key" --cert="$work/worker.crt" --cert-key="$work/worker.key"
# shellcheck disable=SC2086 # a list of options
same 'a request with key and TLS' "$want" "$(tokens "$work/1.llmpart" "$ids" "$(length "$want")" --cloud="$address" $secure)"
refused 'a wrong key' 'error: .*holds another key' "$LLMPART" run "$work/1.llmpart" --tokens=1 -n 1 --cloud="$address" \
  --key-file="$work/wrong.key" --ca="$work/worker.crt"
refused 'no key' 'error: .*wants a key' "$LLMPART" run "$work/1.llmpart" --tokens=1 -n 1 --cloud="$address" --ca="$work/worker.crt"
kill "$worker"
cp "$LP_SOURCE"/tests/runtime/link/tls/other.* "$work"
chmod 600 "$work/other.key"
serve "$work/1.llmpart" --cert="$work/worker.crt" --cert-key="$work/worker.key" --client-ca="$work/other.crt"
same 'a request with a certificate of the device' "$want" "$(tokens "$work/1.llmpart" "$ids" "$(length "$want")" \
  --cloud="$address" --ca="$work/worker.crt" --cert="$work/other.crt" --cert-key="$work/other.key")"
refused 'no certificate of the device' 'error: cannot reach' "$LLMPART" run "$work/1.llmpart" --tokens=1 -n 1 --cloud="$address" \
  --ca="$work/worker.crt" --cloud-timeout=2s
grep -q 'client-ca.* --cert, --cert-key' "$work/err" || fail "a device without a certificate is not told of --cert: $(cat "$work/err")"
kill "$worker"
serve "$work/1.llmpart" --key-file="$work/link.key"
same 'a request with a key and no certificate' "$want" "$(tokens "$work/1.llmpart" "$ids" "$(length "$want")" \
  --cloud="$address" --key-file="$work/link.key")"
refused 'a wrong key and no certificate' 'error: .*another key' "$LLMPART" run "$work/1.llmpart" --tokens=1 -n 1 \
  --cloud="$address" --key-file="$work/wrong.key" --cloud-timeout=2s
kill "$worker"
where=unix:$work/socket serve "$work/1.llmpart"
same 'the address of a Unix socket' "unix:$work/socket" "$address"
same 'a request over a Unix socket' "$want" "$(tokens "$work/1.llmpart" "$ids" "$(length "$want")" --cloud="$address")"
same 'a request over a Unix socket and an emulated link' "$want" "$(tokens "$work/1.llmpart" "$ids" "$(length "$want")" \
  --cloud="$address" --link=rtt=1ms)"
ticks() { awk '{ print $14 + $15 }' "/proc/$worker/stat"; } # hundredths of a second of CPU time
idle() { # for 3 s; on a busy machine the worker may still be closing the last session
  before=$(ticks)
  sleep 3
  took=$(($(ticks) - before))
  [ $took -le 1 ]
}
idle || idle || idle || fail "an idle worker takes $took ticks of CPU time in 3 s"
kill "$worker"
wait "$worker"
[ ! -e "$work/socket" ] || fail 'the file of a Unix socket is left'
address=$plain worker=${started# } worker=${worker%% *}
same 'a request after all that' "$want" "$(tokens "$work/1.llmpart" "$ids" "$(length "$want")" --cloud="$address")"

kill "$worker"
wait "$worker" || fail "a worker that is asked to end: exit status $?"
refused 'nobody listens' "error: .*${address#*:}|$address.*error: " "$LLMPART" run "$work/1.llmpart" --tokens="$ids" -n 2 --cloud="$address"

serve "$work/1.llmpart"
timeout 120 "$LLMPART" run "$work/1.llmpart" --tokens="$ids" -n 100000 --threads=1 --cloud="$address" --cloud-timeout=2s >"$work/out" 2>"$work/err" &
device=$!
started="$started $device"
begun() { [ "$(wc -w <"$work/out")" -ge 20 ]; }
await begun || fail 'the generation has not begun after a minute'
kill -KILL "$worker"
wait "$device"
status=$?
[ "$status" = 1 ] || fail "the worker is killed in mid-generation: exit status $status, wanted 1: $(tail -n 2 "$work/err")"
[ "$(grep -c 'error: ' "$work/err")" = 1 ] || fail "the worker is killed in mid-generation: wanted one error: $(cat "$work/err")"
finish
