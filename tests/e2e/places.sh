# Plans over more than two places: the report names them, no pair is better, two places are a device and a cloud.
. "$LP_SOURCE/tests/e2e/lib.sh"
llama=$LP_SOURCE/tests/models/llama/model.onnx
three='--place=phone=jetson-nano --place=edge=l4,count=2 --place=server=h100 --link=rtt=4ms,up=50Mbit/s,down=50Mbit/s --link=edge-server=lan'
compile_three() { # compile_three [option ..]
  # shellcheck disable=SC2086 # a list of options
  "$LLMPART" compile "$llama" $three "$@"
}

# 400 kB hold no half of the weights: several machines are needed.
small='--device-memory=300kB'
compile_three $small --tpot=40ms --report="$work/a.json" --report="$work/a.txt" --emit=report 2>"$work/err" || fail "it is not planned: $(cat "$work/err")"
same 'the schema' 1 "$(grep -c '"schema": "llmpart.places/1"' "$work/a.json")"
for place in phone edge.1 edge.2 server; do
  grep -q "^[a-z ]* $place " "$work/a.txt" || fail "the report does not name $place"
done
grep -q '"feasible": true' "$work/a.json" || fail 'it is not feasible'
# The same plan again, to the byte.
compile_three $small --tpot=40ms --emit=report -o "$work/b.json" || fail 'it is not planned again'
cmp -s "$work/a.json" "$work/b.json" || fail 'the reports of two runs differ'
# Spreadsheets have a column of times for each place and the operators of both stages; a page has the same data.
compile_three $small --tpot=40ms --plan-only --report="$work/a.csv" --report="$work/a.html" || fail 'no table and page'
same 'the columns' 'name,kind,layer,stage,place,flops,bytes,ratio,phone_ms,edge.1_ms,edge.2_ms,server_ms' "$(head -n 1 "$work/a.csv")"
same 'the operators' "$(grep -c '"kind": "op\.' "$work/a.json")" "$(($(wc -l <"$work/a.csv") - 1))"
same 'the stages' 'decode prefill' "$(awk -F, 'NR > 1 { print $4 }' "$work/a.csv" | sort -u | tr '\n' ' ' | sed 's/ $//')"
grep -q '"schema":"llmpart.places/1"' "$work/a.html" || fail 'the page has no data'
# explain names the place and the time in each; diff sees what another link and a pin change.
q=/model/model/layers.0/self_attn/q_proj/MatMul
place=$(awk -F, -v q=$q '$1 == q && $4 == "decode" { print $5 }' "$work/a.csv")
"$LLMPART" explain "$work/a.json" $q >"$work/out" || fail 'explain does not know an operator'
grep -q "$q in decode: at $place; .* at phone, .* at edge.1, .* at edge.2, .* at server\$" "$work/out" || fail "explain says $(cat "$work/out")"
refused 'an operator that there is not' "no operator 'nothing'" "$LLMPART" explain "$work/a.json" nothing
compile_three $small --tpot=40ms --link=phone-server=lte --pin='layer.0.*=server' --emit=report -o "$work/other.json" 2>/dev/null
status=0
"$LLMPART" diff "$work/a.json" "$work/other.json" >"$work/out" || status=$?
same 'the exit status of diff' 4 "$status"
grep -q 'links.phone-server.link: ' "$work/out" || fail "diff names no link: $(cat "$work/out")"
grep -q "layer 0, decode: [0-9]* operators from .* to server" "$work/out" || fail "diff names no move: $(cat "$work/out")"
status=0
compile_three $small --tpot=40ms --plan-only --report="$work/other.txt" --fail-if='tpot_ms > 40' || fail '--fail-if sees a TPOT that the plan does not have'
compile_three $small --tpot=40ms --plan-only --report="$work/other.txt" --fail-if='tpot_ms <= 40' 2>"$work/err" || status=$?
same 'the exit status of --fail-if' 4 "$status"
# The plan costs no more than the two-place planner's of either pair.
cost() { sed -n '/^  "plan": {/,/^  }/p' "$1" | sed -n 's/^ *"cost_usd": \([0-9.e-]*\),*$/\1/p' | head -n 1; }
for cloud in l4 h100; do
  "$LLMPART" compile "$llama" --device=jetson-nano --cloud=$cloud --link=rtt=4ms,up=50Mbit/s,down=50Mbit/s $small --tpot=40ms --tolerance=0 \
    --emit=report -o "$work/pair.json" 2>"$work/err" || fail "no plan with $cloud: $(cat "$work/err")"
  compile_three $small --tpot=40ms --tolerance=0 --emit=report -o "$work/more.json" || fail 'it is not planned'
  awk -v all="$(cost "$work/more.json")" -v pair="$(cost "$work/pair.json")" 'BEGIN { exit !(all != "" && pair != "" && all <= pair * (1 + 1e-9)) }' ||
    fail "it costs $(cost "$work/more.json"), with $cloud alone $(cost "$work/pair.json")"
