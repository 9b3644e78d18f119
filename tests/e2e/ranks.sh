# ranks.sh MODELS DEFAULT.onnx: the ranks of a sharded half generate the tokens of one rank, in one process and in
# several, with one sequence and with batches, in f32 and in int8. MODELS is tests/models. The quick part has two ranks
# of one model, the long part some combinations, and the soak all, optimised.
. "$LP_SOURCE/tests/e2e/lib.sh"
models=$1 default=$2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none

shard() { # shard MODEL OUT RANKS [option ...]: the whole model in the cloud
  model=$1 out=$2 count=$3
  shift 3
  # shellcheck disable=SC2086 # a list of options
  compile "$model" "$out" $pair --scheduler=cloud-only --ranks="$count" "$@"
}

# The judge is ONNX Runtime. Four ranks share two heads of keys; three divide nothing but some products.
for which in llama gpt2; do
  list=$models/$which/tokens.json
  for count in 2 3 4; do
    case $which.$count in llama.2) ;; llama.4 | gpt2.2) part long || part soak ;; *) part soak ;; esac || continue
    shard "$models/$which/model.onnx" "$work/$which.$count" $count || continue
    same "files of $which for $count ranks" "$count" "$(find "$work/$which.$count/cloud" -name 'weights.[0-9]*.safetensors' | wc -l | tr -d ' ')"
    for i in 1 2; do
      want=$(row "$list" tokens $i)
      same "$which, $count ranks, prompt $i" "$want" "$(tokens "$work/$which.$count" "$(row "$list" prompts $i)" "$(echo "$want" | tr ',' '\n' | wc -l)" --in-process)"
    done
  done
done
list=$models/llama/tokens.json
ids=$(row "$list" prompts 2) want=$(row "$list" tokens 2)
count=$(echo "$want" | tr ',' '\n' | wc -l)
same 'a worker of threads, a batch' "$want
$want
$want" "$(tokens "$work/llama.2" "$ids" "$count" --batch=3)"

# What cannot be cut is refused by name.
refuse() { # refuse TEXT option ...
  text=$1
  shift
  # shellcheck disable=SC2086 # a list of options
  "$LLMPART" compile "$models/llama/model.onnx" $pair --ranks=2 "$@" -o "$work/refused" >"$work/out" 2>"$work/err" && fail "$* was not refused"
  grep -q -- "$text" "$work/err" || fail "$*: wanted '$text': $(head -n 3 "$work/err")"
}
refuse 'takes no --plans' --plans=3
refuse 'takes no --exits' --exits=1
refuse 'not cut for several ranks' --emit=onnx
refuse "'cpu' or 'cuda'" --scheduler=cloud-only --backend-cloud=opencl

part long || part soak || finish

# A split between the sides, and weights in 8 bits: the tokens of one rank.
for type in f32 int8; do
  for n in 1 2 4; do
    case $type.$n in int8.[12]) ;; *) part soak ;; esac || continue
    # shellcheck disable=SC2086 # a list of options
    compile "$default" "$work/$type.$n" $pair --cut=3 --dtype-cloud=$type --ranks=$n || continue
    found=$(tokens "$work/$type.$n" 1,5,9,13,2,7 24 --in-process)
    [ $n = 1 ] && one=$found
    same "the default model, $type, $n ranks" "$one" "$found"
  done
done

command -v mpirun >/dev/null && [ -e "$(dirname "$LLMPART")/../lib/llmpart/mpi.so" ] || finish

serve_mpi() { # serve_mpi BUNDLE PROCESSES: sets $worker and $address
  : >"$work/listening"
  mpirun --oversubscribe --bind-to none -n "$2" "$LLMPART" worker "$1" --listen=127.0.0.1:0 --threads=1 2>"$work/listening" &
  worker=$!
  started="$started $worker"
  await listens_or_ended
  [ -n "$address" ] || fail "the worker of $2 processes does not listen: $(cat "$work/listening")"
}

for n in 2 4; do
  serve_mpi "$work/llama.$n" $n
  [ -n "$address" ] && same "$n processes" "$want" "$(tokens "$work/llama.$n" "$ids" "$count" --cloud="$address")"
  kill $worker
  wait $worker
done
timeout 300 mpirun --oversubscribe --bind-to none -n 3 "$LLMPART" worker "$work/llama.2" --listen=127.0.0.1:0 2>"$work/listening" &&
  fail '3 processes for 2 ranks did not fail'
grep -q 'for 2' "$work/listening" || fail "3 processes for 2 ranks: $(cat "$work/listening")"

# A rank that dies ends the worker, and mpirun names it.
serve_mpi "$work/llama.2" 2
kill -9 "$(pgrep -P "$worker" | tail -n 1)"
wait $worker && fail 'the worker goes on without a rank'
grep -q 'rank [01]' "$work/listening" || fail "no message names the rank: $(cat "$work/listening")"
finish
