# Compares every ONNX model of the project with the interpreter of its graph, with ONNX Runtime, and with the test data
# in its folder: the results are equal, or refused for the reason that against.txt names. Models of ../shared/models are
# included if they exist. ONNX Runtime is PyPI's package for $LLMPART_PYTHON, $LP_PYTHON or python3.
. "$LP_SOURCE/tests/e2e/lib.sh"
shared=${LP_SHARED_MODELS:-$LP_SOURCE/../shared/models}
table=$LP_SOURCE/tests/e2e/against.txt
small=$LP_SOURCE/tests/conformance/decoders/attention.onnx
export LLMPART_PYTHON="${LLMPART_PYTHON:-${LP_PYTHON:-python3}}"
python=$LLMPART_PYTHON

file_of() { # file_of MODEL: its path
  case $1 in
  shared/*) echo "$shared/${1#shared/}/model.onnx" ;;
  *.onnx) echo "$LP_SOURCE/$1" ;;
  *) echo "$LP_SOURCE/$1/model.onnx" ;;
  esac
}

state_of() { # state_of MODEL HOW [option]: the last line of the output, or the refusal
  "$LLMPART" verify "$(file_of "$1")" --against="$2" ${3:+"$3"} --threads=1 >"$work/out" 2>"$work/err"
  case $? in
  0 | 4) tail -n 1 "$work/out" ;;
  *) sed -n 's/^.*error: /refused: /p' "$work/err" | head -n 1 ;;
  esac
}

check_row() { # check_row MODEL HOW STATE [option]
  found=$(state_of "$1" "$2" ${4:+"$4"})
  case $3 in *' 0 failed'*) ;; refused:*) ;; *) fail "$1: the table allows a wrong model" ;; esac
  case $found in "$3"*) ;; *) fail "$1 against $2: wanted '$3', found '$found'" ;; esac
}

# Python that is absent, ends at once, or reports a failure: one message each, and status 1.
LLMPART_PYTHON=/nowhere refused 'no Python' "cannot run '/nowhere'" "$LLMPART" verify "$small" --against=onnxruntime
grep -q "note: LLMPART_PYTHON names a Python that has PyPI's package 'onnxruntime'" "$work/err" || fail 'no note'
LLMPART_PYTHON=false refused 'a Python that ends' "'false' ended without an answer" "$LLMPART" verify "$small" --against=onnxruntime
for status in 1 2; do
  printf '#!/bin/sh\nprintf "\\00%s\\0\\0\\0\\0\\0\\0\\0\\005\\0\\0\\0\\0\\0\\0\\0sorry" >&0\n' "$status" >"$work/python"
  chmod +x "$work/python"
  case $status in 1) wanted='attention.onnx: error: ONNX Runtime: sorry' ;; 2) wanted='has no ONNX Runtime: sorry' ;; esac
  LLMPART_PYTHON=$work/python refused "an answer of $status" "$wanted" "$LLMPART" verify "$small" --against=onnxruntime
done
wanted_status=2 refused 'a bound input' 'takes no --bind' "$LLMPART" verify "$small" --against=onnxruntime --bind=input_ids=1
refused 'a folder' 'error: ' "$LLMPART" verify "$LP_SOURCE/tests/models/huggingface/phi" --against=onnxruntime

has_runtime=yes
"$python" -c 'import onnx, onnxruntime' 2>/dev/null || has_runtime=
if part quick; then
  check_row tests/models/plain-mlp reference 'refused: the model has no token input'
  check_row tests/models/plain-mlp expected '1 passed, 0 failed'
  check_row tests/models/forms/logits-pruned expected '1 passed, 0 failed' # a padded prompt
  [ -n "$has_runtime" ] && {
    check_row tests/models/llama onnxruntime '8 passed, 0 failed, 0 unsupported'
    check_row tests/models/forms/sizes-fixed onnxruntime '4 passed, 0 failed, 0 unsupported' # the file states 8 tokens
    # A runtime that returns zeros must be reported as different.
    printf '#!/bin/sh\nexec "%s" -c "$(printf %%s "$2" | sed "s/write(ctypes.string_at.*/write(bytes(size))/")" "$3" "$4"\n' \
      "$(command -v "$python")" >"$work/python"
    LLMPART_PYTHON=$work/python "$LLMPART" verify "$small" --against=onnxruntime >"$work/out" 2>"$work/err"
    same 'the exit status of other results' 4 $?
    grep -q 'failed: logits differ by' "$work/out" || fail "other results: $(cat "$work/out" "$work/err")"
    # A model with one changed weight, too.
    change_onnx "$small" "/^ *raw_data: \"\($one_f32\)*\"\$/s/$one_f32/\\\\000\\\\000\\\\000@/" "$work/mutant.onnx"
    printf '#!/bin/sh\nexec "%s" -c "$2" "%s" "$4"\n' "$(command -v "$python")" "$work/mutant.onnx" >"$work/python"
    LLMPART_PYTHON=$work/python "$LLMPART" verify "$small" --against=onnxruntime >"$work/out" 2>"$work/err"
    same 'the exit status of another weight' 4 $?
    grep -q ', 8 failed' "$work/out" || fail "another weight: $(cat "$work/out" "$work/err")"
  }
fi
# level MODEL HOW: in the soak the optimised code of a model is compared once, with ONNX Runtime where that runs the
# model. In the other comparisons the code is not optimised.
level() {
  part soak || { echo -O0; return; }
  [ "$2" != onnxruntime ] && [ -n "$has_runtime" ] && grep -q "^$1 onnxruntime [0-9]" "$table" && echo -O0
}
if part long; then
  # Each model on the disk is in the table.
  for model in "$LP_SOURCE"/tests/models/*/model.onnx "$LP_SOURCE"/tests/models/*/*/model.onnx \
    "$LP_SOURCE"/examples/*/model.onnx "$LP_SOURCE"/tests/conformance/decoders/*.onnx; do
    entry=${model#"$LP_SOURCE/"}
    entry=${entry%/model.onnx}
    for how in reference onnxruntime; do
      grep -q "^$entry $how " "$table" || fail "$entry $how is not in against.txt"
    done
  done
fi
if part long || part soak; then
  grep -v '^#' "$table" >"$work/rows"
  while read -r model how state; do
    sampled 12 || continue
    case $model in shared/*) [ -e "$(file_of "$model")" ] || continue ;; esac
    [ "$how" = onnxruntime ] && [ -z "$has_runtime" ] && continue
    check_row "$model" "$how" "$state" "$(level "$model" "$how")"
  done <"$work/rows"
  [ -d "$shared" ] || echo "skipped: there is no $shared"
fi
[ -n "$has_runtime" ] || echo "skipped: $python has no onnx and onnxruntime"
finish
