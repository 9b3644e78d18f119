# encoder.sh FOLDER: encoder-decoder models in the files that optimum and genai write
# (tests/models/encoder_decoder.py). Each generates ONNX Runtime's tokens on one side, and split, where keys of the
# encoder's states stay on the side that reads them.
. "$LP_SOURCE/tests/e2e/lib.sh"

texts() { awk -v key="\"$2\": [" 'index($0, key) { on = 1; next } on && /\]/ { exit } on { gsub(/[ ",]*$|^[ "]*/, ""); print }' "$1"; }

generated() { # generated BUNDLE PROMPT: the tokens, rows joined by ;
  if [ -n "$2" ]; then set -- "$1" "--tokens=$2"; else set -- "$1" "--features=$work/zeros"; fi
  [ "$name" = whisper-genai ] && set -- "$@" --decoder-tokens=1 # no file names the first token
  "$LLMPART" run "$@" -n 8 --threads=1 --ignore-eos -o json >"$work/json" 2>"$work/err" || { head -n 3 "$work/err"; return; }
  sequences "$work/json" | paste -sd ';'
}

check() { # check MODEL BUNDLE
  texts "$folder/tokens.json" prompts >"$work/prompts"
  texts "$folder/tokens.json" tokens >"$work/tokens"
  n=0
  while read -r want <&3; do
    n=$((n + 1))
    same "$1, source $n" "$want" "$(generated "$work/$2" "$(sed -n ${n}p "$work/prompts")")"
  done 3<"$work/tokens"
  [ "$n" -gt 0 ] || fail "$1: no tokens are recorded"
}

next() { # next MODEL: the last line of `compile` names what the model reads
  found=$(sed -n 's/.*; next: llmpart run [^ ]* //p' "$work/err")
  case $1 in
  whisper) same "what $1 reads" '--features=FILE.npy' "$found" ;;
  whisper-genai) same "what $1 reads" '--features=FILE.npy --decoder-tokens=IDS' "$found" ;;
  *) same "what $1 reads" '--tokens=1,2,3' "$found" ;;
  esac
}

head -c 960000 /dev/zero >"$work/zeros"
for folder in "$1"/*/; do
  name=$(basename "$folder")
  case $name in t5) own=quick ;; bart) own=long ;; *) own=soak ;; esac
  if part $own; then
    "$LLMPART" compile "$folder" --device=jetson-nano --march=native ${LP_LEVEL:+"$LP_LEVEL"} -o "$work/$name.llmpart" 2>"$work/err" ||
      fail "compile $name: $(cat "$work/err")"
    next "$name"
    check "$name" "$name.llmpart"
    # shellcheck disable=SC2086 # the pair is three options
    compile "$(ls "$folder"/decoder*.onnx)" "$work/$name.split.llmpart" $pair --cut=1 -O0 &&
      check "$name, split" "$name.split.llmpart"
  fi
  hows='--cut=0 --cut=2 --scheduler=cloud-only --scheduler=exact --kv-dtype=f16'
  [ "$name" = whisper-genai ] && hows=--cut=2 # as slow as whisper, and only its files differ
  for how in $hows; do
    sampled 6 || continue
    # shellcheck disable=SC2086
    compile "$folder" "$work/$name$how.llmpart" $pair "$how" -O0 && check "$name $how" "$name$how.llmpart"
  done
done

refuses() { # refuses TEXT COMMAND ...
  text=$1
  shift
  "$@" >"$work/out" 2>"$work/err" && fail "$*: succeeded"
  grep -q -- "$text" "$work/err" || fail "$*: wanted '$text', found $(head -n 3 "$work/err")"
}
part long && refuses "exceeds the" "$LLMPART" run "$work/bart.llmpart" --tokens="$(seq -s, 3 40)" -n 1
if part soak; then # whisper is the longest to run: 3000 frames
  refuses "reads features: give --features" "$LLMPART" run "$work/whisper.llmpart" --tokens=1,2 -n 1
  refuses "takes .* bytes for this batch" sh -c "head -c 400 '$work/zeros' >'$work/few'; '$LLMPART' run '$work/whisper.llmpart' --features='$work/few' -n 1"
fi
part quick || finish
t5=$1/t5
echo 'edge: { bundle: t5.llmpart, threads: 1, queue: 0 }' >"$work/serve.yaml"
refuses "has an encoder, which cannot be served" "$LLMPART" serve "$work/serve.yaml" --listen=127.0.0.1:0
refuses "the model reads no features" "$LLMPART" run "$work/t5.llmpart" --features="$work/zeros" -n 1
refuses "lies outside of the vocabulary" "$LLMPART" run "$work/t5.llmpart" --tokens=1000 -n 1
refuses "cannot be saved to be resumed" "$LLMPART" run "$work/t5.llmpart" --tokens=3 -n 1 --session="$work/session"
refuses "in the decoder's folder" "$LLMPART" compile "$t5/decoder_model_merged.onnx" --encoder="$1/bart/encoder_model.onnx" --device=host -o "$work/x"
refuses "does not read input 'encoder_hidden_states'" "$LLMPART" compile "$t5/decoder_model_merged.onnx" --encoder=none --device=host -o "$work/alone.llmpart"
"$LLMPART" support "$t5" >"$work/out" || fail "support: $(cat "$work/out")"
grep -q '^compiles$' "$work/out" || fail "support: $(tail -n 2 "$work/out")"
finish
