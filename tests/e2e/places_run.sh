# Bundles over three and four places, each too small for the model: the plan uses all of them, values cross straight
# from place to place, and the tokens are those of a bundle for one machine. --check compares with the model's own
# arithmetic.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1
box() { # box NAME MEMORY: a small machine
  sed "s/^memory: .*/memory: $2/" "$LP_SOURCE/hwmodels/machines/l4.yaml" >"$work/$1.yaml"
}
made() { # made BUNDLE [option ..]: its tokens in one process
  "$LLMPART" run "$@" --tokens=1,2,3,4,5,6,7 -n 16 --ignore-eos --in-process 2>"$work/err" || fail "$1 does not run: $(cat "$work/err")"
}
"$LLMPART" compile "$model" --device=host --march=native -o "$work/one.llmpart" 2>"$work/err" || fail "one machine: $(cat "$work/err")"
want=$(made "$work/one.llmpart")
[ -n "$want" ] || fail 'one machine makes no tokens'

over() { # over NAME DEVICE OTHERS [option ..]: compiles for places of these sizes, all of which are needed, and compares
  name=$1 device=$2
  box box "$3"
  shift 3
  "$LLMPART" compile "$model" --place=phone=host --device-memory="$device" --objective=latency --march=native --isl=16 --osl=16 \
    --link=phone-edge=5g --link=rtt=1ms,up=1Gbit/s,down=1Gbit/s --check "$@" --report="$work/$name.json" -o "$work/$name.llmpart" 2>"$work/err" ||
    fail "$name is not compiled: $(cat "$work/err")"
  same "tokens of $name" "$want" "$(made "$work/$name.llmpart")"
  for place in $places; do
    [ -f "$work/$name.llmpart/$place/model.so" ] || fail "$name has nothing at $place"
  done
  same "folders of $name" "$(echo "$places" | wc -w)" "$(find "$work/$name.llmpart" -name model.so | wc -l)"
}
places='phone edge.1 edge.2'
over three 1000kB 3200kB --place=edge="$work/box.yaml",count=2
grep -A 1 '"from": "edge.1"' "$work/three.llmpart/manifest.json" | grep -q '"to": "edge.2"' || fail 'three: no place sends straight to another'
places='phone edge.1 edge.2 server'
over four 1000kB 2300kB --place=edge="$work/box.yaml",count=2 --place=server="$work/box.yaml"
"$LLMPART" run "$work/four.llmpart" --tokens=1,2,3,4,5,6,7 -n 16 --ignore-eos --in-process --stats >"$work/out" 2>"$work/err" || fail 'four does not run with --stats'
grep -Eq ' sampled at (phone|edge.1|edge.2|server)$' "$work/err" || fail "the statistics do not name the place that samples: $(cat "$work/err")"
grep -q ': phone .*, other places .*, links ' "$work/err" || fail "the statistics do not name the places: $(cat "$work/err")"

"$LLMPART" run "$work/four.llmpart" --tokens=1,2,3,4,5,6,7 -n 16 --ignore-eos --trace="$work/trace.json" >"$work/out" 2>"$work/err" || fail "four does not run with --trace: $(cat "$work/err")"
grep -q '"thread_name", .*"name": "server"' "$work/trace.json" || fail 'the timeline has no lane of the server'
grep -Eq '"place": "(edge.1|edge.2|server)", "clock_offset_ms": ' "$work/trace.json" || fail "the timeline has no clock of a place: $(head -c 500 "$work/trace.json")"

# One machine multiplies fast, another one reads memory fast: the prompt is computed at one and the tokens are at the
# other, and the KV caches go straight from one to the other.
machine multiplies '100 TFLOP/s' '1 GB/s'
machine reads '10 GFLOP/s' '1000 GB/s'
"$LLMPART" compile "$model" --place=phone=host --device-memory=200kB --place=edge="$work/multiplies.yaml" --place=server="$work/reads.yaml" --objective=latency \
  --march=native --isl=64 --osl=64 --link=rtt=1ms,up=100Gbit/s,down=100Gbit/s --tolerance=0 --check --report="$work/moves.json" -o "$work/moves.llmpart" 2>"$work/err" ||
  fail "moves is not compiled: $(cat "$work/err")"
