# `compile --check` of models that are not in against.txt, and with other types of weights and caches: equal, or refused
# for the reason that checked.txt names. A difference is status 4 and leaves every file as it was.
. "$LP_SOURCE/tests/e2e/lib.sh"
small=$LP_SOURCE/tests/conformance/decoders/standard.onnx
table=$LP_SOURCE/tests/e2e/checked.txt

state_of() { # state_of MODEL OPTION,..: equal, different, or the refusal
  [ "$2" = - ] && options= || options=$(echo "$2" | tr , ' ')
  # shellcheck disable=SC2086 # a list of options
  (cd "$LP_SOURCE" && "$LLMPART" compile "$1" --device=jetson-nano --march=native -O0 --check $options \
    -MD "$work/checked.d" --report="$work/checked.json" -o "$work/checked") >"$work/out" 2>"$work/err"
  status=$?
  files=$(cd "$work" && ls -d checked* 2>/dev/null | paste -sd ' ')
  case $status,$files in
  '0,checked checked.d checked.json') echo equal ;;
  4,) echo different ;;
  [12],) sed -n 's/^.*error: /refused: /p' "$work/err" | head -n 1 ;;
  *) echo "status $status, and the files '$files'" ;;
  esac
  rm -rf "$work"/checked*
}

check_row() { # check_row MODEL OPTION,.. STATE
  found=$(state_of "$1" "$2")
  case $3 in equal | refused:*) ;; *) fail "$1: the table allows a wrong model" ;; esac
  case $found in "$3"*) ;; *) fail "$1 $2: wanted '$3', found '$found'" ;; esac
}

if part quick; then
  # A model with values that f16 does not hold: it differs when its caches are in f16.
  large=$work/large.onnx
  change_onnx "$small" "/^ *raw_data: \"\($one_f32\)*\"\$/s/$one_f32/\\\\000\$tI/g" "$large"
  check_row "$small" --kv-dtype=f16 equal
  set -- --device=jetson-nano --march=native -O0 --check -MD "$work/kept.d" --report="$work/kept.json" -o "$work/kept"
  "$LLMPART" compile "$large" "$@" 2>"$work/err" || fail "values beyond f16 in f32: $(cat "$work/err")"
  same 'values beyond f16' different "$(state_of "$large" --kv-dtype=f16)"
  grep -q "error: the bundle does not compute what the model does: batch 1, 5 after 0: logits differ" "$work/err" ||
    fail "values beyond f16: $(cat "$work/err")"
  # The files of a compilation that succeeded stay as they were.
  mkdir "$work/before" && cp -r "$work/kept" "$work/kept.d" "$work/kept.json" "$work/before"
  "$LLMPART" compile "$large" "$@" --kv-dtype=f16 >"$work/out" 2>"$work/err"
  same 'the exit status of a difference' 4 $?
  mkdir "$work/after" && cp -r "$work/kept" "$work/kept.d" "$work/kept.json" "$work/after"
  diff -r "$work/before" "$work/after" >"$work/out" || fail "a difference changed files: $(head -n 3 "$work/out")"
fi
if part long || part soak; then
  for model in "$LP_SOURCE"/tests/models/huggingface/* "$LP_SOURCE"/tests/models/gguf/*/*.gguf \
    "$LP_SOURCE"/tests/models/lora/*/model "$LP_SOURCE"/tests/models/encoder-decoder/*; do
    grep -q "^${model#"$LP_SOURCE/"} " "$table" || fail "${model#"$LP_SOURCE/"} is not in checked.txt"
  done
  grep -v '^#' "$table" >"$work/rows"
  while read -r model options state; do
    sampled 5 || continue
    check_row "$model" "$options" "$state"
  done <"$work/rows"
fi
finish
