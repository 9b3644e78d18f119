# Operators that the user pins stay on their side at any cost; several sessions share the cloud's reads.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx

report() { # report [option ...]: into $work/report.json
  # shellcheck disable=SC2086 # a list of options
  "$LLMPART" compile "$model" $pair --isl=64 --osl=16 "$@" --plan-only -o "$work/report.json" 2>"$work/err" ||
    fail "$*: exit status $?: $(head -n 3 "$work/err")"
}

sides() { # sides LAYERS: the sides of the operators of these layers, a pattern such as [01] or -1
  sed -n 's/.*"layer": '"$1"', .*"side": "\([a-z]*\)".*/\1/p' "$work/report.json" | sort -u | tr '\n' ' '
}

# By itself all of it is on the device; the cloud's objective is the other way around.
report --scheduler=cloud-only
same 'layer 0 without a pin' 'cloud ' "$(sides 0)"
report --pin='layer.1.*=cloud'
same 'a pinned layer' 'cloud ' "$(sides 1)"
same 'the layer before it' 'device ' "$(sides 0)"
report --objective=latency --tpot=100ms --private=1 --pin='layer.1.*=cloud'
same 'private embeddings and layer' 'device ' "$(sides 0)"
same 'the layer behind them' 'cloud ' "$(sides 1)"
report --private=0 --pin='layer.[01].*=cloud'
same 'private embeddings alone' 'cloud ' "$(sides '[01]')"

wanted_status=2
refused 'a pin without a side' "--pin: error: " "$LLMPART" compile "$model" $pair --pin=layer.0 -o "$work/made/out.llmpart"
refused 'a pin to another side' "--pin: error: .*edge" "$LLMPART" compile "$model" $pair '--pin=layer.0.*=edge' -o "$work/made/out.llmpart"
wanted_status=3
refused 'a private layer that does not fit' 'memory' "$LLMPART" compile "$model" $pair --private=1 --device-memory=1kB -o "$work/made/out.llmpart"

# Sixteen sessions read the cloud's weights once: each is charged less, and their caches take more of its memory.
cost() { sed -n '/^  "plan": {/,/^  }/p' "$work/report.json" | number /dev/stdin "$1"; }
report --scheduler=cloud-only
one=$(cost cost_per_mtok_usd) one_memory=$(cost cloud_memory_bytes)
report --scheduler=cloud-only --sessions=16
awk -v one="$one" -v many="$(cost cost_per_mtok_usd)" 'BEGIN { exit !(many > 0 && many < one / 2) }' ||
  fail "a million tokens cost $one USD for one session, $(cost cost_per_mtok_usd) for 16"
awk -v one="$one_memory" -v many="$(cost cloud_memory_bytes)" 'BEGIN { exit !(many > one) }' || fail 'caches of 16 sessions take no memory'
finish
