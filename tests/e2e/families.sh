# families.sh FOLDER: models of other families, each in a folder of its own. Each compiles, and has nearly all its work
# in recognised layers. Where a model has a list of tokens, it generates these. In the quick part the results are those
# of the test data within 1e-3, and of the interpreter.
. "$LP_SOURCE/tests/e2e/lib.sh"

# share_in_layers IR: per cent of FLOPs in layers that have a name, for one sequence of 8 new tokens after 8. FLOPs
# stand as polynomials: sums of products of numbers and powers of sizes.
share_in_layers() {
  awk 'BEGIN { size["b"] = 1; size["s"] = size["p"] = size["r"] = 8; size["c"] = size["t"] = 16 }
    function term(text,    factor, part, n, i, k, value) {
      value = 1
      n = split(text, factor, "*")
      for (i = 1; i <= n; i++) {
        split(factor[i], part, "^")
        k = part[2] == "" ? 1 : part[2]
        value *= (part[1] in size ? size[part[1]] : part[1]) ^ k
      }
      return value
    }
    match($0, /flops = #llmpart.poly<"[^"]*">/) {
      text = substr($0, RSTART + 23, RLENGTH - 25)
      gsub(/ - /, " + -1*", text)
      n = split(text, terms, / \+ /)
      flops = 0
      for (i = 1; i <= n; i++) flops += term(terms[i])
      total += flops
      if ($0 ~ /layer_kind = "(embedding|norm|attention|mlp|lm_head|exit_head)"/) inside += flops
    }
    END { printf "%.3f", total ? 100 * inside / total : 0 }' "$1"
}

for folder in "$1"/*/; do
  model=$folder/model.onnx family=$(basename "$folder")
  case $family in gemma2-*) part quick ;; *) sampled 3 ;; esac || continue
  compile "$model" "$work/$family.llmpart" || continue
  part quick && { # against.sh, which is long, does this for all of them
    "$LLMPART" verify "$model" ${LP_LEVEL:+"$LP_LEVEL"} --test-data="$folder" --rtol=1e-3 --atol=1e-3 >"$work/out" 2>&1 ||
      fail "$family: verify: exit status $?: $(tail -n 3 "$work/out")"
    "$LLMPART" verify "$model" ${LP_LEVEL:+"$LP_LEVEL"} --against=reference >"$work/out" 2>&1 ||
      fail "$family: verify --against=reference: exit status $?: $(tail -n 10 "$work/out")"
  }
  "$LLMPART" compile "$model" --device=jetson-nano --emit=op-ir -o "$work/ir" 2>/dev/null
  grep -q '"op.attention"' "$work/ir" || fail "$family: no attention is recognised"
  share_in_layers "$work/ir" | awk '{ exit !($1 >= 99) }' ||
    fail "$family: $(share_in_layers "$work/ir") % of the work is in layers that have a name, wanted 99 %"
  [ -f "$folder/tokens.json" ] || continue
  same_lists "$family" "$folder/tokens.json"
done
[ -n "${family:-}" ] || fail "there are no models in $1"
finish
