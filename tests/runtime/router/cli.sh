# llmpart route: decisions, constraints, the pool, fallbacks when an API does not answer, replay of a log, faults.
. "$LP_SOURCE/tests/e2e/lib.sh"
route() { "$LLMPART" route "$@" 2>"$work/err" || echo "route $*: $(head -n 2 "$work/err")"; }
word() { head -n 1 | cut -d' ' -f1; }

# Fixed policies and the rule of a router that knows nothing.
same edge edge "$(route --keywords=code --policy=edge | word)"
same rule cloud "$(route --keywords=code --policy=rule --rule=cloud | word)"
route --keywords=code --model=lookup --rule=cloud --epsilon=0 -o json >"$work/json"
grep -q '"source": "fallback"' "$work/json" || fail "no fallback: $(cat "$work/json")"
grep -q '"reason": "nothing is known yet' "$work/json" || fail 'no reason'
# Whatever the policy, what is not offered is not taken.
for policy in router greedy latest q-table dqn rule quickest edge cloud split random; do
  same "$policy" split "$(route --keywords=code --policy=$policy --model=lookup --offer=split | word)"
done

# A pool: outcomes are learned from; the decision is explained.
pool="--pool=$work/pool.db --model=lookup --epsilon=0"
for n in 1 2 3 4; do
  if [ $((n % 2)) = 0 ]; then offer=edge reward=-20; else offer=cloud reward=5; fi
  # shellcheck disable=SC2086 # several options
  route --keywords=code $pool --offer=$offer >"$work/out"
  route --pool="$work/pool.db" --outcome=$n --reward=$reward >"$work/out"
done
# shellcheck disable=SC2086
same learned cloud "$(route --keywords=code $pool | word)"
same explained 'cloud (model, edge 0.000, cloud 1.000) as decision 5' "$(route --pool="$work/pool.db" --explain=5)"
same replay 4 "$(route --replay="$work/pool.db" --policy=q-table -o json | sed -n 's/.*"decisions": \([0-9]*\).*/\1/p')"
# Where one route was offered, every policy agrees: (5 - 20 + 5 - 20) / 4.
same estimate -7.5 "$(route --replay="$work/pool.db" --policy=cloud -o json | sed -n 's/.*"snips_reward_s": \([-0-9.]*\).*/\1/p')"

# An API that is away: the rule decides and the reason is noted.
route --keywords=code --model=http://127.0.0.1:9/v1 --model-name=m --rule=cloud --pool="$work/away.db" --epsilon=0 >"$work/out"
grep -q '^cloud (fallback, .*: .*onnect' "$work/out" || fail "away: $(cat "$work/out")"
route --pool="$work/away.db" --explain=1 | grep -q onnect || fail 'the reason is not in the log'

# Constraints.
printf 'service: llama3\nedge: { context: 1000, slots: 1 }\ncloud: { usd_per_mtok: 10 }\n' >"$work/b.yaml"
backends="--keywords=code --backends=$work/b.yaml --prompt-tokens=500"
# shellcheck disable=SC2086
{
  same fits edge "$(route $backends --tokens=400 --policy=quickest | word)"
  same 'does not fit' cloud "$(route $backends --tokens=600 --policy=edge | word)"
  same busy cloud "$(route $backends --tokens=400 --policy=quickest --edge-busy=3 | word)"
  same local edge "$(route $backends --tokens=400 --policy=cloud --local-only | word)"
  same budget edge "$(route $backends --tokens=400 --policy=cloud --budget=0.001 | word)"
  route $backends --tokens=400 --policy=quickest --edge-busy=3 -o json >"$work/json"
  grep -q '"keywords": "code, queue overlong"' "$work/json" || fail "no queue: $(cat "$work/json")"
  # 0.23 + 399 / 75; waits for three such
  grep -q '"edge": 22.2' "$work/json" || fail "no delays: $(cat "$work/json")"
  # 400 tokens of 32 bits
  route $backends --tokens=400 --policy=quickest --edge-busy=3 --down=12800bit/s -o json >"$work/json"
  grep -q '"edge": 23.2' "$work/json" || fail "no link of the user's own: $(cat "$work/json")"
  # users of a radio profile: the one that is far off takes longer
  printf 'service: llama3\nlink: { radio: two-cell, users: 30 }\n' >"$work/radio.yaml"
  for user in 0 1 2 3 4 5 6; do
    route --keywords=code --backends="$work/radio.yaml" --prompt-tokens=500 --tokens=400 --policy=quickest --user=$user -o json |
      sed -n 's/.*"edge": \([0-9.]*[0-9]\.[0-9]*\).*/\1/p' | tail -n 1
  done >"$work/delays"
  [ "$(sort -u "$work/delays" | wc -l)" -ge 6 ] || fail "users with one rate: $(cat "$work/delays")"
  refused 'no such user' "there is no user 31: 'link' of the backends has 30" "$LLMPART" route --keywords=code --backends="$work/radio.yaml" --user=31
  refused 'no profile' 'user 1 is one of a radio profile' "$LLMPART" route $backends --user=1
  refused none "b.yaml: error: no route can take the request: edge: 1100 tokens do not fit a context of 1000; cloud: the request may not leave" \
    "$LLMPART" route $backends --tokens=600 --local-only --policy=rule
}
refused 'no model' 'error: cannot open|error: .*router-model' "$LLMPART" route --keywords=a --model="$work/none.llmpart"
refused 'no log' 'none.db: error: no such file' "$LLMPART" route --replay="$work/none.db"
refused 'no decision' 'no decision 99' "$LLMPART" route --pool="$work/pool.db" --outcome=99 --reward=1
refused 'twice' 'decision 1 has an outcome already' "$LLMPART" route --pool="$work/pool.db" --outcome=1 --reward=1
wanted_status=2
refused 'no task' 'wanted one of --keywords' "$LLMPART" route
refused 'bad offer' "'moon' is no route" "$LLMPART" route --keywords=a --offer=moon --policy=rule
finish
