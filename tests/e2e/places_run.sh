# Bundles over three and four places, each too small for the model: the plan uses all of them, values cross straight
# from place to place, and the tokens are those of a bundle for one machine. --check compares with the model's own
# arithmetic.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1
box() { # box NAME MEMORY: a small machine
  sed "s/^memory: .*/memory: $2/" "$LP_SOURCE/hwmodels/machines/l4.yaml" >"$work/$1.yaml"
}
made() { # made BUNDLE: its tokens in one process
  "$LLMPART" run "$1" --tokens=1,2,3,4,5,6,7 -n 16 --ignore-eos --in-process 2>"$work/err" || fail "$1 does not run: $(cat "$work/err")"
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
# Deterministic, and shown as IR.
"$LLMPART" compile "$model" --place=phone=host --device-memory=2600kB --isl=16 --osl=16 --place=edge="$work/box.yaml",count=3 --emit=placed-ir -o "$work/placed.mlir" 2>"$work/err" ||
  fail "no IR: $(cat "$work/err")"
grep -q 'places = \["phone", "edge.1", "edge.2", "edge.3"\]' "$work/placed.mlir" || fail 'the IR does not name the places'
"$LLMPART" opt "$work/placed.mlir" -p plan-memory,outline --verify-each -o "$work/outlined.mlir" || fail 'the IR is not outlined'
grep -q 'slot.edge.1 = ' "$work/outlined.mlir" || fail 'the memory of a place has no name'
finish