awk '/"from": "edge", "to": "server"/ { found = 1; sub(/.*"kv_move_bytes": /, ""); moved = $0 + 0 } END { exit !(found && moved > 0) }' "$work/moves.json" ||
  fail "no KV cache moves from edge to server: $(grep kv_move_bytes "$work/moves.json")"
same 'tokens of moves' "$want" "$(made "$work/moves.llmpart")"
separate=$("$LLMPART" run "$work/moves.llmpart" --tokens=1,2,3,4,5,6,7 -n 16 --ignore-eos 2>"$work/err") || fail "moves does not run over processes: $(cat "$work/err")"
same 'tokens of moves over processes' "$want" "$separate"

# Early exits over a chain of places: the device's exits propose tokens, and the last place confirms them.
if [ -n "${2:-}" ]; then
  "$LLMPART" compile "$model" --exits="$2" --place=phone=host --place=edge=host,memory=1500kB --place=server=host,memory=1500kB --link=lan --march=native \
    --isl=16 --osl=16 --check -o "$work/exits.llmpart" 2>"$work/err" || fail "exits are not compiled: $(cat "$work/err")"
  [ -d "$work/exits.llmpart/edge" ] && [ -d "$work/exits.llmpart/server" ] || fail 'exits: one place has the rest of the model'
  for mode in exact full; do
    same "exits, $mode" "$want" "$(made "$work/exits.llmpart" --mode=$mode)"
    over=$("$LLMPART" run "$work/exits.llmpart" --tokens=1,2,3,4,5,6,7 -n 16 --ignore-eos --mode=$mode --stats 2>"$work/err") || fail "exits, $mode: $(cat "$work/err")"
    same "exits over processes, $mode" "$want" "$over"
  done
  "$LLMPART" run "$work/exits.llmpart" --tokens=1,2,3,4,5,6,7 -n 16 --ignore-eos --mode=exact -o json >"$work/json" 2>"$work/err" || fail "exits: $(cat "$work/err")"
  grep -Eq '"drafted": *[1-9]' "$work/json" || fail "no exit has proposed a token: $(cat "$work/json")"
  "$LLMPART" run "$work/exits.llmpart" --tokens=1,2,3,4,5,6,7 -n 16 --ignore-eos --mode=threshold --theta=2 --codec=f32 >"$work/out" 2>"$work/err" || fail "threshold: $(cat "$work/err")"
  same 'exits, threshold, all of the last place' "$want" "$(cat "$work/out")"
  "$LLMPART" run "$work/exits.llmpart" --tokens=1,2,3,4,5,6,7 -n 16 --ignore-eos --mode=standalone >"$work/out" 2>"$work/err" || fail "standalone: $(cat "$work/err")"
  "$LLMPART" compile "$model" --exits="$2" --place=phone=host --place=edge=host --place=server=host --pin='layer.0.*=edge' --emit=report >"$work/out" 2>"$work/err" &&
    fail 'a layer of the device is pinned elsewhere'
  grep -q 'with early exits the device has the layers below' "$work/err" || fail "a pin against exits: $(cat "$work/err")"
fi

# Deterministic, and shown as IR.
"$LLMPART" compile "$model" --place=phone=host --device-memory=2600kB --isl=16 --osl=16 --place=edge="$work/box.yaml",count=3 --emit=placed-ir -o "$work/placed.mlir" 2>"$work/err" ||
  fail "no IR: $(cat "$work/err")"
grep -q 'places = \["phone", "edge.1", "edge.2", "edge.3"\]' "$work/placed.mlir" || fail 'the IR does not name the places'
"$LLMPART" opt "$work/placed.mlir" -p plan-memory,outline --verify-each -o "$work/outlined.mlir" || fail 'the IR is not outlined'
grep -q 'slot.edge.1 = ' "$work/outlined.mlir" || fail 'the memory of a place has no name'
finish
