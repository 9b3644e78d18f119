# Every JSON output of the command is valid by its schema in docs/schemas/, which allows no other members, and every
# schema has such an output. Python's jsonschema judges.
. "$LP_SOURCE/tests/e2e/lib.sh"
python=''
for candidate in ${LP_PYTHON:+"$LP_PYTHON"} python3 /usr/bin/python3; do
  [ -n "$python" ] || ! "$candidate" -c 'from jsonschema import Draft202012Validator' 2>/dev/null || python=$candidate
done
[ -n "$python" ] || skip "the Debian package 'python3-jsonschema' is not installed"
"$LLMPART" help --words | grep -qx route || skip 'llmpart was built without the router'
llama=$LP_SOURCE/tests/models/llama/model.onnx
default=$LP_SOURCE/examples/default-model
out=$work/documents
mkdir "$out"
cd "$work" || exit 1
export XDG_CACHE_HOME="$work/cache"
outputs=0

# made STATUS COMMAND ..: keeps the document that the command prints on stdout.
made() {
  wanted=$1 status=0
  shift
  outputs=$((outputs + 1))
  "$@" >"$out/$outputs.json" 2>"$work/err" || status=$?
  [ "$status" = "$wanted" ] || fail "$*: exit status $status, wanted $wanted: $(head -n 2 "$work/err")"
}
report() { # report STATUS [option ..]: on two machines
  wanted=$1
  shift
  made "$wanted" "$LLMPART" compile "$llama" --device=jetson-nano-p1 --cloud=v100s-p1 --isl=16 --osl=8 --emit=report -o json "$@"
}

# Reports: with and without a plan, a cloud, a family of plans, exits, a link that varies, Table I.
report 0 --link=lan
report 3 --link=lte --ttft=1us
report 3 --link=lan --device-memory=1000 --private=1
report 0 --link=wifi --scheduler=greedy --table1 --sessions=4
report 0 --link=wifi --tpot=1s --plans=3
report 0 --link=wifi --objective=cost+1e-6*latency --dtype-device=int8 --activations=auto --cut=1
report 0 --link=uma-3gpp --sla-quantile=0.9
report 0 --link=wifi --scheduler=device-only --dtype-device=auto --dtype-cloud=auto --tpot=1s
report 0 --device=jetson-orin --cloud=a100 --cut=1
report 0 --device=jetson-orin --cloud=h100 --scheduler=cloud-only --ranks=2
slas='--device-memory=200kB --ttft=60ms --tpot=45ms --isl=16 --osl=8 --link=rtt=20ms,up=1Mbit/s,down=10Mbit/s'
# shellcheck disable=SC2086 # a list of options
made 0 "$LLMPART" compile "$llama" --device=jetson-nano --cloud=v100s $slas --plans=3 --emit=report -o json
made 0 "$LLMPART" compile "$llama" --device=host --emit=report -o json
made 0 "$LLMPART" compile "$default/model.onnx" --device=host --cloud=host,price_usd_per_s=1e-4 --link=lan --device-memory=6MiB --plan-only -o json
for mode in exact threshold standalone full; do
  made 0 "$LLMPART" compile "$default/model.onnx" --device=jetson-nano --cloud=v100s --link=wifi --exits=3,6 --exit-mode=$mode --plan-only -o json
done
places='--place=phone=jetson-nano --place=edge=l4,count=2 --place=server=h100 --link=wifi --link=edge-edge=lan'
# shellcheck disable=SC2086 # a list of options
made 0 "$LLMPART" compile "$llama" $places --device-memory=300kB --plan-only -o json
# shellcheck disable=SC2086 # a list of options
made 3 "$LLMPART" compile "$llama" $places --ttft=1us --plan-only -o json
cp "$out/1.json" old.json
"$LLMPART" compile "$llama" --device=jetson-nano-p1 --cloud=v100s-p1 --isl=16 --osl=8 --link=lan --cut=1 --plan-only -o new.json
made 4 "$LLMPART" diff old.json new.json -o json
made 0 "$LLMPART" diff old.json old.json -o json

# Running.
compile "$llama" "$work/one.llmpart" --device=jetson-nano-p1 --march=native || finish
compile "$default/model.onnx" "$work/exits.llmpart" --device=jetson-nano --cloud=v100s --link=wifi --march=native --exits=3,6 || finish
# shellcheck disable=SC2086 # a list of options
compile "$llama" "$work/plans.llmpart" --device=jetson-nano --cloud=v100s --march=native $slas --plans=3 --profile || finish
made 0 "$LLMPART" run one.llmpart --tokens='1,2;3,4' -n 4 -o json
made 0 "$LLMPART" run exits.llmpart --prompt=Once -n 4 -o json
made 0 "$LLMPART" run exits.llmpart --prompt=Once -n 4 -o json --mode=threshold --theta=0.3 --in-process
made 0 "$LLMPART" run plans.llmpart --tokens=1 -n 2 -o json
made 0 "$LLMPART" run one.llmpart --tokens=1,2 -n 4 --ignore-eos -o json
made 0 "$LLMPART" compile "$llama" --device=jetson-nano-p1 --isl=2 --osl=4 --measured="$out/$outputs.json" --plan-only -o json
made 0 "$LLMPART" bench one.llmpart -p 4 -n 4 -r 2 -t 1 -o json
made 0 "$LLMPART" bench plans.llmpart --profile -p 4 -n 4 -r 1 -t 1 -o json
for seed in 1 2 3 4 5 6; do "$LLMPART" run exits.llmpart --prompt=Once --mode=standalone --temperature=1 --seed=$seed -n 24 --ignore-eos 2>/dev/null; echo; done >texts.txt
made 0 "$LLMPART" calibrate exits.llmpart --data=texts.txt --risk=0.9 --threads=1 -o json
made 0 "$LLMPART" calibrate exits.llmpart --data=texts.txt --at=0.5,0.9 --threads=1 -o json
compile "$llama" "$work/marked.llmpart" --device=jetson-nano --march=native --profile || finish
echo '[1, 2, 3]' >ids.jsonl
made 0 "$LLMPART" calibrate marked.llmpart --data=ids.jsonl --activations=- --threads=1
compile "$LP_SOURCE/tests/models/experts/silu/model.onnx" "$work/mixture.llmpart" --profile || finish
made 0 "$LLMPART" calibrate mixture.llmpart --data=ids.jsonl --experts=- --threads=1

