# The invariants of early exits (docs/exits.md), numbered as P2's description numbers them, on three models of different
# width: the default model, a Llama of grouped heads and a GPT-2 of learned positions. Each function shows one and is
# named after it. examples/cloud-edge/paper.py has the second's published byte counts. $1: the program of invariants.c.
. "$LP_SOURCE/tests/e2e/lib.sh"
halves=$1
models=$LP_SOURCE/tests/models
thetas="0 0.2 0.5 0.8 0.95 2"
made=8 # tokens of a generation

prepare() { # prepare NAME EXITS, beside the others
  onnx=$models/$1/model.onnx
  [ "$1" = default ] && onnx=$LP_SOURCE/examples/default-model/model.onnx
  # shellcheck disable=SC2086 # a list of options
  "$LLMPART" compile "$onnx" ${LP_LEVEL:-} $pair --exits="$2" -o "$work/$1.llmpart" >"$work/$1.out" 2>&1 || fail "compile $1: $(head -n 3 "$work/$1.out")"
}

generate() { # generate KEEP [option ...]: $made tokens after $prompt; the run's JSON goes to $work/KEEP
  keep=$1
  shift
  tokens "$bundle" "$prompt" "$made" --cloud="$address" "$@" >"$work/tokens"
  mv "$work/json" "$work/$keep"
}

figure() { number "$work/$1" "$2"; } # figure KEEP KEY

