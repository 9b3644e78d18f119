# ranks.sh MODELS DEFAULT.onnx FAKE FAKE_NCCL: several ranks run a half of CUDA code together, each on its own GPU, and
# generate the tokens of ONNX Runtime and of one rank: as threads and as processes, one sequence and a batch, with steps
# that are recorded and with steps that are not. Then what is missing or fails is said. FAKE holds stand-ins for
# NVIDIA's driver and compiler, FAKE_NCCL one for its library of collectives.
. "$LP_SOURCE/tests/gpu/lib.sh"
models=$1 default=$2 fake=$3 nccl=$4
export XDG_CACHE_HOME="$work/cache"
own=${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# shellcheck disable=SC2031 # each is meant for what follows in its own shell
export LD_LIBRARY_PATH="$fake:$nccl$own" LP_FAKE_CUDA_GPUS=4
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none

shard() { # shard MODEL OUT RANKS [option ...]: the whole model in the cloud
  which=$1 out=$2 count=$3
  shift 3
  # shellcheck disable=SC2086 # a list of options
  compile "$models/$which/model.onnx" "$out" $pair --scheduler=cloud-only --backend-cloud=cuda --ranks="$count" "$@"
}

list=$models/llama/tokens.json
ids=$(row "$list" prompts 3)
want=$(row "$list" tokens 3)
long=$(length "$want")
shard llama "$work/two" 2
# The prompt's gathers have many rows, which are put in their places; a token's has one.
same 'two ranks' "$want" "$(LP_FAKE_NCCL_LOG=$work/ends LP_FAKE_CUDA_LOG=$work/done tokens "$work/two" "$ids" "$long" --in-process)"
gathers=$(($(grep -c '"gather"' "$work/two/manifest.json") / 2))
same 'the ends of the communicators' "rank 0 destroyed after $((gathers * long)) gathers
rank 1 destroyed after $((gathers * long)) gathers" "$(sort "$work/ends")"
[ "$(sed -n 's/.* graphs \([0-9]*\) .*/\1/p' "$work/done")" -gt 0 ] || fail "no segment was recorded: $(cat "$work/done")"
grep -q 'bytes 0$' "$work/done" || fail "memory is left: $(cat "$work/done")"
same 'a batch, through a worker' "$want
$want" "$(tokens "$work/two" "$ids" "$long" --batch=2)"

# What is missing or fails.
wanted_status=1
refused 'without NCCL' 'there is none' env LD_LIBRARY_PATH="$fake$own" "$LLMPART" run "$work/two" --tokens="$ids" -n 4 --in-process
grep -q 'nvidia-nccl-cu12' "$work/err" || fail "no remedy for NCCL that is missing: $(cat "$work/err")"
refused 'one GPU for two ranks' 'Duplicate GPU' env LP_FAKE_CUDA_GPUS=1 "$LLMPART" run "$work/two" --tokens="$ids" -n 4 --in-process
refused 'a rank that cannot join' 'rank 1: the GPU cannot join' env LP_FAKE_NCCL_INIT=1:2 "$LLMPART" run "$work/two" --tokens="$ids" -n 4 --in-process
refused 'rank 0 that cannot join' 'rank 0: the GPU cannot join' env LP_FAKE_NCCL_INIT=0:2 "$LLMPART" run "$work/two" --tokens="$ids" -n 4 --in-process
refused 'a rank that ends' 'a rank of the sharded half has ended' env LP_FAKE_NCCL_FAIL=1:20 "$LLMPART" run "$work/two" --tokens="$ids" -n 9 --in-process -o json
refused 'a gather that fails' 'ncclAllGather failed' env LP_FAKE_NCCL_FAIL=0:20 "$LLMPART" run "$work/two" --tokens="$ids" -n 9 --in-process -o json
# shellcheck disable=SC2086 # a list of options
refused 'code for OpenCL' "'cpu' or 'cuda'" "$LLMPART" compile "$models/llama/model.onnx" $pair --scheduler=cloud-only --ranks=2 --backend-cloud=opencl -o "$work/refused"

# Four ranks share two heads of keys; three divide some products only.
for count in 3 4; do
  shard llama "$work/$count" $count
  same "$count ranks" "$want" "$(tokens "$work/$count" "$ids" "$long" --in-process)"
done
refused 'two GPUs for four ranks' 'GPU number 2' env LP_FAKE_CUDA_GPUS=2 "$LLMPART" run "$work/4" --tokens="$ids" -n 4 --in-process
same 'steps that cannot be recorded' "$want" "$(LP_FAKE_CUDA_GRAPHS=0 tokens "$work/two" "$ids" "$long" --in-process)"
same 'on sm_53' "$want" "$(LP_FAKE_CUDA_SM=53 tokens "$work/two" "$ids" "$long" --in-process)"
list=$models/gpt2/tokens.json
shard gpt2 "$work/gpt2" 2
same 'gpt2' "$(row "$list" tokens 2)" "$(tokens "$work/gpt2" "$(row "$list" prompts 2)" "$(length "$(row "$list" tokens 2)")" --in-process)"

# A split between the sides, and weights in 8 bits: the tokens of one rank.
for type in f32 int8; do
  for n in 1 2; do
    # shellcheck disable=SC2086 # a list of options
    compile "$default" "$work/$type.$n" $pair --cut=3 --dtype-cloud=$type --backend-cloud=cuda --ranks=$n
    found=$(tokens "$work/$type.$n" 1,5,9,13,2,7 12 --in-process)
    [ $n = 1 ] && one=$found
    same "the default model, $type, $n ranks" "$one" "$found"
  done
done

# The ranks as processes, each of which sees one GPU. A rank that dies ends all, and the device goes on with the next
# worker: no token is lost or changed.
command -v mpirun >/dev/null && [ -e "$(dirname "$LLMPART")/../lib/llmpart/mpi.so" ] || finish
export LP_FAKE_CUDA_GPUS=1
serve_mpi() { # serve_mpi ADDRESS [VARIABLE=VALUE]: sets $worker and $address
  : >"$work/listening"
  env ${2:+"$2"} mpirun --oversubscribe --bind-to none -n 2 "$LLMPART" worker "$work/two" --listen="$1" --threads=1 2>"$work/listening" &
  worker=$!
  started="$started $worker"
  await listens_or_ended
  [ -n "$address" ] || fail "the worker of two processes does not listen: $(cat "$work/listening")"
}
serve_mpi 127.0.0.1:0
same 'two processes' "$want" "$(tokens "$work/two" "$ids" "$long" --cloud="$address")"
kill $worker
wait $worker
serve_mpi 127.0.0.1:0 LP_FAKE_NCCL_DIE=1:40
tokens "$work/two" "$ids" "$long" --cloud="$address" >"$work/found" &
run=$!
started="$started $run"
wait $worker && fail 'the worker goes on without a rank'
serve_mpi "$address"
wait $run
same 'a rank that dies, and the next worker' "$want" "$(cat "$work/found")"
kill $worker
wait $worker
finish
