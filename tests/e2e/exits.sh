# exits.sh: early exits of compiled models. With --exits the full model's tokens do not change; a model without exit
# heads reuses its own head; one value crosses the link, from the device; invalid exits are refused. The invariants of
# P2 hold in all modes.
. "$LP_SOURCE/tests/e2e/lib.sh"
models=$LP_SOURCE/tests/models

check() { # check NAME MODEL EXITS COUNT
  lists=$models/$1/tokens.json
  # shellcheck disable=SC2086 # a list of options
  compile "$2" "$work/$1.llmpart" $pair --exits="$3" || return
  manifest=$work/$1.llmpart/manifest.json
  same "$1: exits" "$4" "$(grep -c '"exit": ' "$manifest" | awk '{ print $1 / 2 }')"
  same "$1: values that cross" 2 "$(grep -c '"op": "send"' "$manifest")"
  ids=$(row "$lists" prompts 1)
  want=$(row "$lists" tokens 1)
  bundle=$work/$1.llmpart count=$(length "$want")
  for i in 1 2 3; do
    every=$(row "$lists" prompts "$i")
    same "$1: exact, prompt $i" "$(row "$lists" tokens "$i")" "$(tokens "$bundle" "$every" "$count" --in-process)"
  done
  same "$1: full" "$want" "$(tokens "$bundle" "$ids" "$count" --in-process --mode=full)"
  same "$1: exact, two processes" "$want" "$(tokens "$bundle" "$ids" "$count")"
  same "$1: all from the cloud" "$want" "$(tokens "$bundle" "$ids" "$count" --mode=threshold --theta=2 --codec=f32)"
  same "$1: requests above 1" "$count" "$(number "$work/json" cloud_requests)"
  rows=$(number "$work/json" hidden_bytes_up)
  tokens "$bundle" "$ids" "$count" --mode=threshold --theta=0 --codec=f32 >"$work/early"
  same "$1: rows do not depend on theta" "$rows" "$(number "$work/json" hidden_bytes_up)"
  same "$1: requests at 0" 0 "$(number "$work/json" cloud_requests)"
  grep -q '"exit_layer": null' "$work/json" && fail "$1: a token of no exit at theta 0"
  tokens "$bundle" "$ids" "$count" --mode=threshold --theta=0.5 >"$work/early"
  same "$1: f16 is half of f32" "$rows" "$(($(number "$work/json" hidden_bytes_up) * 2))"
  tokens "$bundle" "$ids" "$count" --mode=standalone >"$work/early"
  same "$1: bytes of a device alone" 0 "$(number "$work/json" bytes_up)"
}

if part long; then
  check default "$LP_SOURCE/examples/default-model/model.onnx" 2,6 2 # one reused, one of its own
  check gpt2 "$models/gpt2/model.onnx" 1 1
  check llama-genai "$models/llama-genai/model.onnx" 1 1
  # A round trip of 50 ms is worth many drafts.
  tokens "$work/default.llmpart" "$(row "$models/default/tokens.json" prompts 3)" 60 --link=rtt=50ms,up=10Mbit/s,down=50Mbit/s >"$work/early"
  [ $((60 / $(number "$work/json" cloud_requests))) -ge 3 ] || fail "$(number "$work/json" cloud_requests) round trips of 50 ms for 60 tokens"
fi
part quick || finish
check llama "$models/llama/model.onnx" 1,2 2

# shellcheck disable=SC2086 # a list of options
refused 'an exit after all layers' 'error: .*after 3 layers: the model has 3 layers' \
  "$LLMPART" compile "$models/llama/model.onnx" $pair --exits=3 -o "$work/made/x.llmpart"
# shellcheck disable=SC2086 # a list of options
compile "$models/llama/model.onnx" "$work/plain.llmpart" $pair --scheduler=cut --cut=1 &&
  refused 'a mode without exits' 'error: .*--mode=threshold: the bundle has no early exits' \
    "$LLMPART" run "$work/plain.llmpart" --tokens=1 -n 1 --mode=threshold --in-process
ids=$(row "$models/llama/tokens.json" prompts 1) want=$(row "$models/llama/tokens.json" tokens 1)
same 'exact over a bad link' "$want" \
  "$(tokens "$work/llama.llmpart" "$ids" "$(length "$want")" --link=rtt=5ms,up=5Mbit/s,down=5Mbit/s,loss=5%,cut=30ms/90ms)"
awk -v total="$(number "$work/json" total_ms)" -v device="$(number "$work/json" device_ms)" \
  -v cloud="$(number "$work/json" cloud_ms)" -v comm="$(number "$work/json" comm_ms)" \
  'BEGIN { off = device + cloud + comm - total; exit !(off * off < 1e-6 && comm > 10 && device > 0 && cloud > 0) }' ||
  fail "parts do not make up the total: $(grep '_ms' "$work/json" | tail -n 6)"
refused 'several sequences' 'error: .*one sequence at a time' \
  "$LLMPART" run "$work/llama.llmpart" --tokens=1 --batch=2 -n 1 --mode=threshold --in-process -o json
wanted_status=2
refused 'a link with an unknown figure' "error: .*no figure 'upp'" \
  "$LLMPART" run "$work/llama.llmpart" --tokens=1 -n 1 --link=rtt=1ms,upp=1Mbit/s
refused 'a link that loses everything' 'error: .*loss of 1' "$LLMPART" run "$work/llama.llmpart" --tokens=1 -n 1 --link=loss=100%
refused 'a link that is always down' 'error: .*down for' "$LLMPART" run "$work/llama.llmpart" --tokens=1 -n 1 --link=cut=2s/1s
refused 'exits out of order' 'error: .*ascending' \
  "$LLMPART" compile "$models/llama/model.onnx" --device=jetson-nano --exits=2,1 -o "$work/made/x.llmpart"
finish