done

# Two places are a device and a cloud.
"$LLMPART" compile "$llama" --place=phone=jetson-nano --place=server=v100s --link=phone-server=wifi --tpot=40ms --emit=report -o "$work/two.json" ||
  fail 'two places are not planned'
"$LLMPART" compile "$llama" --device=jetson-nano --cloud=v100s --link=wifi --tpot=40ms --emit=report -o "$work/sides.json" || fail 'two sides are not planned'
cmp -s "$work/two.json" "$work/sides.json" || fail 'two places differ from a device and a cloud'

# check-plan adds up the figures, says what it does not prove, and refuses each figure that does not hold.
"$LLMPART" check-plan "$work/a.json" >"$work/out" 2>"$work/err" || fail "the plan is not confirmed: $(cat "$work/err")"
tr '\n' ' ' <"$work/out" | grep -q 'is proved, gap .*not proved: the operators' ||
  fail "check-plan does not say what it proves and leaves out: $(cat "$work/out")"
changed() { # changed KEY: adds 1 to the first figure of that name in the plan
  awk -v key="\"$1\":" '/"plan": \{/ { inside = 1 }
    inside && !done && (at = index($0, key)) { value = substr($0, at + length(key)); number = value + 0; sub(/^ *[-+0-9.e]+/, "", value)
      $0 = substr($0, 1, at + length(key) - 1) sprintf(" %.17g", number + 1) value; done = 1 } { print }' "$work/a.json" >"$work/changed.json"
  status=0
  "$LLMPART" check-plan "$work/changed.json" >"$work/out" 2>"$work/err" || status=$?
  same "exit status for another $1" 4 "$status"
}
for key in ttft_ms tpot_ms e2e_ms cost_usd cost_per_mtok_usd energy_j prefill_link_ms decode_link_ms kv_move_ms prefill_ms decode_ms request_ms messages_prefill bytes_decode objective proved_lower_bound lower_bound proved_gap; do
  changed $key
done

# A part that is divided in prefill and whole in decode pays for the weights that it is the first to use.
"$LLMPART" compile "$LP_SOURCE/examples/default-model/model.onnx" --place=phone=host --place=box=jetson-orin,memory=2300kB,dtype=bf16 --place=server=jetson-orin \
  --device-memory=1MB --objective=latency --isl=64 --osl=64 --batch=2 --emit=report -o "$work/half.json" 2>"$work/err" || fail "it is not planned: $(cat "$work/err")"
"$LLMPART" check-plan "$work/half.json" >"$work/out" 2>"$work/err" || fail "the bound of a part that one stage divides is not confirmed: $(cat "$work/err")"

