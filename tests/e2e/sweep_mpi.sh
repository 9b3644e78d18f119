# A sweep under mpirun has the table of one process, for any number of processes, and goes on after it was killed.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v mpirun >/dev/null || skip 'no mpirun'
[ -e "$(dirname "$LLMPART")/../lib/llmpart/mpi.so" ] || skip 'built without MPI'
cp "$LP_SOURCE/tests/models/llama/model.onnx" "$work/model.onnx"
spec=$work/spec.yaml
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
ranks() { # ranks N [argument ...]: sweeps in N processes
  count=$1
  shift
  timeout 300 mpirun --oversubscribe --bind-to none -n "$count" "$LLMPART" sweep "$@" >"$work/out" 2>"$work/err"
}

cat >"$spec" <<'END'
model: model.onnx
machines: { device: jetson-nano, cloud: [v100s, a100] }
links: [wifi, lte]
workloads: { isl: [16, 64], osl: 32 }
slas: [{ ttft: none }, { ttft: 500ms, tpot: 0.001ms }]
schedulers: [exact, layer, cloud-only]
sessions: [1, 8]
END
"$LLMPART" sweep "$spec" -o "$work/whole.csv" -o "$work/whole.html" --stats 2>"$work/err" || fail "one process: $(cat "$work/err")"
evaluations=$(sed -n 's/.* \([0-9]*\) plan evaluations.*/\1/p' "$work/err")
for n in 1 2 4; do
  ranks $n "$spec" -o "$work/many.csv" -o "$work/many.html" --stats || fail "$n processes: $(head -n 5 "$work/err")"
  for format in csv html; do
    cmp "$work/whole.$format" "$work/many.$format" || fail "$n processes make another table"
  done
  grep -q "^96 rows, 0 of them from the journal; $evaluations plan evaluations" "$work/err" || fail "$n processes: wanted $evaluations evaluations: $(cat "$work/err")"
  [ -e "$spec.journal" ] && fail 'the journal is left behind'
done
ranks 3 "$spec" -o "$work/many.csv" --threads=3 || fail "3 processes of 3 threads: $(head -n 5 "$work/err")"
cmp "$work/whole.csv" "$work/many.csv" || fail '3 processes of 3 threads make another table'

# The journal of an interrupted sweep is taken up by any number of processes, and has each row once.
ranks 2 "$spec" -o "$work/many.csv" --journal="$work/journal" || fail "a journal: $(head -n 5 "$work/err")"
same 'rows of the journal' 96 "$(sed 1d "$work/journal" | cut -d ' ' -f 1 | sort -u | wc -l | tr -d ' ')"
head -n 38 "$work/journal" >"$work/cut"
ranks 3 "$spec" -o "$work/many.csv" --journal="$work/cut" --stats || fail "going on: $(head -n 5 "$work/err")"
grep -q '^96 rows, 37 of them from the journal' "$work/err" || fail "37 rows were finished: $(cat "$work/err")"
same 'lines of the journal' 97 "$(wc -l <"$work/cut" | tr -d ' ')"
cmp "$work/whole.csv" "$work/many.csv" || fail 'the sweep that went on makes another table'

# When a process is killed, mpirun ends the others; finished rows are not lost.
cat >"$work/long.yaml" <<'END'
decoder: { layers: 48, hidden: 4096, ffn: 11008, heads: 32, vocab: 32000 }
machines: { device: jetson-orin, cloud: a100 }
links: [wifi, lan, lte]
workloads: { isl: [64, 256, 1024], osl: [16, 128] }
slas: { ttft: [1s, 2s, 4s], tpot: [50ms, 80ms] }
dtypes: { device: int4 }
END
mpirun --oversubscribe --bind-to none -n 3 "$LLMPART" sweep "$work/long.yaml" -o "$work/long.csv" --journal="$work/long" >"$work/out" 2>&1 &
pid=$!
started="$started $pid"
# shellcheck disable=SC2329 # await calls it
begun() { [ -e "$work/long" ] && [ "$(wc -l <"$work/long")" -gt 8 ]; }
await begun || fail 'no row is finished after a minute'
kill -9 "$(grep -l "^PPid:[[:space:]]*$pid\$" /proc/[0-9]*/status 2>/dev/null | tail -n 1 | cut -d / -f 3)"
wait $pid && fail 'mpirun did not notice that a process was killed'
started=""
finished=$(($(wc -l <"$work/long") - 1))
[ "$finished" -lt 108 ] || fail 'all rows were finished before a process was killed'
ranks 2 "$work/long.yaml" -o "$work/long.csv" --journal="$work/long" --stats || fail "after the kill: $(head -n 5 "$work/err")"
grep -Eq "^108 rows, ($finished|$((finished - 1))) of them from the journal" "$work/err" || fail "$finished rows were finished: $(cat "$work/err")"
"$LLMPART" sweep "$work/long.yaml" -o "$work/whole.csv" 2>"$work/err"
cmp "$work/whole.csv" "$work/long.csv" || fail 'the sweep of which a process was killed makes another table'

# Processes that do not have the same model are found out.
mkdir "$work/other"
sed 's/a100/l4/' "$spec" >"$work/other/spec.yaml"
cp "$work/model.onnx" "$work/other"
timeout 300 mpirun --oversubscribe --bind-to none -n 1 "$LLMPART" sweep "$spec" -o "$work/made.csv" : \
  -n 1 "$LLMPART" sweep "$work/other/spec.yaml" -o "$work/made.csv" >"$work/out" 2>"$work/err" && fail 'two sweeps became one'
grep -q 'a process has another version, specification or model' "$work/err" || fail "two sweeps: $(head -n 5 "$work/err")"
[ ! -e "$work/made.csv" ] || fail 'two sweeps made a table'
finish
