# huggingface.sh FOLDER: small models as transformers saved them, each in a folder of its own. Each compiles, and
# generates the tokens that transformers does.
. "$LP_SOURCE/tests/e2e/lib.sh"

for folder in "$1"/*/; do
  family=$(basename "$folder")
  case $family in mistral-* | *-head | qwen2_moe | deepseek_v3 | gpt_oss-mxfp4 | llama-gptq | llama-awq | llama-fp8) part quick ;; *) sampled 4 ;; esac || continue
  compile "$folder" "$work/$family.llmpart" || continue
  same_lists "$family" "$folder/tokens.json"
done
[ -n "${family:-}" ] || fail "there are no models in $1"

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
