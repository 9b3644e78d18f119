# Checks the statements of examples/edge-cloud-6g/ about the policies with fewer runs: their order, and their
# differences.
. "$LP_SOURCE/tests/e2e/lib.sh"
examples=$LP_SOURCE/examples/edge-cloud-6g

# simulate NAME [sed expression]: the scenario's CSV in $work/csv
simulate() {
  sed -e "${2:-s/^//}" "$examples/$1.yaml" >"$work/s.yaml"
  "$LLMPART" simulate "$work/s.yaml" --runs=4 -o csv >"$work/csv" 2>"$work/err" || fail "$1: $(head -n 2 "$work/err")"
}
# column POLICY NAME [VALUE of the axis]
column() {
  awk -F, -v policy="$1" -v name="$2" -v value="${3:-}" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
    $1 == policy && (value == "" || $2 == value) { print $at; exit }' "$work/csv"
}
holds() { # holds WHAT EXPRESSION
  [ "$(awk "BEGIN { print ($2) ? 1 : 0 }")" = 1 ] || fail "$1: not $2"
}

# The second half of each run is counted.
simulate learning 's/^requests: .*/requests: 1000\nwarm_up: 500/'
for policy in router router-paper; do
  reward=$(column $policy reward)
  holds "$policy and dqn" "$reward >= 0.99 * $(column dqn reward)"
  holds "$policy and q-table" "$reward >= 0.99 * $(column q-table reward)"
  holds "$policy and the oracle under exploration" "$reward >= 0.99 * $(column oracle-explore reward)"
  holds "$policy: quality" "$(column $policy quality) >= 1 - 0.05 - 0.015"
  holds "$policy and latest" "$reward >= $(column latest reward) + 2"
  holds "$policy and greedy" "$reward >= $(column greedy reward) + 5"
done

simulate drift-up 's/^requests: .*/requests: 2000\nwarm_up: 1000/'
holds 'ema under drift' "$(column router regret) <= 1.05 * $(column q-table regret)"
holds 'the literal rules under drift' "$(column router-paper regret) >= 4 * $(column router regret)"

simulate penalty 's/^vary: .*/vary: { penalty: [5, 10] }/'
for penalty in 5 10; do
  holds "ema at penalty $penalty" "$(column router regret $penalty) <= 1.05 * $(column q-table regret $penalty)"
done
holds 'the literal rules at a low penalty' "$(column router-paper regret 10) >= 2 * $(column router regret 10)"

simulate loaded-learning 's/^vary: .*/vary: { rate: [1.16] }/'
holds 'the loaded edge' "$(column router delay_s) <= 27"
holds 'the class rule there' "$(column class delay_s) >= 32"

simulate decision 's/^vary: .*/vary: { decision: [0, 0.5] }/'
same 'a decision of 0.5 s' 0.50 "$(awk "BEGIN { printf \"%.2f\", $(column router delay_s 0.5) - $(column router delay_s 0) }")"

simulate places 's/^vary: .*/vary: { quality_share: [0.5] }/'
# Gemma < Llama2 < Llama3, in each of the places
for policy in edge-only class cloud-only; do
  same "$policy: the pairs' order" 'gemma-gemini llama2 llama3' \
    "$(grep ",$policy," "$work/csv" | sort -t, -k7 -g | cut -d, -f1 | tr '\n' ' ' | sed 's/ $//')"
done
finish
