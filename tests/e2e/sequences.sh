# Several sequences in one pass equal each by itself, to the bit: models with grouped heads and exits, learned
# positions, ALiBi, a sliding window, chunks, short convolutions, state spaces; weights and caches of several types.
. "$LP_SOURCE/tests/e2e/lib.sh"
check=$1 devices=$2
models=$LP_SOURCE/tests/models
default=$LP_SOURCE/examples/default-model/model.onnx

same_together() { # same_together MODEL [option ...]
  what=$*
  model=$1
  shift
  # shellcheck disable=SC2086 # a list of options
  compile "$model" "$work/made.llmpart" -O2 $pair "$@" || return
  "$check" "$work/made.llmpart" >"$work/out" 2>"$work/err" || fail "$what: $(head -n 2 "$work/err")"
}

if part quick; then
  same_together "$models/llama/model.onnx" --scheduler=cut --cut=1 --exits=1
  same_together "$models/gpt2/model.onnx" --scheduler=cloud-only --dtype-cloud=f16
  same_together "$models/llama/model.onnx" --scheduler=cloud-only --dtype-cloud=int8 --activations=auto
  same_together "$models/llama/model.onnx" --scheduler=cloud-only --dtype-cloud=bf16 --activations=auto
  same_together "$models/huggingface/lfm2-bias-bf16" --scheduler=cut --cut=1
  same_together "$models/huggingface/granitemoehybrid" --scheduler=cut --cut=1
  same_together "$models/huggingface/qwen3_next-halves" --scheduler=cut --cut=1
  same_together "$models/huggingface/falcon_h1" --scheduler=cut --cut=1
  same_together "$models/huggingface/nemotron_h" --scheduler=cut --cut=1
  same_together "$models/huggingface/llama4" --scheduler=cut --cut=1
  same_together "$default" --scheduler=cloud-only --kv-dtype=int8
fi
part long && same_together "$models/families/bloom-script/model.onnx" --scheduler=cloud-only
part soak && {
  same_together "$default" --scheduler=cut --cut=4 --exits=2,4
  same_together "$default" --scheduler=cloud-only --dtype-cloud=int4 --kv-dtype=f16 --march=x86-64-v3
  same_together "$default" --scheduler=cloud-only --dtype-cloud=int4 --activations=auto
  same_together "$default" --scheduler=cut --cut=4 --dtype-cloud=int4 --activations=auto --kv-dtype=int4
  same_together "$models/families/gemma2-script-past/model.onnx" --scheduler=cloud-only
}
part long || finish

# Devices at one worker, alone and at once; prompts of up to 300 tokens are run by parts.
# shellcheck disable=SC2086 # a list of options
compile "$default" "$work/made.llmpart" -O2 $pair --scheduler=cloud-only --dtype-cloud=int8 || finish
"$devices" "$LLMPART" "$work/made.llmpart" 24 12 300 2 5 >"$work/out" 2>"$work/err" || fail "devices at once: $(cat "$work/out" "$work/err")"
finish
