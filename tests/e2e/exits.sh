# exits.sh: --exits at compile time. The full model's tokens do not change with exits; a model without exit heads uses its own
# again; one value crosses the link, from the device; what cannot be is refused.
. "$LP_SOURCE/tests/e2e/lib.sh"
models=$LP_SOURCE/tests/models

check() { # check NAME MODEL EXITS COUNT
  lists=$models/$1/tokens.json
  # shellcheck disable=SC2086 # a list of options
  compile "$2" "$work/$1.llmpart" $pair --exits="$3" || return
  manifest=$work/$1.llmpart/manifest.json
  same "$1: exits" "$4" "$(grep -c '"exit": ' "$manifest" | awk '{ print $1 / 2 }')"
  same "$1: values that cross" 2 "$(grep -c '"op": "send"' "$manifest")"
  ids=$(row "$lists" prompts 1)
  want=$(row "$lists" tokens 1)
  same "$1: tokens of the full model" "$want" "$(tokens "$work/$1.llmpart" "$ids" "$(length "$want")" --in-process)"
}

check default "$LP_SOURCE/examples/default-model/model.onnx" 2,6 2 # one reused, one of its own
check llama "$models/llama/model.onnx" 1,2 2
check gpt2 "$models/gpt2/model.onnx" 1 1
check llama-genai "$models/llama-genai/model.onnx" 1 1

# shellcheck disable=SC2086 # a list of options
refused 'an exit behind all layers' 'error: .*behind 3 layers: the model has 3 layers' \
  "$LLMPART" compile "$models/llama/model.onnx" $pair --exits=3 -o "$work/made/x.llmpart"
wanted_status=2
refused 'exits out of order' 'error: .*ascending' \
  "$LLMPART" compile "$models/llama/model.onnx" --device=jetson-nano --exits=2,1 -o "$work/made/x.llmpart"
finish
