# What a command says on stderr: errors always, warnings, notes and the line of `compile` without --quiet, time and
# memory with -v, colours on a terminal unless NO_COLOR is set. stdout is the same in all cases.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/examples/default-model/model.onnx
cd "$work" || exit 1
split="--device=host --cloud=host,price_usd_per_s=1e-4 --link=wifi --cut=4 -O0"
# shellcheck disable=SC2086 # a list of options
"$LLMPART" compile "$model" $split -o m.llmpart >out 2>err || fail "compile: $(cat err)"
[ ! -s out ] || fail "compile prints on stdout: $(cat out)"
same 'lines of compile' 1 "$(wc -l <err)"
pattern="^m\.llmpart: embedding, layers 0-3 on the device, layers 4-[0-9]+, head in the cloud; TTFT [0-9.]+ m?s, TPOT [0-9.]+ [mu]?s; [0-9.]+ USD/Mtoken, [0-9.]+ % less than the cloud alone; weights [0-9.]+ MiB on the device, [0-9.]+ MiB in the cloud; next: (llmpart run m\.llmpart --prompt='Once upon a time')\$"
grep -Eq "$pattern" err || fail "the line of compile: $(cat err)"
cp err said
next=$(sed -En "s~$pattern~\\1~p" err)
sh -c "PATH=\$(dirname $LLMPART):\$PATH; $next" >out 2>err && [ -s out ] || fail "the next command '$next': $(cat err)"
# The line agrees with the report.
saved=$(sed -n 's/^ *"decrement": \([0-9.]*\).*/\1/p' m.llmpart/report.json | awk '{ printf "%.3g %% less", 100 * $1 }')
grep -Fq "$saved" said || fail "the line does not say '$saved': $(cat said)"
"$LLMPART" compile "$model" --device=host -O0 -o one.llmpart 2>err
grep -q '^one.llmpart: everything on the device; TTFT' err || fail "one machine: $(cat err)"

# shellcheck disable=SC2086 # a list of options
"$LLMPART" compile "$model" $split --quiet -o m.llmpart >out 2>err || fail "compile --quiet: $(cat err)"
[ ! -s err ] || fail "--quiet: $(cat err)"
! "$LLMPART" run absent.llmpart --prompt=x --quiet >out 2>err || fail 'an absent bundle'
grep -q 'error: ' err || fail '--quiet hides errors'
! "$LLMPART" run m.llmpart --quiet --text x 2>err || fail 'an unknown option'
grep -q "did you mean '--prompt'" err || fail "--quiet hides an error's note: $(cat err)"

"$LLMPART" run one.llmpart --prompt=Once -n 4 >want 2>err
same 'stderr of run' '' "$(cat err)"
"$LLMPART" run one.llmpart --prompt=Once -n 4 -v >out 2>err
cmp want out || fail '-v changes stdout'
grep -Eq '^llmpart run: [0-9.]+ m?s, at most [0-9.]+ MiB of memory$' err || fail "-v: $(cat err)"
"$LLMPART" run one.llmpart --prompt=Once -n 4 --stats >out 2>err
unit='[0-9.]+ [mun]?s'
grep -Eq "^TTFT $unit, TPOT $unit, total $unit: device $unit, cloud 0, link 0\$" err || fail "--stats: $(cat err)"
"$LLMPART" compile "$model" --device=host -O0 -v -o one.llmpart 2>err
grep -q '^device      ' err || fail "compile -v does not describe the plan: $(cat err)"

"$LLMPART" bench "$model" 2>err && fail 'a model was measured'
grep -q "^note: llmpart compile $model --device=host -o model.llmpart\$" err || fail "no command for a model: $(cat err)"
grep -q ': error: a model, not a bundle: compile it first' err || fail "no word of the model: $(cat err)"
"$LLMPART" worker /etc/passwd --listen=127.0.0.1:0 2>err && fail 'a file was served'
grep -q '^/etc/passwd: error: a file, not a bundle' err || fail "a file as a bundle: $(cat err)"
"$LLMPART" --versoin 2>err
grep -q "did you mean '--version'" err || fail "--versoin: $(cat err)"
"$LLMPART" compile /etc/passwd --device=host 2>err && fail 'compiled'
grep -q '^/etc/passwd: error: not an ONNX file' err || fail "/etc/passwd: $(cat err)"
"$LLMPART" run one.llmpart --prompt=x --cloud=127.0.0.1:1 2>err && fail '--cloud was ignored'
grep -q 'is not split' err || fail "--cloud of one machine: $(cat err)"

command -v script >/dev/null || skip "the Debian package 'bsdutils' is not installed"
terminal() { TERM=xterm script -qec "$*" /dev/null </dev/null | tr -d '\r'; }
red=$(printf '\033[1;31merror:\033[0m')
terminal "$LLMPART run absent --prompt=x" | grep -Fq "$red" || fail 'no colours on a terminal'
! terminal "NO_COLOR=1 $LLMPART run absent --prompt=x" | grep -q "$(printf '\033')" || fail 'NO_COLOR has no effect'
! terminal "TERM=dumb $LLMPART run absent --prompt=x" | grep -q "$(printf '\033')" || fail 'colours on a dumb terminal'
! "$LLMPART" run absent --prompt=x 2>&1 | grep -q "$(printf '\033')" || fail 'colours in a pipe'
for width in 50 80; do
  terminal "stty cols $width; NO_COLOR=1 $LLMPART compile --help" >out
  longest=$(grep -v '^  -' out | awk '{ if (length > most) most = length } END { print most }')
  [ "$longest" -gt 40 ] && [ "$longest" -le $width ] || fail "the help has lines of $longest columns on a terminal of $width"
done
finish
