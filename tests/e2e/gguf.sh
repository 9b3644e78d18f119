# gguf.sh FOLDER: small models as GGUF files, each in a folder of its own with the tokens that transformers gives
# (tests/models/gguf_files.py). Each compiles and generates these tokens, with activations in f32 as transformers has.
. "$LP_SOURCE/tests/e2e/lib.sh"

for folder in "$1"/*/; do
  name=$(basename "$folder")
  case $name in
  deepseek3 | falcon-h1-norm | granitehybrid | lfm2-blocks | llama-blocks | llama-k-blocks | nemotron_h | \
    nemotron_h_moe-blocks | phi3-long | qwen35moe | qwen3moe-blocks | qwen3next-packed) part quick ;;
  *) sampled 3 ;;
  esac || continue
  for file in "$folder/$name.gguf" "$folder/$name"-00001-of-*.gguf; do # a whole file, or the first of its parts
    [ ! -e "$file" ] || compile "$file" "$work/$name.llmpart" --activations=f32 || continue 2
  done
  same_lists "$name" "$folder/tokens.json"
done
[ -n "${name:-}" ] || fail "there are no models in $1"
finish