# Models, machines.
made 0 "$LLMPART" support "$llama" -o json
made 0 "$LLMPART" support "$LP_SOURCE/examples/router-model/model.onnx" -o json
made 0 "$LLMPART" verify "$llama" --against=reference -o json
made 0 "$LLMPART" hw list -o json
made 0 "$LLMPART" hw show a100 -o json
made 0 "$LLMPART" hw show jetson-nano -o json
made 0 "$LLMPART" hw predict v100s --op=linear --m=16 --n=64 --k=64 -o json
printf 'op,m,n,k,batch,q_len,kv_len,heads,kv_heads,head_dim,dtype,time_us\nlinear,16,64,64,1,,,,,,f16,10\nlinear,32,64,64,1,,,,,,f16,12\n' >table.csv
made 0 "$LLMPART" hw eval v100s table.csv -o json

# Planning and the world around.
cat >sweep.yaml <<END
model: $llama
machines: [{device: [jetson-nano-p1], cloud: v100s-p1}]
links: [lan, lte]
workloads: {isl: [8, 16], osl: 8, batch: 1}
slas: [{}, {ttft: 1us}]
END
made 0 "$LLMPART" sweep sweep.yaml -o json
cat >fleet.yaml <<END
decoder: {layers: 4, hidden: 512, ffn: 1024, heads: 8, vocab: 1000}
load: {rate: 5}
lengths: [{isl: 16, osl: 8}]
classes:
  - {name: a, device: jetson-nano, link: lan, limits: {tpot: {p50: 1s}}}
  - {name: b, device: jetson-nano, link: lan, limits: {ttft: {p99: 2ms}}}
machines: [a100, l4]
requests: 100
END
made 0 "$LLMPART" fleet fleet.yaml -o json
cp "$out/$outputs.json" fleet.json
sed 's/rate: 5/rate: 5, diurnal: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3]/' fleet.yaml >day.yaml
echo 'by_hour: {cold_start: 3min}' >>day.yaml
made 0 "$LLMPART" fleet day.yaml -o json
made 0 "$LLMPART" simulate fleet.json -o json
made 0 "$LLMPART" service show llama3 --tokens=300 -o json
made 0 "$LLMPART" radio pf --users=3 --sinr=0 --rayleigh --intervals=40 -o json
made 0 "$LLMPART" radio drop uma-3gpp --users=57 --intervals=8 -o json
for scenario in length learning decision; do
  made 0 "$LLMPART" simulate "$LP_SOURCE/examples/edge-cloud-6g/$scenario.yaml" --runs=2 -o json
done
made 0 "$LLMPART" route --keywords='code, long answer' --model=lookup --pool=pool.db -o json
made 0 "$LLMPART" route --keywords=code --rule=cloud --policy=rule --offer=edge,cloud -o json
echo '{service: llama3, backhaul: 100ms, edge: {context: 512, slots: 8}, cloud: {context: 128000, usd_per_mtok: 15}, link: {up: 10Mbit/s, down: 50Mbit/s}}' >backends.yaml
made 0 "$LLMPART" route --keywords=code --backends=backends.yaml --prompt-tokens=900 --tokens=300 -o json
"$LLMPART" route --outcome=1 --reward=0.5 --pool=pool.db >/dev/null 2>&1 || fail 'no outcome was noted'
made 0 "$LLMPART" route --replay=pool.db --policy=rule -o json

# The schemas that the sources name.
grep -rhoE '"llmpart\.[a-z-]+/[0-9]+"' "$LP_SOURCE/tools" "$LP_SOURCE/passes/plan/report" "$LP_SOURCE/passes/plan/sweep" \
  "$LP_SOURCE/fleet" "$LP_SOURCE/runtime/simulate" "$LP_SOURCE/runtime/exits/calibrate" --include='*.c' | tr -d '"' | sort -u >named.txt
"$python" "$LP_SOURCE/tests/docs/schemas.py" "$LP_SOURCE/docs/schemas" named.txt "$out"/*.json "$LP_SOURCE"/tests/golden/*.json >"$work/found" 2>&1 || fail "$(cat "$work/found")"
finish
