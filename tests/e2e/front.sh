# Without limits and objective the plan is the knee of the front of cost against time, and report and terminal show the
# front. Its options give its plans, --objective=cost the cheapest one, and a limit ends it.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1
split="--device=host --cloud=host,price_usd_per_s=1e-4 --link=wifi --device-memory=6MiB" # the example of README.md

plan() { # plan NAME [option ...]: plans README's example; its report is NAME.json, the text NAME.txt
  out=$work/$1
  shift
  # shellcheck disable=SC2086 # a list of options
  "$LLMPART" compile "$model" $split --plan-only --report="$out.json" --report="$out.txt" "$@" 2>"$work/err" ||
    fail "$*: exit status $?: $(head -n 3 "$work/err")"
}
figure() { sed -n '/^  "plan": {/,/^  }/p' "$work/$1.json" | number /dev/stdin "$2"; } # figure NAME KEY: of the plan
cloud() { sed -n '/^    "cloud_only": {/,/^    }/p' "$work/$1.json" | number /dev/stdin "$2"; }
holds() { # holds WHAT CONDITION: of awk
  awk "BEGIN { exit !($2) }" || fail "$1: not $2"
}

plan knee
plan cheapest --objective=cost --tolerance=0
knee=$(number "$work/knee.json" knee)
rows=$(sed -n '/^  "front": {/,/^  }/s/^ *{"ttft_ms".*/&/p' "$work/knee.json")
count=$(echo "$rows" | wc -l)
holds 'the knee is not an end' "0 < $knee && $knee < $count - 1 && $count >= 3 && $count <= 5"
holds 'the first split is not many times slower than the cloud' "$(figure knee tpot_ms) < 2 * $(cloud knee tpot_ms) && $(figure knee e2e_ms) < 2 * $(cloud knee e2e_ms)"
holds 'it saves' "$(figure knee cost_usd) < 0.9 * $(cloud knee cost_usd)"
holds 'the cheapest costs less and takes longer' "$(figure cheapest cost_usd) < $(figure knee cost_usd) && $(figure cheapest tpot_ms) > 5 * $(figure knee tpot_ms)"
grep -q '"front"' "$work/cheapest.json" && fail '--objective=cost has a front'
"$LLMPART" check-plan "$work/knee.json" >"$work/out" 2>&1 || fail "the checker refuses it: $(head -n 3 "$work/out")"

# Each row's options give a plan within its limits that costs no more; the last ones the cheapest.
echo "$rows" | sed 's/.*"cost_usd": \([-0-9.e]*\), "options": "\(.*\)"}.*/\1 \2/' >"$work/rows"
same 'options of the last row' --objective=cost "$(tail -n 1 "$work/rows" | cut -d ' ' -f 2-)"
while read -r cost options; do
  # shellcheck disable=SC2086 # a list of options
  plan row $options --tolerance=0
  holds "$options" "$(figure row cost_usd) <= $cost * (1 + 1e-9)"
  grep -q '"front"' "$work/row.json" && fail "$options: it has a front"
  [ "$options" = --objective=cost ] && continue
  for key in ttft tpot; do
    limit=$(echo "$options" | sed "s/.*--$key=\([-0-9.e]*\)ms.*/\1/")
    holds "$options" "$(figure row ${key}_ms) <= $limit"
  done
done <"$work/rows"

# The text ends in the front, and so does the terminal; both compare the plan with the cloud.
"$LLMPART" compile "$model" $split -O0 -o "$work/knee.llmpart" 2>"$work/terminal" || fail "it does not compile: $(cat "$work/terminal")"
for file in knee.txt terminal; do
  grep -A 20 '^no limits are given' "$work/$file" | tail -n "$count" >"$work/shown"
  same "$file: the plan's row" "$((knee + 1))" "$(grep -n '^\* .* --ttft=.* (this plan)$' "$work/shown" | cut -d : -f 1)"
  same "$file: the options" "$(cut -d ' ' -f 2- "$work/rows")" "$(sed 's/.*[0-9]  --/--/; s/ (this plan)$//' "$work/shown")"
  same "$file: the last lines" "$(cat "$work/shown")" "$(tail -n "$count" "$work/$file")"
  grep -Eq 'less than the cloud alone, and is [0-9.]+ times slower \(TTFT [0-9.]+ times, TPOT [0-9.]+ times\)' "$work/$file" ||
    fail "$file does not compare the times: $(cat "$work/$file")"
done
"$LLMPART" compile "$model" $split -O0 --quiet -o "$work/knee.llmpart" 2>"$work/terminal" || fail 'it does not compile again'
same 'the terminal with --quiet' '' "$(cat "$work/terminal")"

# No front: a limit, another scheduler, a family, no cloud. Where nothing fits, the message is that of a plan.
for options in --ttft=1s --tpot=1s --scheduler=layer --plans=2 --objective=latency; do
  # shellcheck disable=SC2086 # a list of options
  "$LLMPART" compile "$LP_SOURCE/tests/models/llama/model.onnx" --device=host --cloud=host,price_usd_per_s=1e-4 --link=wifi --plan-only $options -o "$work/none.json" 2>"$work/err" ||
    fail "$options: $(cat "$work/err")"
  grep -q '"front"' "$work/none.json" && fail "$options has a front"
done
"$LLMPART" compile "$model" --device=host --plan-only -o "$work/none.json" || fail 'a device alone'
grep -q '"front"' "$work/none.json" && fail 'a device alone has a front'
wanted_status=3
refused 'a model that fits nowhere' 'memory' "$LLMPART" compile "$model" --device=host --cloud=host,memory=3MiB --device-memory=1MiB --link=wifi --plan-only -o "$work/none.json"
finish
