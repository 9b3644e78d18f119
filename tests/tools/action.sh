# What the GitHub action and the pre-commit hooks run: a plan, one that breaks a limit, one that became worse.
. "$LP_SOURCE/tests/e2e/lib.sh"
PATH=$(dirname "$LLMPART"):$PATH
cd "$work" || exit 1
act() { # act OPTIONS BEFORE: runs tools/action.sh
  LLMPART_MODEL=$LP_SOURCE/tests/models/llama/model.onnx LLMPART_OPTIONS="--device=jetson-nano --cloud=v100s --plan-only $1" \
    LLMPART_REPORT=new.json LLMPART_BEFORE=$2 LLMPART_MAX_REGRESSION=5% sh "$LP_SOURCE/tools/action.sh" >out 2>&1
  echo $?
}
same 'a plan' 0 "$(act '' '')"
[ -s new.json ] && mv new.json old.json || fail 'there is no report'
same 'an equal plan' 0 "$(act '' old.json)"
same 'limits that no plan meets' 3 "$(act '--tpot=1ns' '')"
grep -q '^::error title=llmpart compile::' out || fail "no annotation: $(cat out)"
same 'a plan that is worse' 4 "$(act '--link=rtt=1s,up=1kbit/s,down=1kbit/s --scheduler=cut --cut=1' old.json)"
grep -q '^::error' out || fail "no annotation: $(cat out)"
for name in entry id files; do
  same "hooks with '$name'" 2 "$(grep -c "$name: " "$LP_SOURCE/.pre-commit-hooks.yaml")"
done
finish
