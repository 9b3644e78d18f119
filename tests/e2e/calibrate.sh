# calibrate.sh: llmpart calibrate on the default model. The threshold that it finds keeps its risk on held-out text; it
# goes into the bundle only on request, and `run --theta=calibrated` takes it from there; invalid requests are refused.
. "$LP_SOURCE/tests/e2e/lib.sh"

# Quick: the printed forms and the refusals, on a model whose exits are untrained.
if part quick; then
  bundle=$work/llama.llmpart lists=$LP_SOURCE/tests/models/llama/tokens.json
  # shellcheck disable=SC2086 # a list of options
  compile "$LP_SOURCE/tests/models/llama/model.onnx" "$bundle" $pair --exits=1,2 || finish
  for i in 1 2 3; do
    echo "[$(row "$lists" prompts $i),$(row "$lists" tokens $i)]"
    echo "[$(row "$lists" tokens $i)]"
  done >"$work/few.jsonl"
  measure() { # measure FORMAT [option ...]
    form=$1
    shift
    "$LLMPART" calibrate "$bundle" --data="$work/few.jsonl" --threads=1 "$@" -o "$form" >"$work/calibration" 2>"$work/err" ||
      fail "calibrate $*: exit status $?: $(head -n 3 "$work/err")"
  }
  measure json --at=0,0.5,2
  same 'the thetas looked at' '0.0 0.5 2.0' "$(sed -n '/"at"/,/\]/s/.*"theta": \([0-9.]*\),*$/\1/p' "$work/calibration" | paste -sd' ' -)"
  same 'documents looked at' 6 "$(sed -n '/"held_out"/,/}/s/.*"documents": \([0-9]*\).*/\1/p' "$work/calibration")"
  measure text --at=0.5
  [ -s "$work/calibration" ] || fail 'no text'
  measure json --risk=0.99 --confidence=0.5 --apply
  cmp -s "$work/calibration" "$bundle/calibration.json" || fail 'the bundle carries something else than what was printed'
  want=$(tokens "$bundle" 1,2,3 8 --mode=threshold --theta="$(number "$work/calibration" theta)" --in-process)
  same 'a calibrated run' "$want" "$(tokens "$bundle" 1,2,3 8 --mode=threshold --theta=calibrated --in-process)"
  measure json --risk=0.99 --confidence=0.5 --codec=int8
  same 'the codec of the rows' int8 "$(sed -n 's/^ *"codec": "\(.*\)",*$/\1/p' "$work/calibration")"
  refused 'too little text' 'few.jsonl: error: [0-9]+ held-out tokens are too few for a risk of 0.001' \
    "$LLMPART" calibrate "$bundle" --data="$work/few.jsonl" --risk=0.001
  wanted_status=2
  for share in risk confidence; do
    for value in 0 1; do
      refused "a $share of $value" "$share: error: $value is no share between 0 and 1" \
        "$LLMPART" calibrate "$bundle" --data="$work/few.jsonl" --$share=$value
    done
  done
  refused 'nothing to write' 'error: --at searches for no theta' "$LLMPART" calibrate "$bundle" --data="$work/few.jsonl" --at=1 --apply
  refused 'no theta to look at' "at: error: 'x'" "$LLMPART" calibrate "$bundle" --data="$work/few.jsonl" --at=0.5,x
  refused 'no data' 'error: wanted --data=FILE' "$LLMPART" calibrate "$bundle"
  wanted_status=1
fi
part long || finish
bundle=$work/default.llmpart
# shellcheck disable=SC2086 # a list of options
compile "$LP_SOURCE/examples/default-model/model.onnx" "$bundle" $pair --exits=3,6 || finish

