# Shards of a sweep, merged, are the table of the whole sweep; anything else is refused by name.
. "$LP_SOURCE/tests/e2e/lib.sh"
cp "$LP_SOURCE/tests/models/llama/model.onnx" "$work/model.onnx"
spec=$work/spec.yaml

cat >"$spec" <<'END'
model: model.onnx
machines: { device: jetson-nano, cloud: [v100s, a100] }
links: [wifi, lte]
workloads: { isl: [16, 64], osl: 32 }
slas: [{ ttft: none }, { ttft: 500ms, tpot: 0.001ms }]
schedulers: [exact, layer, cloud-only]
END
sweep() { "$LLMPART" sweep "$@" 2>"$work/err" || fail "sweep $*: exit status $?: $(head -n 3 "$work/err")"; }
rows() { echo $(($(wc -l <"$1") - 1)); } # rows JOURNAL: after its heading
sweep "$spec" -o "$work/whole.csv" -o "$work/whole.json" -o "$work/whole.html"
same 'rows' 48 "$(rows "$work/whole.csv")"

for count in 1 3; do
  for i in $(seq $count); do
    sweep "$spec" --shard="$i/$count" >"$work/out"
    [ ! -s "$work/out" ] || fail "shard $i/$count wrote a table: $(head -n 2 "$work/out")"
    same "rows of shard $i/$count" $((48 / count)) "$(rows "$spec.shard-$i-of-$count")"
  done
  sweep "$spec" --merge "$spec".shard-*-of-$count -o "$work/merged.csv" -o "$work/merged.json" -o "$work/merged.html"
  for format in csv json html; do
    cmp "$work/whole.$format" "$work/merged.$format" || fail "$count shards make another table"
  done
done
# A scheduler takes most of a row's time, so each shard has a third of the 16 rows of each. It varies fastest here.
for i in 1 2 3; do
  same "schedulers of shard $i" yes "$(awk 'NR > 1 { n[$1 % 3]++ } END {
    for (k = 0; k < 3; k++) if (n[k] < 5 || n[k] > 6) { print n[0], n[1], n[2]; exit }
    print "yes" }' "$spec.shard-$i-of-3")"
done
a=$spec.shard-1-of-3 b=$spec.shard-2-of-3 c=$spec.shard-3-of-3

# The order of the files does not matter; without -o the table goes to stdout; a kept journal is the only shard of one.
sweep "$spec" --merge "$c" "$a" "$b" >"$work/merged.csv"
cmp "$work/whole.csv" "$work/merged.csv" || fail 'the order of the files changes the table'
sweep "$spec" --journal="$work/journal" -o "$work/again.csv"
sweep "$spec" --merge "$work/journal" -o "$work/merged.csv"
cmp "$work/whole.csv" "$work/merged.csv" || fail 'the journal of the whole sweep makes another table'

# A shard that was killed within a line is incomplete, goes on, and then is as before.
cp "$b" "$work/complete"
head -n 6 "$work/complete" >"$b"
sed -n 7p "$work/complete" | cut -c 1-40 | tr -d '\n' >>"$b"
merge_of() { set -- "$LLMPART" sweep "$spec" --merge -o "$work/made/out.csv" "$@"; refused "$what_of" "$pattern_of" "$@"; }
what_of='a shard that is not finished' pattern_of='spec.yaml: error: 11 of 48 rows are missing, the first is row [0-9]+ of shard 2/3'
merge_of "$a" "$b" "$c"
sweep "$spec" --shard=2/3 --stats
grep -q '16 rows, 5 of them from the journal' "$work/err" || fail "5 rows were finished: $(cat "$work/err")"
sweep "$spec" --merge "$a" "$b" "$c" -o "$work/merged.csv" --stats
grep -q '48 rows, 48 of them from journals; 0 plan evaluations' "$work/err" || fail "merging computed: $(cat "$work/err")"
cmp "$work/whole.csv" "$work/merged.csv" || fail 'a shard that went on makes another table'

