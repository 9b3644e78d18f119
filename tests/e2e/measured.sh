# A prediction is of the run that was made: --stats prices the plan at the run's own prompt, tokens and link, and
# --measured refuses a run of another plan, prompt, batch or link by name.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx
plan="--device=jetson-nano-p1 --cloud=v100s-p1 --march=native --scheduler=cut --cut=1"
slow=rtt=20ms,up=2Mbit/s,down=10Mbit/s
sized="$plan --isl=7 --osl=6"
long=$(seq -s, 1 40)

# shellcheck disable=SC2086 # a list of options
compile "$model" "$work/one.llmpart" $sized --link=$slow || finish

run() { # run OUT IDS [option ...]
  out=$1 ids=$2
  shift 2
  "$LLMPART" run "$work/one.llmpart" --tokens="$ids" -n 6 --ignore-eos --threads=1 -o json "$@" >"$out" 2>"$work/err" || fail "run $*: $(cat "$work/err")"
}
against() { # against RUN [option ...]: compares the run with a plan
  file=$1
  shift
  "$LLMPART" compile "$model" "$@" --plan-only --measured="$file" --report="$work/report.txt" >"$work/out" 2>"$work/err"
}

# The run of the plan is compared, over the link that --link emulates; another link is measured.
run "$work/own.json" 1,2,3,4,5,6,7 --link=$slow
# shellcheck disable=SC2086
against "$work/own.json" $sized --link=$slow || fail "a run of the plan is refused: $(cat "$work/err")"
grep -q '^  measured .* of a run: the prediction is' "$work/report.txt" || fail "the run is not compared"
run "$work/stats.json" 1,2,3,4,5,6,7 --stats
grep -q '"measured": true' "$work/stats.json" || fail '--stats measures no link'

wrong() { # wrong TEXT RUN [option ...]
  text=$1
  shift
  against "$@" && fail "$text: it was not refused"
  grep -q -- "$text" "$work/err" || fail "wanted '$text': $(head -n 3 "$work/err")"
}
# shellcheck disable=SC2086
{
  wrong 'planned.placement: the run is of another plan: its operators' "$work/own.json" $sized --link=$slow --cut=2
  wrong 'planned.placement: the run is of another plan' "$work/own.json" $sized --link=$slow --dtype-cloud=f16
  wrong "planned.cloud: the run is of another plan: its cloud is 'v100s-p1', that of this plan is 'a100-p1'" "$work/own.json" $sized --link=$slow --cloud=a100-p1
  wrong "prompt_tokens: the run's prompt has 7 tokens, the plan is for 9: --isl=7" "$work/own.json" $sized --link=$slow --isl=9
  wrong "batch: the run's batch has 1 sequences, the plan is for 2: --batch=1" "$work/own.json" $sized --link=$slow --batch=2
  wrong "link.rtt_ms: the run was over another link: its 'rtt_ms' is 20 ms, the plan's 4 ms" "$work/own.json" $sized --link=wifi
  wrong "link.up_bps: the run was over another link: its 'up_bps' is 2 Mbit/s, the plan's 4 Mbit/s" "$work/own.json" $sized --link=rtt=20ms,up=4Mbit/s,down=10Mbit/s
}
against "$work/own.json" $sized --link=$slow --osl=20 || fail "another number of tokens: $(cat "$work/err")"
grep -q 'warning: the run generated 6 tokens, the plan is for 20: --osl=6' "$work/err" || fail "the tokens are not warned of: $(cat "$work/err")"
run "$work/inside.json" 1,2,3,4,5,6,7 --in-process
run "$work/near.json" 1,2,3,4,5,6,7
# shellcheck disable=SC2086
{
  wrong 'link.kind: the run was over no link' "$work/inside.json" $sized --link=$slow
  wrong "link.kind: the run was over another link: 'loopback'" "$work/near.json" $sized --link=$slow
}

# --stats: a prompt and a link that the bundle is not for. The cut's row of 36 floats crosses for each token, and 40 of
# them for the prompt; the same plan for 40 tokens predicts the same link time.
predicted() { sed -n 's/^predicted for \(.*\)$/\1/p' "$work/err"; }
run "$work/json" "$long" --stats --in-process
predicted | grep -Eq '^40 and 6 tokens: TTFT [0-9.]+ [mu]?s; TPOT' || fail "in one process: $(cat "$work/err")"
inside=$(predicted)
# shellcheck disable=SC2086
compile "$model" "$work/forty.llmpart" $plan --isl=40 --osl=6 --link=lan || finish
mv "$work/one.llmpart" "$work/seven.llmpart"
mv "$work/forty.llmpart" "$work/one.llmpart"
run "$work/json" "$long" --stats --in-process
close() { # close WHAT A B: the figures of two predictions, within 2 %
  printf '%s\n%s\n' "$2" "$3" | sed 's/[^0-9.]/ /g' | awk -v what="$1" '
    NR == 1 { n = NF; for (i = 1; i <= NF; i++) a[i] = $i }
    NR == 2 { for (i = 1; i <= n; i++) if (a[i] > 1.02 * $i || a[i] < 0.98 * $i) bad = 1; exit bad || NF != n }' || fail "$1: '$2' and '$3'"
}
close 'the plan for 7 tokens predicts 40 as the plan for 40 does' "$inside" "$(predicted)"
run "$work/json" "$long" --stats --link=$slow
link=$(predicted | sed -n 's/.*: TTFT .* (link \([0-9.]*\) ms); .*/\1/p')
awk -v ms="$link" 'BEGIN { exit !(ms > 42.9 && ms < 43.2) }' || fail "40 rows over 2 Mbit/s and 20 ms take 43 ms, not '$link': $(cat "$work/err")"
finish