write() { # write FILE FIRST LAST: a text of the model's own for each seed, a line of ids each
  i=$2
  while [ "$i" -le "$3" ]; do
    "$LLMPART" run "$bundle" --prompt="Once" --mode=standalone --temperature=1 --seed="$i" -n 100 --threads=1 \
      --ignore-eos -o json >"$work/json" 2>"$work/err" || fail "run: $(head -n 3 "$work/err")"
    echo "[$(sequences "$work/json")]"
    i=$((i + 1))
  done >"$1"
}
write "$work/texts.jsonl" 1 20
write "$work/fresh.jsonl" 101 120

calibrate() { "$LLMPART" calibrate "$bundle" --threads=1 "$@" -o json >"$work/calibration" 2>"$work/err" ||
  fail "calibrate $*: exit status $?: $(head -n 3 "$work/err")"; }

below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }' || fail "$3: $1 is not below $2"; }

calibrate --data="$work/texts.jsonl" --risk=0.05
theta=$(number "$work/calibration" theta)
same 'documents held out' 15 "$(sed -n '/"held_out"/,/}/s/.*"documents": \([0-9]*\).*/\1/p' "$work/calibration")"
below "$(number "$work/calibration" bound)" 0.05 'the bound'
below "$(number "$work/calibration" disagreement)" "$(number "$work/calibration" bound)" 'the disagreement'
below "$theta" 1 'theta'
cp "$work/calibration" "$work/first"
[ ! -e "$bundle/calibration.json" ] || fail 'the bundle was changed without --apply'

# A smaller risk asks for a greater theta, and with it for the cloud more often.
calibrate --data="$work/texts.jsonl" --risk=0.02
below "$theta" "$(number "$work/calibration" theta)" 'theta at a smaller risk'
below "$(number "$work/first" cloud_request_rate)" "$(number "$work/calibration" cloud_request_rate)" 'the rate at a smaller risk'

# On texts that it never saw: the share at that theta, by the same counting.
calibrate --data="$work/fresh.jsonl" --risk=0.9999
awk -v theta="$theta" '$1 == "\"theta\":" { at = $2 + 0 }
  $1 == "\"disagreement\":" && at >= theta { last = $2 + 0 } END { exit !(last > 0 && last < 0.05) }' "$work/calibration" ||
  fail "more than 5 % disagree on other texts at theta $theta"

refused 'a bundle without a calibration' 'error: the bundle carries no calibration' \
  "$LLMPART" run "$bundle" --tokens=1 -n 1 --mode=threshold --theta=calibrated --in-process
grep -q 'note: .*llmpart calibrate .*--apply' "$work/err" || fail "no way to calibrate: $(cat "$work/err")"
calibrate --data="$work/texts.jsonl" --risk=0.05 --apply
cmp -s "$work/first" "$bundle/calibration.json" || fail 'the bundle carries something else than what was printed'
want=$(tokens "$bundle" 1,2,3 40 --mode=threshold --theta="$theta" --in-process)
same 'a calibrated run' "$want" "$(tokens "$bundle" 1,2,3 40 --mode=threshold --theta=calibrated --in-process)"
tokens "$bundle" 1,2,3 4 --mode=threshold --theta=calibrated --codec=int4 --in-process >"$work/out"
grep -q 'warning: theta was calibrated with rows in f16' "$work/err" || fail 'no warning of another codec'
"$LLMPART" calibrate "$bundle" --data="$work/texts.jsonl" --risk=0.05 --threads=1 >"$work/out" || fail 'as text'
grep -q '^theta .* 5 % of tokens differ.* 95 % confidence' "$work/out" || fail "text: $(head -n 2 "$work/out")"

# What a theta comes to, whether it keeps a risk or not: of all documents.
calibrate --data="$work/texts.jsonl" --at=0,0.8,2
same 'documents looked at' 20 "$(sed -n '/"held_out"/,/}/s/.*"documents": \([0-9]*\).*/\1/p' "$work/calibration")"
same 'exits at 0, 0.8 and 2' '1.0 inside 0.0' "$(awk '$1 == "\"at\":" { inside = 1 } inside && $1 == "\"exit_rate\":" { print $2 + 0 }' \
  "$work/calibration" | head -n 3 | awk 'NR == 2 { $1 = $1 > 0 && $1 < 1 ? "inside" : "outside" } NR != 2 { $1 = $1 ".0" } { print }' | paste -sd' ')"

