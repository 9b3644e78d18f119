# spoiled_report.sh SPOIL: check-plan refuses values of other kinds in a report of places, or does not need them.
. "$LP_SOURCE/tests/e2e/lib.sh"
"$LLMPART" compile "$LP_SOURCE/tests/models/llama/model.onnx" --place=phone=jetson-nano --place=edge=l4,count=2 --place=server=h100 \
  --link=rtt=4ms,up=50Mbit/s,down=50Mbit/s --link=edge-server=lan --device-memory=300kB --tpot=40ms --emit=report -o "$work/report.json" 2>"$work/err" ||
  fail "it is not planned: $(cat "$work/err")"
"$1" "$work/report.json" 2 >"$work/out" || fail "spoiled reports: $(tail -n 12 "$work/out")"
finish
