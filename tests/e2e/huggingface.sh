# huggingface.sh FOLDER: small models as transformers saved them, each in a folder of its own. Each compiles, and
# generates the tokens that transformers does.
. "$LP_SOURCE/tests/e2e/lib.sh"

for folder in "$1"/*/; do
  family=$(basename "$folder")
  case $family in mistral-* | *-head) part quick ;; *) sampled 4 ;; esac || continue
  compile "$folder" "$work/$family.llmpart" || continue
  same_lists "$family" "$folder/tokens.json"
done
[ -n "${family:-}" ] || fail "there are no models in $1"
finish