# What examples/train-exits makes of it: a table of each exit, and one of both together.
if command -v python3 >/dev/null; then
  python3 "$LP_SOURCE/examples/train-exits/compare.py" --before "$work/calibration" --after "$work/calibration" >"$work/out" || fail 'compare.py'
  same 'rows of exits, before and after' 2 "$(grep -c '^| 6, .* | [0-9.]* / [0-9.]* |$' "$work/out")"
  same 'rows of thetas' 3 "$(grep -c '^| [0-9.]* |' "$work/out")"
fi

# Text: documents between blank lines; and what the full model generates after each.
printf 'Once upon a time\n\nTom found a map\nunder a stone.\n \n\nOne day, Lily\n\nThe little fox was sad\n' >"$work/prompts.txt"
calibrate --data="$work/prompts.txt" --risk=0.5 --generate=12
same 'generated tokens' 36 "$(sed -n '/"held_out"/,/}/s/.*"tokens": \([0-9]*\).*/\1/p' "$work/calibration")"

refused 'too little text' 'prompts.txt: error: [0-9]+ held-out tokens are too few for a risk of 0.001: it takes 2995' \
  "$LLMPART" calibrate "$bundle" --data="$work/prompts.txt" --risk=0.001
grep -q 'note: that is about [0-9]* tokens' "$work/err" || fail "no count of tokens: $(cat "$work/err")"
echo 'Once upon a time' >"$work/one.txt"
refused 'a single document' 'one.txt: error: 1 different documents' "$LLMPART" calibrate "$bundle" --data="$work/one.txt"
refused 'an absent file' 'absent.txt' "$LLMPART" calibrate "$bundle" --data="$work/absent.txt"
printf '[1, 2]\n[3, 70000]\n' >"$work/odd.jsonl"
refused 'a token of another model' 'odd.jsonl:2: error: token 70000' "$LLMPART" calibrate "$bundle" --data="$work/odd.jsonl"
printf '[1, 2]\n{"text": 4}\n' >"$work/odd.jsonl"
refused 'a text that is none' 'odd.jsonl:2: error: text: ' "$LLMPART" calibrate "$bundle" --data="$work/odd.jsonl"
sed 's/"bundle": "./"bundle": "x/' "$work/first" >"$bundle/calibration.json"
refused 'a calibration of another bundle' 'calibration.json: error: bundle: .*another bundle' \
  "$LLMPART" run "$bundle" --tokens=1 -n 1 --mode=threshold --theta=calibrated --in-process
echo '{' >"$bundle/calibration.json"
refused 'a damaged calibration' 'calibration.json.*error: not valid JSON' \
  "$LLMPART" run "$bundle" --tokens=1 -n 1 --mode=threshold --theta=calibrated --in-process
compile "$LP_SOURCE/tests/models/llama/model.onnx" "$work/plain.llmpart" &&
  refused 'a bundle without exits' 'error: the bundle has no early exits' \
    "$LLMPART" calibrate "$work/plain.llmpart" --data="$work/texts.jsonl"
wanted_status=2
refused 'a risk of 1' "risk: error: 1 is no share" "$LLMPART" calibrate "$bundle" --data="$work/one.txt" --risk=1
refused 'nothing to write' 'error: --at searches for no theta' "$LLMPART" calibrate "$bundle" --data="$work/one.txt" --at=1 --apply
refused 'no theta to look at' "at: error: 'x'" "$LLMPART" calibrate "$bundle" --data="$work/one.txt" --at=0.5,x
refused 'no data' 'error: wanted --data=FILE' "$LLMPART" calibrate "$bundle"
refused 'a theta that is none' "theta: error: 'calibratd'" "$LLMPART" run "$bundle" --tokens=1 --theta=calibratd
finish