# A certificate in which a figure differs proves less than the report says, or is no certificate.
certified() { # certified KEY FACTOR: multiplies the figures of that name in the certificate, where the first ones are not 0
  awk -v key="\"$1\":" -v factor="$2" '/"certificate": \{/ { inside = 1 }
    inside && !done && (at = index($0, key)) { value = substr($0, at + length(key)); made = ""
      while (match(value, /[0-9][-+0-9.e]*/)) { number = substr(value, RSTART, RLENGTH); if (number != 0) done = 1
        made = made substr(value, 1, RSTART - 1) sprintf("%.17g", number * factor); value = substr(value, RSTART + RLENGTH) }
      $0 = substr($0, 1, at + length(key) - 1) made value } { print }' "$work/a.json" >"$work/changed.json"
  cmp -s "$work/a.json" "$work/changed.json" && fail "the certificate has no $1"
  status=0
  "$LLMPART" check-plan "$work/changed.json" >"$work/out" 2>"$work/err" || status=$?
  same "exit status for another $1 in the certificate" 4 "$status"
}
certified per_byte 2
certified per_byte 0.5
certified bound 1.01
certified value 1.01
certified decode_per_ms 0.9
certified bytes 2
certified ms 2

# Pins: of a kind, of one of several machines, and of a layer that none of them had. No plan is cheaper with them.
pinned() { # pinned PLACE GLOB=PLACE ..: plans with the pins and wants the operators of layer 0 there and nowhere else
  place=$1
  shift
  pins=
  for pin; do pins="$pins --pin=$pin"; done
  # shellcheck disable=SC2086 # lists of options
  compile_three $small $pins --tolerance=0 --emit=report -o "$work/pinned.json" || fail "it is not planned with $*"
  "$LLMPART" check-plan "$work/pinned.json" >"$work/out" 2>"$work/err" || fail "the plan with $* is not confirmed: $(cat "$work/err")"
  "$LLMPART" compile "$llama" --place=phone=jetson-nano --place=edge=l4,count=2 --place=server=h100 --link=rtt=4ms,up=50Mbit/s,down=50Mbit/s --link=edge-server=lan \
    $small $pins --tolerance=0 --emit=placed-ir -o "$work/pinned.mlir" || fail "it is not placed with $*"
  sides=$(grep 'layer = 0' "$work/pinned.mlir" | grep -o ' side = "[^"]*"' | sort -u | grep -v '"both"' | tr -d '\n')
  same "the places of layer 0 with $*" " side = \"$place\"" "$sides"
  awk -v free="$(cost "$work/more.json")" -v own="$(cost "$work/pinned.json")" 'BEGIN { exit !(free != "" && own != "" && own >= free * (1 - 1e-9)) }' ||
    fail "with $* it costs $(cost "$work/pinned.json"), without $(cost "$work/more.json")"
}
compile_three $small --tolerance=0 --emit=report -o "$work/more.json" || fail 'it is not planned without pins'
pinned edge.2 'layer.0.*=edge.2'
pinned server 'layer.0.*=edge' 'layer.0.*=server' 'layer.1.*=edge.1'
small=
compile_three --tolerance=0 --emit=report -o "$work/more.json" || fail 'it is not planned without pins and limits'
pinned phone 'layer.0.*=phone' 'layer.1.*=edge'
compile_three $small --private=1 --emit=report -o "$work/private.json" || fail 'it is not planned with a private layer'
# Pins that divide a layer.
compile_three $small --pin='*/self_attn/*=edge.1' --pin='*/mlp/*=server' --emit=report -o "$work/divided.json" || fail 'it is not planned with pins that divide layers'
"$LLMPART" check-plan "$work/divided.json" >"$work/out" 2>"$work/err" || fail "that plan is not confirmed: $(cat "$work/err")"
# Two places by their names.
"$LLMPART" compile "$llama" --place=phone=jetson-nano --place=server=v100s --link=wifi --pin='layer.0.*=server' --emit=report -o "$work/two.json" || fail 'two places take no pin'
"$LLMPART" compile "$llama" --device=jetson-nano --cloud=v100s --link=wifi --pin='layer.0.*=cloud' --emit=report -o "$work/sides.json" || fail 'two sides take no pin'
cmp -s "$work/two.json" "$work/sides.json" || fail 'a pin to a place differs from one to a side'

# A type and code for each place.
"$LLMPART" compile "$llama" --place=phone=jetson-nano,dtype=f16 --place=edge=l4,count=2,dtype=int8,backend=cpu,march=x86-64-v3 --place=server=h100 \
  $small --pin='layer.0.*=edge.1' --pin='layer.1.*=server' --emit=placed-ir -o "$work/types.mlir" || fail 'places have no types of their own'
