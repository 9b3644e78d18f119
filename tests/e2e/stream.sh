# A model that is all in the cloud, over a link of 50 ms: an answer costs a round trip, and its tokens are those of one
# process, also when the worker is killed, the link is cut, or the device gives up in mid-stream.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx bundle=$work/cloud.llmpart ids=1,2,3,4,5 count=100
# shellcheck disable=SC2086 # a list of options
compile "$model" "$bundle" $pair --scheduler=cloud-only || finish
drawn='--temperature=0.9 --seed=7'
greedy=$(tokens "$bundle" "$ids" $count --in-process)
# shellcheck disable=SC2086 # a list of options
want=$(tokens "$bundle" "$ids" $count --in-process $drawn)
serve "$bundle"
link=--link=rtt=50ms

same 'greedy' "$greedy" "$(tokens "$bundle" "$ids" $count --cloud="$address" $link)"
# shellcheck disable=SC2086 # a list of options
same 'drawn' "$want" "$(tokens "$bundle" "$ids" $count --cloud="$address" $link $drawn)"
same 'requests for an answer' 1 "$(number "$work/json" cloud_requests)"
awk -v ttft="$(number "$work/json" ttft_ms)" -v total="$(number "$work/json" total_ms)" 'BEGIN { exit !(ttft >= 50 && total < 20 * 50) }' ||
  fail "the answer takes $(number "$work/json" total_ms) ms over a link of 50 ms"
# shellcheck disable=SC2086 # a list of options
same 'with a trace' "$want" "$(tokens "$bundle" "$ids" $count --cloud="$address" $link $drawn --trace="$work/trace.json")"
same 'tokens that came unasked' $((count - 1)) "$(grep -c '"stream"' "$work/trace.json")"

# The link is down for 20 ms in every 150.
# shellcheck disable=SC2086 # a list of options
same 'cut' "$want" "$(tokens "$bundle" "$ids" $count --cloud="$address" --link=rtt=20ms,cut=20ms/150ms,down=100kbit/s $drawn)"

# A device that gives up leaves the worker as it was. At 20 kbit/s the answer would take seconds.
# shellcheck disable=SC2086 # a list of options
"$LLMPART" run "$bundle" --tokens="$ids" -n $count --threads=1 --ignore-eos --cloud="$address" --link=rtt=50ms,down=20kbit/s $drawn \
  --session="$work/saved" >"$work/out" 2>"$work/err" &
device=$!
started="$started $device"
grown() { [ -s "$work/saved" ] && [ "$(wc -c <"$work/saved")" -gt "$1" ]; }
await grown 0 && await grown $(($(wc -c <"$work/saved") + 20))
kill -9 $device
wait $device 2>/dev/null
# shellcheck disable=SC2086 # a list of options
same 'after a device that gave up' "$want" "$(tokens "$bundle" "$ids" $count --cloud="$address" $link $drawn)"
"$LLMPART" run "$bundle" --session="$work/saved" --resume --ignore-eos --threads=1 --cloud="$address" $link -o json >"$work/json" 2>"$work/err" ||
  fail "to resume: $(head -n 2 "$work/err")"
same 'resumed' "$want" "$(sequences "$work/json")"

# The worker is killed after the first tokens, and started again.
# shellcheck disable=SC2086 # a list of options
tokens "$bundle" "$ids" $count --cloud="$address" --link=rtt=50ms,down=20kbit/s $drawn --session="$work/kept" >"$work/tokens" &
device=$!
grown_kept() { [ -s "$work/kept" ] && [ "$(wc -c <"$work/kept")" -gt "$1" ]; }
await grown_kept 0 && await grown_kept $(($(wc -c <"$work/kept") + 20))
kill -9 "$worker"
wait "$worker" 2>/dev/null
where=$address serve "$bundle"
wait $device
same 'a worker that was killed' "$want" "$(cat "$work/tokens")"
finish
