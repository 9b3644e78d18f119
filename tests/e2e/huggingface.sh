# huggingface.sh FOLDER: small models as transformers saved them, each in a folder of its own. Each compiles, and
# generates the tokens that transformers does.
. "$LP_SOURCE/tests/e2e/lib.sh"

for folder in "$1"/*/; do
  family=$(basename "$folder")
  case $family in mistral-* | *-head | qwen2_moe | deepseek_v3 | deepseek_v3-fp8 | mixtral-gptq | gpt_oss-mxfp4 | lfm2_moe | granitemoehybrid | falcon_h1-norm-bf16 | nemotron_h-latent-bf16 | qwen3_next-halves | qwen3_5_moe-images | llama4 | llama-gptq | llama-awq | llama-fp8 | llama-nf4-nested) part quick ;; *) sampled 4 ;; esac || continue
  case $family in *-nf4*) exact=--activations=f32 ;; *) exact= ;; esac # blocks are multiplied with int8 else
  compile "$folder" "$work/$family.llmpart" $exact || continue
  same_lists "$family" "$folder/tokens.json"
done
[ -n "${family:-}" ] || fail "there are no models in $1"

# Both a processor's half and a GPU's keep weights in their bytes, and --dtype rounds FP8 again.
bytes() { wc -c <"$1"; }
for packed in llama-fp8 llama-gptq llama-awq; do
  for code in '--device=host' '--device=snapdragon-8s-gen3 --backend-device=opencl'; do
    compile "$1/$packed" "$work/kept.llmpart" $code && ! grep -q "rounded again\|stored and counted" "$work/err" &&
      [ $((10 * $(bytes "$work/kept.llmpart/device/weights.safetensors"))) -le $((11 * $(bytes "$1/$packed/model.safetensors"))) ] ||
      fail "weights are not kept by $code: $(bytes "$work/kept.llmpart/device/weights.safetensors") of $(bytes "$1/$packed/model.safetensors") bytes, $(cat "$work/err")"
  done
done
compile "$1/llama-fp8" "$work/int4.llmpart" --dtype=int4 && ! grep -q "rounded again" "$work/err" &&
  [ "$(bytes "$work/int4.llmpart/device/weights.safetensors")" -lt "$(bytes "$work/kept.llmpart/device/weights.safetensors")" ] ||
  fail "FP8 weights are not rounded: $(cat "$work/err")"
cp -r "$1/llama-fp8-channels" "$work/four" && sed -i 's/"num_bits": 8/"num_bits": 4/' "$work/four/config.json"
refused 'floats of 4 bits' 'this number of bits are not supported' "$LLMPART" compile "$work/four" --device=host -o "$work/none"

# damaged WHAT FROM TO TEXT: a checkpoint in NF4 with TO in place of FROM, which is as long
damaged() {
  cp -r "$nf4" "$work/damaged"
  sed -i "s/$2/$3/g" "$work/damaged/model.safetensors" "$work/damaged/config.json"
  refused "$1" "$4" "$LLMPART" compile "$work/damaged" --device=host -o "$work/none"
  rm -r "$work/damaged"
}
nf4=$1/llama-nf4-nested
damaged 'blocks of 48' '"blocksize": 64' '"blocksize": 48' 'no multiple of 32'
damaged 'other sizes' '"shape": \[64, 64\]' '"shape": [64, 96]' 'other sizes than its quant_state'
damaged 'no scales' 'weight\.absmax' 'weight.absmix' 'a part that is missing or of another size'
damaged 'no sizes' 'bitsandbytes__nf4' 'bitsandbytes__fp4' 'no quant_state of NF4'
damaged 'another type' '"nf4"' '"fp4"' "of this type are not supported: 'fp4'"
damaged 'another storage' '"uint8"' '"int16"' "this storage are not supported: 'int16'"
damaged 'no JSON' '"quant_type"' '"quant_type:' 'quant_state'

# A plan without weight files has the model's parameters, but that assumed norms are all alike and count once.
mkdir "$work/deepseek_v3"
cp "$1/deepseek_v3/config.json" "$work/deepseek_v3"
for folder in "$1/deepseek_v3" "$work/deepseek_v3"; do
  "$LLMPART" compile "$folder" --device=host --emit=report -o - 2>/dev/null | sed -n 's/^model .*: \(.*\) k parameters,.*/\1/p'
done | awk '{ count[NR] = $1 } END { exit !(NR == 2 && count[2] <= count[1] && count[2] > 0.99 * count[1]) }' ||
  fail "another number of parameters without weight files"

# States go to the other machine after the prompt, as KV caches do, where one computes and the other reads faster.
machine multiplies '100 TFLOP/s' '10 MB/s'
machine reads '12 MFLOP/s' '1000 GB/s'
compile "$1/granitemoehybrid" "$work/granitemoehybrid.llmpart" --device="$work/multiplies.yaml" --cloud="$work/reads.yaml" \
  --objective=latency --march=native --isl=64 --osl=64 --link=rtt=1us,up=1000Gbit/s,down=1000Gbit/s --tolerance=0 &&
  same_lists granitemoehybrid "$1/granitemoehybrid/tokens.json"
tr -d ' \n' <"$work/granitemoehybrid.llmpart/manifest.json" | grep -q '"op":"move","from":"device","to":"cloud","state":2' ||
  fail 'no state of a linear attention moves'

# A state is that of one position, so no mode that takes drafts back runs.
compile "$1/granitemoehybrid" "$work/state.llmpart" --device=host --cloud=host --scheduler=cut --cut=2 --exits=1 &&
  for mode in threshold standalone; do
    "$LLMPART" run "$work/state.llmpart" --tokens=1,2 -n 2 --mode=$mode >"$work/out" 2>"$work/err"
    status=$?
    { [ $status = 1 ] && grep -q 'keeps a state and not a row for each token' "$work/err"; } ||
      fail "--mode=$mode with states: exit status $status: $(cat "$work/err")"
  done

# Keys that nothing reads are listed, those that are read are not.
cp -r "$1/qwen3" "$work/keys"
echo '{ "temperature": 0.5, "penalty_alpha": 0.6 }' >"$work/keys/generation_config.json"
listed=$("$LLMPART" support -v "$work/keys" 2>/dev/null | grep '^not read: ')
for key in 'generation_config.json penalty_alpha' 'config.json attention_dropout'; do
  case $listed in *"not read: $key"*) ;; *) fail "$key is not listed: $listed" ;; esac
done
for key in temperature hidden_size rope_parameters; do
  case $listed in *"$key"*) fail "$key is listed: $listed" ;; esac
done
finish
