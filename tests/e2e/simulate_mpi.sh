# A simulation has the same result with any number of threads, and under mpirun with any number of processes.
. "$LP_SOURCE/tests/e2e/lib.sh"
spec=$work/spec.yaml
cat >"$spec" <<'END'
simulate: loaded
requests: 1500
runs: 5
edge: { slots: 2 }
policies: [random, queue-aware, class]
tasks: [{ class: a, tokens: { lognormal: 100 } }, { class: b, quality: true, tokens: { geometric: 50 }, prompt: 20 }]
arrivals: { poisson: 1 }
vary: { rate: [1, 2] }
END
"$LLMPART" simulate "$spec" --threads=1 -o "$work/one.json" || fail 'one thread'
same 'requests of a point' 1 "$(grep -c '"policy": "class"' "$work/one.json" | awk '{ print ($1 > 0) }')"
for threads in 2 3 16; do
  "$LLMPART" simulate "$spec" --threads=$threads -o "$work/many.json" || fail "$threads threads"
  cmp "$work/one.json" "$work/many.json" || fail "$threads threads make another result"
done

command -v mpirun >/dev/null && [ -e "$(dirname "$LLMPART")/../lib/llmpart/mpi.so" ] || finish
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
ranks="timeout 300 mpirun --oversubscribe --bind-to none"
printf '%s\n' 'decoder: {layers: 4, hidden: 512, ffn: 1024, heads: 8, vocab: 1000}' 'load: {rate: 5}' 'lengths: [{isl: 16, osl: 8}]' \
  'classes: [{name: a, device: jetson-nano, link: lan, limits: {ttft: {p99: 2ms}}}]' 'machines: [a100, l4]' >"$work/fleet.yaml"
"$LLMPART" fleet "$work/fleet.yaml" -o "$work/fleet.json" || fail 'a fleet'
printf 'fleet: fleet.json\nruns: 5\nrequests: 1000\nvary: { rate: [5, 10, 20] }\n' >"$work/load.yaml"
"$LLMPART" simulate "$work/load.yaml" -o "$work/load.json" || fail 'the simulation of a fleet'
for n in 1 2 4; do
  $ranks -n $n "$LLMPART" simulate "$work/load.yaml" -o "$work/many.json" 2>"$work/err" || fail "a fleet in $n processes: $(head -n 5 "$work/err")"
  cmp "$work/load.json" "$work/many.json" || fail "$n processes make another result of a fleet"
  $ranks -n $n "$LLMPART" simulate "$spec" -o "$work/many.json" 2>"$work/err" || fail "$n processes: $(head -n 5 "$work/err")"
  cmp "$work/one.json" "$work/many.json" || fail "$n processes make another result"
done
sed 's/requests: 1500/requests: 1501/' "$spec" >"$work/other.yaml"
$ranks -n 2 "$LLMPART" simulate "$spec" -o "$work/bad.json" : -n 1 "$LLMPART" simulate "$work/other.yaml" >"$work/out" 2>"$work/err" &&
  fail 'another scenario in one process'
$ranks -n 1 "$LLMPART" simulate "$work/load.yaml" -o "$work/bad.json" : -n 1 "$LLMPART" simulate "$work/load.yaml" --seed=9 >"$work/fleets" 2>&1 &&
  fail 'another seed in one process'
grep -q 'a process has another version, fleet' "$work/fleets" || fail "no reason: $(head -n 5 "$work/fleets")"
grep -q 'a process has another version, scenario, seed or number of runs' "$work/out" "$work/err" || fail "no reason: $(head -n 5 "$work/err")"
[ -e "$work/bad.json" ] && fail 'a result in spite of another scenario'
finish
