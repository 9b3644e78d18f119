# resume.sh: `llmpart run --session` is killed with SIGKILL at random moments and continued by --resume until it is
# complete. The tokens are those of an undisturbed run, in every mode, with a worker that stays and with one of its own.
# Session files that cannot be resumed are refused.
. "$LP_SOURCE/tests/e2e/lib.sh"
lists=$LP_SOURCE/tests/models/default/tokens.json
bundle=$work/default.llmpart kept=$work/kept.session
# shellcheck disable=SC2086 # a list of options
compile "$LP_SOURCE/examples/default-model/model.onnx" "$bundle" $pair --exits=2,6 || finish
ids=$(row "$lists" prompts 1) count=48

draw() { # draw LIMIT: a number below it, the same in every run of this test
  drawn=$(awk -v seed="$drawn" 'BEGIN { print (seed * 1103515245 + 12345) % 2147483648 }')
  echo $((drawn / 65536 % $1))
}
drawn=1

# killed [option ...]: the tokens of a run that is killed again and again; $kills counts. Each process has a little
# longer.
killed() {
  rm -f "$kept"
  kills=0 longer=20
  while :; do
    "$LLMPART" run "$bundle" --tokens="$ids" -n "$count" --threads=1 --ignore-eos -o json --session="$kept" --resume "$@" \
      --link=rtt=15ms >"$work/json" 2>"$work/err" &
    device=$!
    pause=$(($(draw 120) + longer))
    sleep "$((pause / 1000)).$(printf %03d $((pause % 1000)))"
    kill -KILL "$device" 2>/dev/null && kills=$((kills + 1))
    wait "$device" 2>/dev/null
    status=$?
    [ "$status" != 137 ] && break
    longer=$((longer + 60))
  done
  [ "$status" = 0 ] || fail "$*: exit status $status: $(head -n 3 "$work/err")"
  sequences "$work/json" >"$work/tokens"
}

serve "$bundle"
want=$(tokens "$bundle" "$ids" "$count" --in-process)
early=$(tokens "$bundle" "$ids" "$count" --mode=standalone)
total=0
part quick && for _ in 1 2; do
  killed --cloud="$address"
  same 'exact, a worker that stays' "$want" "$(cat "$work/tokens")"
  total=$((total + kills))
done
[ "$total" -ge 3 ] || ! part quick || fail "$total processes were killed in two generations"
if part long; then
  killed
  same 'exact, a worker of its own' "$want" "$(cat "$work/tokens")"
  killed --cloud="$address" --mode=full
  same 'full' "$want" "$(cat "$work/tokens")"
  killed --cloud="$address" --mode=threshold --theta=2 --codec=f32
  same 'threshold' "$want" "$(cat "$work/tokens")"
fi
part quick || finish
killed --mode=standalone
same 'standalone' "$early" "$(cat "$work/tokens")"

# A worker that is asked to end keeps its contexts in --context-dir, and the next one has them; what is damaged there is
# discarded, with a line, and sent again.
# restart [COMMAND]: restarts in the middle of a generation, with a command in between; $work/tokens has the tokens.
restart() {
  rm -rf "$work/contexts"
  serve "$bundle" --context-dir="$work/contexts" --stats
  where=$address
  "$LLMPART" run "$bundle" --tokens="$ids" -n 150 --threads=1 --ignore-eos -o json --cloud="$address" --link=rtt=60ms \
    >"$work/json" 2>"$work/err" &
  device=$!
  await grep -q '^open 1, bytes [1-9]' "$work/listening" || fail 'the worker has no context'
  kill "$worker"
  wait "$worker" || fail "a worker that is asked to end: exit status $?"
  same 'contexts that are kept' 1 "$(ls "$work/contexts" | wc -l)"
  "$@"
  serve "$bundle" --context-dir="$work/contexts"
  wait "$device" || fail "its worker was started again: exit status $?: $(cat "$work/err")"
  sequences "$work/json" >"$work/tokens"
  kill "$worker"
  wait "$worker"
  unset where
}
damage() {
  for context in "$work"/contexts/*.context; do printf x | dd of="$context" bs=1 seek=500 conv=notrunc 2>"$work/log"; done
}
long=$(tokens "$bundle" "$ids" 150 --in-process)
restart true
same 'a worker that has its contexts again' "$long" "$(cat "$work/tokens")"
same 'lines for contexts that are as they were' 0 "$(grep -c 'context: warning' "$work/listening")"
restart damage
same 'a worker whose contexts are damaged' "$long" "$(cat "$work/tokens")"
same 'one line for a damaged context' 1 "$(grep -c 'context: warning: .*damaged.*: it is discarded' "$work/listening")"
refused 'a folder for contexts that is none' "manifest.json: error: is no folder" \
  "$LLMPART" worker "$bundle" --listen=127.0.0.1:0 --context-dir="$bundle/manifest.json"

# Prompt and options are the session's when they are left out; what is complete is printed again.
same 'a session that is complete' "$(echo "$early" | tr ',' ' ')" \
  "$("$LLMPART" run "$bundle" --session="$kept" --resume -o json | sequences - | tr ',' ' ')"
text=$("$LLMPART" run "$bundle" --tokens="$ids" -n 8 --in-process)
"$LLMPART" run "$bundle" --tokens="$ids" -n 8 --in-process --session="$kept" >"$work/out"
same 'the text of a session' "$text" "$("$LLMPART" run "$bundle" --in-process --session="$kept" --resume)"

resume="$LLMPART run $bundle --in-process --session=$kept --resume"
# shellcheck disable=SC2086 # a command
{
  refused 'another temperature' "$kept: error: .*begun with --temperature of 0, not of 0.5" $resume --temperature=0.5
  refused 'another prompt' "$kept: error: .*another prompt" $resume --tokens=1,2
  refused 'another mode' "$kept: error: .*--mode=exact, not full" $resume --mode=full
  cp "$kept" "$work/good"
  printf x | dd of="$kept" bs=1 seek=60 conv=notrunc 2>"$work/log"
  refused 'a damaged session' "$kept: error: .*damaged" $resume
  head -c 50 "$work/good" >"$kept"
  refused 'half a session' "$kept: error: .*damaged" $resume
  cp "$bundle/manifest.json" "$kept"
  refused 'what is no session' "$kept: error: is no session file" $resume
  rm "$kept"
  refused 'no session and no prompt' "$kept: error: .*no session to continue" $resume
}
# shellcheck disable=SC2086 # a list of options
compile "$LP_SOURCE/examples/default-model/model.onnx" "$work/other.llmpart" $pair --exits=3 &&
  refused 'the session of another bundle' "good: error: .*another bundle" \
    "$LLMPART" run "$work/other.llmpart" --in-process --session="$work/good" --resume
refused 'a session where nothing can be written' 'error: cannot write' \
  "$LLMPART" run "$bundle" --in-process --tokens=1 -n 1 --session=/proc/none/kept
wanted_status=2
refused '--resume without --session' 'error: .*wanted --session=FILE' "$LLMPART" run "$bundle" --in-process --tokens=1 -n 1 --resume
finish
