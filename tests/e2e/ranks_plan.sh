# A plan for several ranks: its certificate holds, the report counts the gathers that the pass shard makes, and the
# ranks and interconnects that cannot be are refused.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx
machines='--device=jetson-nano --cloud=h100 --link=lan --isl=64 --osl=16'

plan() { # plan OUT.json [option ...]
  out=$1
  shift
  # shellcheck disable=SC2086 # a list of options
  "$LLMPART" compile "$model" $machines "$@" --plan-only -o "$out" 2>"$work/err" || fail "$*: there is no plan: $(head -n 3 "$work/err")"
  "$LLMPART" check-plan "$out" >"$work/out" 2>&1 || fail "$*: an honest plan is refused: $(head -n 3 "$work/out")"
}
of_stage() { # of_stage FILE STAGE MEMBER: of the report's ranks
  sed -n '/^  "ranks"/,/^  }/p' "$1" | sed -n "/^    \"$2\"/,/^    }/s/^ *\"$3\": \([0-9.e+-]*\),*\$/\1/p"
}

# Each gather that the planner counted is in the module that runs, and no other: of the whole model, and of a cut.
for how in --scheduler=cloud-only --cut=1; do
  for count in 2 4; do
    plan "$work/plan.json" $how --ranks=$count
    # shellcheck disable=SC2086 # a list of options
    "$LLMPART" compile "$model" $machines $how --ranks=$count --emit=placed-ir -o "$work/placed.mlir" 2>"$work/err" || fail "no module: $(cat "$work/err")"
    "$LLMPART" opt "$work/placed.mlir" -p "shard{ranks=$count}" >"$work/sharded.mlir" || fail "the module is not cut"
    found=$(grep -c '"comm.all_gather"' "$work/sharded.mlir")
    [ "$found" -gt 0 ] || fail "$how, $count ranks: nothing is gathered"
    same "gathers with $how and $count ranks" "$found" $(($(of_stage "$work/plan.json" prefill collectives) + $(of_stage "$work/plan.json" decode collectives)))
  done
done

# The exact planner proves its plan, limits included; a slower interconnect takes more of the time.
plan "$work/exact.json" --ranks=2 --ttft=1s --tpot=60ms --device-memory=300kB
grep -q 'is proved' "$work/out" || fail "it does not say what is proved: $(cat "$work/out")"
plan "$work/fast.json" --scheduler=cloud-only --ranks=2 --interconnect=nvlink
plan "$work/slow.json" --scheduler=cloud-only --ranks=2 --interconnect=alpha=1ms,beta=1MB/s
awk -v a="$(of_stage "$work/fast.json" decode share)" -v b="$(of_stage "$work/slow.json" decode share)" 'BEGIN { exit !(0 < a && a < b && b < 1) }' ||
  fail "the shares of the collectives: $(of_stage "$work/fast.json" decode share) and $(of_stage "$work/slow.json" decode share)"
plan "$work/one.json" --scheduler=cloud-only --ranks=1
grep -q '"ranks"' "$work/one.json" && fail 'a report of one rank speaks of ranks'
plan "$work/auto.json" --scheduler=cloud-only --ranks=auto
same 'the ranks of a model that one machine runs best' 1 "$(number "$work/auto.json" count)"

# What the ranks do not divide is named, with the numbers of ranks that divide more: of 6 heads and 2 KV heads, five
# divide nothing and two everything but the head's 331 columns, which no number divides that leaves less whole.
plan "$work/five.json" --scheduler=cloud-only --ranks=5
grep -q -- '--ranks: warning: 5 ranks do not divide .*; 2 ranks leave only' "$work/err" || fail "no warning of 5 ranks: $(cat "$work/err")"
grep -q "self_attn/Softmax' (Softmax): note: whole: 3 attentions of 6 heads and 2 KV heads" "$work/err" || fail "it does not say where: $(cat "$work/err")"
grep -q '"kind": "op.attention", "count": 3, "heads": 6, "kv_heads": 2' "$work/five.json" || fail 'the report of 5 ranks names no attentions'
plan "$work/two.json" --scheduler=cloud-only --ranks=2
grep -q 'warning' "$work/err" && fail "a warning of 2 ranks: $(cat "$work/err")"
grep -q '"columns": 331' "$work/two.json" || fail 'the report of 2 ranks names no head'
grep -q '"kv_heads"' "$work/two.json" && fail 'two ranks leave an attention whole'

wanted_status=2
# shellcheck disable=SC2086 # a list of options
{
  refused 'no number' few "$LLMPART" compile "$model" $machines --ranks=few --plan-only
  refused "too many ranks" 65 "$LLMPART" compile "$model" $machines --ranks=65 --plan-only
  refused 'an interconnect without ranks' 'one rank needs none' "$LLMPART" compile "$model" $machines --interconnect=nvlink --plan-only
  refused 'half an interconnect' "lacks 'beta'" "$LLMPART" compile "$model" $machines --ranks=2 --interconnect=alpha=1us --plan-only
}
wanted_status=1
# The exact plan of one rank moves caches from the cloud to the device under this limit. Those of ranks cannot move: the
# plan leaves them where they are, and a plan that moves them all the same is refused.
fast='--device=jetson-nano --cloud=h100 --link=rtt=10us,up=100Gbit/s,down=100Gbit/s --isl=512 --osl=128 --ttft=3ms --tpot=1s'
# shellcheck disable=SC2086 # a list of options
{
  "$LLMPART" compile "$model" $fast --plan-only >"$work/plan.txt" 2>"$work/err"
  grep -q 'moving KV caches' "$work/plan.txt" || fail "the plan of one rank moves no caches: $(cat "$work/plan.txt")"
  "$LLMPART" compile "$model" $fast --ranks=2 --plan-only >"$work/plan.txt" 2>"$work/err" || fail "no plan of two ranks: $(cat "$work/err")"
  grep -q 'moving KV caches' "$work/plan.txt" && fail "the plan of two ranks moves caches: $(cat "$work/plan.txt")"
}
refused 'a machine without NVLink' 'names no nvlink' "$LLMPART" compile "$model" --device=jetson-nano --cloud=l4 --ranks=2 --interconnect=nvlink --plan-only
finish