types() { grep "side = \"$1\"" "$work/types.mlir" | grep -o 'weight_dtype = "[^"]*"' | sort -u | tr -d '\n'; }
same 'the type at edge.1' 'weight_dtype = "int8"' "$(types edge.1)"
same 'the type at server' '' "$(types server)"
"$LLMPART" compile "$llama" --place=phone=jetson-nano,dtype=f16 --place=server=v100s,dtype=int8 --link=wifi --emit=report -o "$work/two.json" || fail 'two places have no types of their own'
"$LLMPART" compile "$llama" --device=jetson-nano --cloud=v100s --dtype-device=f16 --dtype-cloud=int8 --link=wifi --emit=report -o "$work/sides.json" || fail 'two sides have no types'
cmp -s "$work/two.json" "$work/sides.json" || fail 'types of two places differ from those of two sides'

wanted_status=3
# shellcheck disable=SC2086 # a list of options
refused 'an SLA that no place meets' 'no plan over these places meets the limits: in the nearest one tpot' "$LLMPART" compile "$llama" $three --tpot=1us --emit=report -o "$work/x.json"
wanted_status=2
refuse() { # refuse WHAT PATTERN [option ..]
  what=$1 pattern=$2
  shift 2
  refused "$what" "$pattern" "$LLMPART" compile "$llama" "$@" --emit=report -o "$work/made/x.json"
}
refuse 'a place without a machine' "'phone' is not a name and a machine" --place=phone
refuse 'a name with a dash' 'not a name and a machine' --place=a-b=l4
refuse 'a link towards the device' "'b-a' is not the device and then the other place: 'a-b'" --place=a=l4 --place=b=h100 --link=b-a=lan
refuse 'the same name' "two places 'a'" --place=a=l4 --place=a=l4
refuse 'two devices' 'comes first and is the device' --place=a=l4,count=2 --place=b=h100
refuse 'nine places' '9 places, at most 8' --place=a=l4 --place=b=l4,count=8
refuse 'a device besides' 'leave out --device' --device=l4 --place=a=l4
# shellcheck disable=SC2086 # lists of options
{
  refused 'code of one side' "'obj' is for one of two sides, there are 4 places" "$LLMPART" compile "$llama" $three --emit=obj -o "$work/made/x.o"
  refuse 'a device with the name of a side' "'cloud' should have another name" --place=cloud=l4 --place=a=l4 --place=b=h100
  refuse 'a place with the name of the device' "'device' should have another name" --place=a=l4 --place=device=l4 --place=b=h100
  refuse 'a place that is all of them' "'both' should have another name" --place=a=l4 --place=both=l4 --place=b=h100
  refuse 'a link of no place' "'cloud' is no place" $three --link=phone-cloud=lan
  refuse 'a link to itself' "one 'phone'" $three --link=phone-phone=lan
  refuse 'a lopsided link among equals' "among 'edge'" $three --link=edge-edge=rtt=1ms,up=1Mbit/s,down=2Mbit/s
  refuse 'a pin to a side' "'\*=cloud' is not an operator's name and a place" $three --pin='*=cloud'
  refuse 'a type to choose for a place' "'auto' chooses types for two places" --place=a=l4 --place=b=l4,dtype=auto --place=c=h100
  refuse 'a type that is none' "weights in 'int2' are not supported" --place=a=l4 --place=b=l4,dtype=int2 --place=c=h100
  refuse 'a backend that is none' "'metal' is no backend" --place=a=l4 --place=b=l4,backend=metal --place=c=h100
  refuse 'exits' "'auto' chooses exits for two places, there are 4: name the layers" $three --exits=auto
  refuse 'a scheduler' "'layer' plans two places, there are 4" $three --scheduler=layer
  refuse 'types to choose' "'auto' chooses types for two places" $three --dtype-cloud=auto
  refused 'a format' "no report format 'pdf'" "$LLMPART" compile "$llama" $three --emit=report -o "$work/made/x.pdf"
}
finish
