# lora.sh FOLDER: small models with LoRA adapters, as tests/models/lora.py saved them. The merged model generates the
# tokens of PEFT's merge_and_unload(), and the model without adapters others.
. "$LP_SOURCE/tests/e2e/lib.sh"

for folder in "$1"/*/; do
  case=$(basename "$folder")
  case $case in llama) part quick ;; *) sampled 3 ;; esac || continue
  compile "$folder/model" "$work/$case.llmpart" --lora="$folder/adapter0" || continue
  same_lists "$case" "$folder/tokens.json"
done
[ -n "${case:-}" ] || fail "there are no models in $1"
part quick || finish

refused() { # refused TEXT MODEL ADAPTER
  "$LLMPART" compile "$2" --lora="$3" --device=host -o "$work/no.llmpart" 2>"$work/err" && fail "$1: compiled"
  grep -q -- "$1" "$work/err" || fail "wanted '$1', found $(cat "$work/err")"
}
change() { # change SED: a copy of an adapter with another configuration
  rm -rf "$work/adapter" && cp -r "$1/llama/adapter0" "$work/adapter"
  sed -i "$2" "$work/adapter/adapter_config.json"
}
change "$1" 's/"use_dora": false/"use_dora": true/' && refused "DoRA" "$1/llama/model" "$work/adapter"
change "$1" 's/"r": 4/"r": 5/' && refused "are of rank 4, the configuration says 5" "$1/llama/model" "$work/adapter"
change "$1" 's/"bias": "none"/"bias": "all"/' && refused "trained biases" "$1/llama/model" "$work/adapter"
change "$1" 's/"v_proj"/"up_proj"/' && refused "has no tensor of 'up_proj'" "$1/llama/model" "$work/adapter"
change "$1" 's/"init_lora_weights": true/"init_lora_weights": "pissa"/'
refused "change the base model's weights" "$1/llama/model" "$work/adapter"
leave_out="leave out"
change "$1" 's/"exclude_modules": null/"exclude_modules": ["layers.1.self_attn.q_proj"]/'
refused "layers.1.self_attn.q_proj.* $leave_out" "$1/llama/model" "$work/adapter"
change "$1" 's/"layers_to_transform": null/"layers_to_transform": 0/'
refused "layers.1.self_attn.*$leave_out" "$1/llama/model" "$work/adapter"
change "$1" 's/"layers_to_transform": null/"layers_to_transform": [1, 2]/'
refused "layers.0.self_attn.*$leave_out" "$1/llama/model" "$work/adapter"
change "$1" 's/"layers_to_transform": null/"layers_to_transform": [0, 1]/; s/"layers_pattern": null/"layers_pattern": ["h", "block"]/'
refused "$leave_out" "$1/llama/model" "$work/adapter"
change "$1" 's/"v_proj"/"up_proj"/; s/"q_proj"/"down_proj"/' && refused "has no tensor of" "$1/llama/model" "$work/adapter"
change "$1" 's/"LORA"/"IA3"/' && refused "adapters of type 'IA3' are not supported" "$1/llama/model" "$work/adapter"
change "$1" 's/"use_qalora": false/"use_qalora": true/' && refused "this key is not supported" "$1/llama/model" "$work/adapter"
change "$1" 's/"rank_pattern": {}/"rank_pattern": {"q_.*": 4}/'
refused "names that are regular expressions are not supported" "$1/llama/model" "$work/adapter"
change "$1" 's/"fan_in_fan_out": false/"fan_in_fan_out": true/' && refused "lie as \[out\]\[in\]" "$1/llama/model" "$work/adapter"
refused "do not fit\|belongs to no weight" "$1/llama/model" "$1/gpt2/adapter0"
# Lists that name what the adapter has change nothing.
change "$1" 's/"layers_to_transform": null/"layers_to_transform": [0, 1]/; s/"layers_pattern": null/"layers_pattern": "layers"/; s/"exclude_modules": null/"exclude_modules": ["k_proj"]/'
compile "$1/llama/model" "$work/same.llmpart" --lora="$work/adapter" && compile "$1/llama/model" "$work/plain.llmpart" --lora="$1/llama/adapter0" &&
  { cmp "$work/same.llmpart/device/weights.safetensors" "$work/plain.llmpart/device/weights.safetensors" || fail "lists that leave nothing out change the weights"; }
refused "an ONNX model" "$LP_SOURCE/tests/models/llama/model.onnx" "$1/llama/adapter0"
finish