holds() { # holds WHAT VARIABLE=NUMBER ... CONDITION: an awk expression
  what=$1
  shift
  values=""
  while [ $# -gt 1 ]; do
    values="$values -v $1"
    shift
  done
  # shellcheck disable=SC2086 # a list of options
  awk $values "BEGIN { exit !($1) }" || fail "$what: $1 with$values"
}

# 1. Bytes up are 2 d (L + T - 1) and framing at every theta, none in standalone; int8 and int4 halve and quarter them.
bytes_up_do_not_depend_on_theta() {
  rows=$((length + made - 1))
  for theta in $thetas; do
    generate "$theta" --mode=threshold --theta="$theta"
    same "bytes of rows at $theta" $((2 * width * rows)) "$(figure "$theta" hidden_bytes_up)"
    holds "framing at $theta" up="$(figure "$theta" bytes_up)" payload=$((2 * width * rows)) rows=$rows questions=$made \
      'up > payload && up < payload + 64 * (rows + questions) + 512'
  done
  groups=$(((width + 127) / 128)) # each with a scale of 4 bytes
  for codec in "int8 $((width + 4 * groups))" "int4 $((width / 2 + 4 * groups))"; do
    generate codec --mode=threshold --codec="${codec% *}"
    same "bytes of rows in ${codec% *}" $((${codec#* } * rows)) "$(figure codec hidden_bytes_up)"
  done
  generate alone --mode=standalone
  same "bytes of a device alone" '0 0 0' "$(figure alone bytes_up) $(figure alone bytes_down) $(figure alone cloud_requests)"
}

# 2. Naive, the text anew for each token, 4 (d T L + d T (T - 1) / 2) go up; split once, 4 d (L + T - 1).
baselines_send_what_they_should() {
  text=$prompt sum=0 steps=4
  generate full --mode=full
  said=$(cat "$work/tokens")
  for i in $(seq $steps); do
    up=$("$LLMPART" run "$bundle" --tokens="$text" -n 1 --mode=full --cloud="$address" --threads=1 -o json 2>"$work/err" |
      sed -n 's/^ *"bytes_up": \([0-9]*\).*/\1/p')
    sum=$((sum + up))
    text=$text,$(echo "$said" | cut -d, -f "$i")
  done
  holds 'naive' up=$sum d="$width" L="$length" T=$steps \
    'up > 4 * d * (T * L + T * (T - 1) / 2) && up < 4 * d * (T * L + T * (T - 1) / 2) + 256 * T'
  holds 'incremental' up="$(figure full bytes_up)" d="$width" L="$length" T=$made \
    'up > 4 * d * (L + T - 1) && up < 4 * d * (L + T - 1) + 64 * T + 256'
}

# 3. What comes down is a token for each question and framing, whatever the width and the vocabulary.
a_question_brings_one_token_down() {
  shaken=$(figure 0 bytes_down) # hands: no question was put
  for theta in $thetas; do
    holds "bytes down at $theta" down="$(figure "$theta" bytes_down)" shaken="$shaken" asked="$(figure "$theta" cloud_requests)" \
      'down >= shaken + 4 * asked && down <= shaken + 56 * asked'
  done
}

# 4. Questions never decrease as theta grows; 0 at 0, T above 1.
questions_grow_with_theta() {
  before=0
  for theta in $thetas; do
    asked=$(figure "$theta" cloud_requests)
    holds "questions at $theta" asked="$asked" before=$before 'asked >= before'
    before=$asked
  done
  same "questions at 0 and above 1" "0 $made" "$(figure 0 cloud_requests) $(figure 2 cloud_requests)"
}

# 5. Above 1 tokens are the whole model's where rows are f32 (ONNX Runtime's list); other codecs move logits as
#    docs/exits.md says.
above_1_it_is_the_whole_model() {
  generate whole --mode=threshold --theta=1.5 --codec=f32
  same "tokens above 1" "$(echo "$want" | cut -d, -f "1-$made")" "$(cat "$work/tokens")"
  for bound in 'f16 0.001' 'int8 0.02' 'int4 0.25'; do
    moved=$("$halves" "$bundle" "${bound% *}" "$prompt" 2>"$work/err") || fail "$(cat "$work/err")"
    holds "logits of ${bound% *}" moved="${moved:-1}" most="${bound#* }" 'moved > 0 && moved <= most'
  done
}

# 6. Total = edge + cloud + visible communication, which lies between 0 and all communication one after the other: the
# bytes, a round trip for each question, and three to connect. A busy machine adds to it: half as much again is allowed,
# and the least of up to five runs counts.
visible_communication_is_bounded() {
  for how in '--mode=threshold --theta=0.5' '--mode=threshold --theta=2' '--mode=exact'; do
    for _ in 1 2 3 4 5; do
      # shellcheck disable=SC2086 # a list of options
      generate linked $how --codec=f32 --link=rtt=40ms,up=1Mbit/s,down=1Mbit/s
      [ "$(awk -v comm="$(figure linked comm_ms)" -v most="$(serial_ms)" 'BEGIN { print comm <= most }')" = 1 ] && break
    done
    holds "communication, $how" comm="$(figure linked comm_ms)" most="$(serial_ms)" 'comm > 0 && comm <= most'
    holds "parts, $how" total="$(figure linked total_ms)" device="$(figure linked device_ms)" cloud="$(figure linked cloud_ms)" \
      comm="$(figure linked comm_ms)" 'device > 0 && cloud > 0 && (device + cloud + comm - total) ^ 2 < 1e-6'
  done
}

serial_ms() {
  awk -v bytes="$(($(figure linked bytes_up) + $(figure linked bytes_down)))" -v asked="$(figure linked cloud_requests)" \
    'BEGIN { print 1.5 * (bytes * 8 / 1000 + 40 * (asked + 3)) }'
}

# 7. The worker is back to 0 bytes when sessions have ended: at once after all of the above, and when it was idle for
# long enough after one whose device was killed.
the_cloud_is_empty_afterwards() {
  wait_until_empty 'sessions that ended'
  kill "$worker"
  serve "$bundle" --stats --idle=300ms
  : >"$work/told"
  "$LLMPART" run "$bundle" --tokens="$prompt" -n 100 --ignore-eos --mode=threshold --theta=2 --cloud="$address" --threads=1 \
    --link=rtt=20ms >"$work/told" 2>"$work/err" &
  device=$!
  started="$started $device"
  await has_words "$work/told" 3
  kill -KILL "$device"
  wait "$device" 2>"$work/err"
  [ "$(last_held)" != 'open 0, bytes 0' ] || fail "the worker held nothing for a device that was killed"
  wait_until_empty 'a device that was killed'
}

has_words() { [ "$(wc -w <"$1")" -ge "$2" ]; } # has_words FILE COUNT
last_held() { tail -n 1 "$work/listening"; }

holds_nothing() { [ "$(last_held)" = 'open 0, bytes 0' ]; }
wait_until_empty() {
  holds 'bytes held meanwhile' most="$(sed -n 's/^open .*bytes //p' "$work/listening" | sort -n | tail -n 1)" 'most > 0'
  await holds_nothing || fail "after $1 the worker holds: $(last_held)"
}

# 8. Rows that come twice, late and in another order change nothing: shown with the fifth, by the same program.

check() { # check NAME WIDTH
  name="invariants, $1" width=$2 bundle=$work/$1.llmpart
  prompt=$(row "$models/$1/tokens.json" prompts 3) want=$(row "$models/$1/tokens.json" tokens 3)
  length=$(length "$prompt")
  serve "$bundle" --stats
  bytes_up_do_not_depend_on_theta
  baselines_send_what_they_should
  a_question_brings_one_token_down
  questions_grow_with_theta
  above_1_it_is_the_whole_model
  visible_communication_is_bounded
  the_cloud_is_empty_afterwards
  kill "$worker"
}

if part quick; then
  prepare llama 1,2
  check llama 36
fi
if part long; then
  prepare default 2,6 &
  compiling=$!
  prepare gpt2 1
  wait "$compiling"
  check default 128
  check gpt2 42
fi
finish
