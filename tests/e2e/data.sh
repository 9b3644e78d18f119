# data.sh FOLDER: the model's results (logits and caches) are those of its test data within 1e-3, whole and cut in two.
. "$LP_SOURCE/tests/e2e/lib.sh"
verify() { # verify OPTION ...
  "$LLMPART" verify "$folder/model.onnx" "$@" --rtol=1e-3 --atol=1e-3 >"$work/out" 2>&1 ||
    fail "verify $*: exit status $?: $(tail -n 3 "$work/out")"
}
folder=$1
part quick && verify --test-data="$folder/test_data_set_0"
part long && verify --test-data="$folder/test_data_set_0" --split=auto
part quick || finish

# A wrong expectation must be noticed: the last output's bytes of a neighbour's file.
cp -r "$folder/test_data_set_0" "$work/wrong"
LC_ALL=C tr '\0-\377' '\1-\377\0' <"$folder/test_data_set_0/output_0.pb" >"$work/wrong/shifted"
size=$(wc -c <"$work/wrong/output_0.pb")
head -c $((size - 400)) "$folder/test_data_set_0/output_0.pb" >"$work/wrong/output_0.pb"
tail -c 400 "$work/wrong/shifted" >>"$work/wrong/output_0.pb"
"$LLMPART" verify "$folder/model.onnx" -O0 --test-data="$work/wrong" >"$work/out" 2>&1
status=$?
[ "$status" = 4 ] || fail "a wrong expectation: exit status $status, wanted 4: $(tail -n 2 "$work/out")"
finish
