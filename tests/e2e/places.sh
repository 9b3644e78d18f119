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
grep -q 'not proved: the lower bound' "$work/out" || fail "check-plan does not say what it leaves out: $(cat "$work/out")"
changed() { # changed KEY: adds 1 to the first figure of that name in the plan
  awk -v key="\"$1\":" '/"plan": \{/ { inside = 1 }
    inside && !done && (at = index($0, key)) { value = substr($0, at + length(key)); number = value + 0; sub(/^ *[-+0-9.e]+/, "", value)
      $0 = substr($0, 1, at + length(key) - 1) sprintf(" %.17g", number + 1) value; done = 1 } { print }' "$work/a.json" >"$work/changed.json"
  status=0
  "$LLMPART" check-plan "$work/changed.json" >"$work/out" 2>"$work/err" || status=$?
  same "exit status for another $1" 4 "$status"
}
for key in ttft_ms tpot_ms e2e_ms cost_usd cost_per_mtok_usd energy_j prefill_link_ms decode_link_ms kv_move_ms prefill_ms decode_ms request_ms messages_prefill bytes_decode; do
  changed $key
done

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
  refuse 'a side' 'does not apply to more than two places' $three --pin='*=cloud'
  refuse 'exits' 'does not apply to more than two places' $three --exits=1
  refuse 'a scheduler' "'layer' plans two places, there are 4" $three --scheduler=layer
  refuse 'types to choose' "'auto' chooses types for two places" $three --dtype-cloud=auto
  refused 'a page' 'is .txt or .json' "$LLMPART" compile "$llama" $three --emit=report -o "$work/made/x.html"
}
finish