what_of='a shard that is missing' pattern_of='16 of 48 rows are missing, the first is row [0-9]+ of shard 3/3'
merge_of "$a" "$b"
what_of='a shard given twice' pattern_of='shard-1-of-3: error: row [0-9]+ is in .*shard-1-of-3. too'
merge_of "$a" "$b" "$a" "$c"
what_of='shards of two counts' pattern_of='shard-1-of-1: error: row [0-9]+ is in .*shard-3-of-3. too'
merge_of "$c" "$spec.shard-1-of-1"
sed '2{p}' "$b" >"$work/double"
what_of='a row twice in a file' pattern_of='double: error: row [0-9]+ is in .*double. too'
merge_of "$a" "$work/double" "$c"
sed '1s|2/3|3/3|' "$b" >"$work/moved"
what_of='rows of another shard' pattern_of='moved: error: row [0-9]+ does not belong to shard 3/3'
merge_of "$a" "$work/moved"
sed '4s/ 0x/ x/' "$b" >"$work/damaged"
what_of='a damaged line' pattern_of='damaged: error: line 4 is not a row of a journal'
merge_of "$a" "$work/damaged" "$c"
sed '1s|^\([^ ]* \)[^ ]*|\10.0.1|' "$b" >"$work/older"
what_of='a shard of another version' pattern_of='older: error: was written by llmpart 0.0.1, and this is llmpart [0-9]'
merge_of "$a" "$work/older" "$c"
sed '1s|/3 |/2 |' "$b" >"$work/format"
what_of='a journal of another format' pattern_of='format: error: is a journal of another version of llmpart'
merge_of "$a" "$work/format" "$c"
what_of='no journal' pattern_of='model.onnx: error: is not the journal of a sweep'
merge_of "$a" "$work/model.onnx" "$c"
what_of='no file' pattern_of='absent'
merge_of "$a" "$work/absent" "$c"

# A specification that differs in anything that rows depend on is another sweep.
for change in 's/0.001ms/0.002ms/' 's/, lte/, lan/' 's/a100\]/l4]/' 's/, layer/, greedy/' '6a kv_dtype: f16' '6a sessions: [2]'; do
  sed "$change" "$spec" >"$work/other.yaml"
  refused "shards of another sweep: $change" "shard-1-of-3: error: has rows of another sweep than '.*other.yaml'" \
    "$LLMPART" sweep "$work/other.yaml" --merge "$a" "$b" "$c" -o "$work/made/out.csv"
done
cp "$a" "$work/kept"
refused 'the journal of another shard' 'kept: error: is the journal of shard 1/3 of this sweep, not of 2/3' \
  "$LLMPART" sweep "$spec" --shard=2/3 --journal="$work/kept"
cmp "$a" "$work/kept" || fail 'the journal of another shard was changed'

# The job files of examples/cluster, each as its engine would start it.
cluster=$LP_SOURCE/examples/cluster
LLMPART="$LLMPART" sh "$cluster/shards.sh" "$spec" 2 "$work/merged.csv" 2>"$work/err" || fail "shards.sh: $(cat "$work/err")"
cmp "$work/whole.csv" "$work/merged.csv" || fail 'shards.sh makes another table'
for task in 3 1 2; do
  SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_MAX=3 LLMPART="$LLMPART" sh "$cluster/slurm.sh" "$spec" 2>"$work/err" || fail "slurm.sh: $(cat "$work/err")"
done
sweep "$spec" --merge "$spec".shard-*-of-3 -o "$work/merged.csv"
cmp "$work/whole.csv" "$work/merged.csv" || fail 'slurm.sh makes another table'
sed -n "s/^ *command: \[sh, -c, '\(.*\)'\]\$/\1/p" "$cluster/kubernetes.yaml" >"$work/commands"
same 'commands of the jobs' 2 "$(wc -l <"$work/commands" | tr -d ' ')"
mkdir "$work/bin"
ln -s "$LLMPART" "$work/bin/llmpart"
pod() { (cd "$work" && PATH=$work/bin:$PATH SHARDS=4 CPUS=1 sh -c "$(sed -n "$1p" commands)" 2>err) || fail "kubernetes.yaml: $(cat "$work/err")"; }
for index in 0 1 2 3; do
  JOB_COMPLETION_INDEX=$index pod 1
done
pod 2
cmp "$work/whole.csv" "$work/table.csv" || fail 'the jobs of Kubernetes make another table'

wanted_status=2
for shard in 0/3 4/3 1 1/ 1/3x -1/3 a/b 1/100001; do
  refused "--shard=$shard" "'$shard' is not I/N" "$LLMPART" sweep "$spec" --shard=$shard
done
refused 'a table of a shard' '-o needs the rows of all shards' "$LLMPART" sweep "$spec" --shard=1/3 -o csv
refused 'a shard to merge' 'give one of them' "$LLMPART" sweep "$spec" --shard=1/3 --merge "$a"
refused 'nothing to merge' '--merge needs the journals' "$LLMPART" sweep "$spec" --merge
refused 'files without --merge' 'only --merge takes files' "$LLMPART" sweep "$spec" "$a"
refused 'a journal of a merge' 'has no --journal' "$LLMPART" sweep "$spec" --merge "$a" --journal="$work/x"
finish
