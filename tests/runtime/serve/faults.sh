# Faults between a server and its places, by the script, while clients ask (faults.py); 40, or LP_FAULT_SCRIPTS.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v python3 >/dev/null || skip 'python3 is not there'
default=$LP_SOURCE/examples/default-model
compile "$default/model.onnx" "$work/edge.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
compile "$default/model.onnx" "$work/split.llmpart" --tokenizer="$default/tokenizer.json" --device=jetson-nano --cloud=v100s --link=lan \
  --march=native --scheduler=cut --cut=1 || finish
python3 "$LP_SOURCE/tests/runtime/serve/faults.py" "$LLMPART" "$work/edge.llmpart" "$work/split.llmpart" "${LP_FAULT_SCRIPTS:-40}" ||
  fail 'see above'
finish
