# The study of P2 runs from one command, small: every strategy on two links, exact and the incremental split with the
# full model's tokens (the study stops if not), and the figures. tests/docs/tables.sh compares the tables of its page.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v python3 >/dev/null || skip 'there is no python3'
python3 "$LP_SOURCE/examples/cloud-edge/study.py" --llmpart "$LLMPART" --out "$work/study" --tokens 10 --prompts 1 --links wifi,narrow \
  >"$work/out" 2>"$work/err" || fail "it failed: $(tail -n 3 "$work/err")"
tables=$work/study/tables.md
for strategy in cloud-only naive incremental standalone 'theta 0.5' 'theta 0.95' exact; do
  same "rows of $strategy" 2 "$(grep -c "^| $strategy | [0-9.]* |" "$tables")"
done
same 'standalone sends nothing' 2 "$(grep -c '^| standalone .* | 0.0 | 0.0 | 0.0 % ' "$tables")"
same 'exact is the full model' 2 "$(grep -c '^| exact .* | 100.00 % | run |' "$tables")"
for figure in default-seconds default-theta; do
  grep -q '^</svg>' "$work/study/$figure.svg" || fail "there is no whole $figure.svg"
done
# Tables I and II, small: all strategies of both kinds of prompts, and exact with the full model's tokens, or it stops.
python3 "$LP_SOURCE/examples/cloud-edge/hundred.py" --llmpart "$LLMPART" --out "$work/hundred" --prompts 1 --tokens 8 >"$work/out" 2>"$work/err" ||
  fail "the tables failed: $(tail -n 3 "$work/err")"
for strategy in cloud-only incremental standalone 'theta 0.8' 'theta 0.9' exact; do
  same "rows of $strategy" 3 "$(grep -c "^| $strategy | " "$work/hundred/hundred.md")"
done
same 'standalone asks nobody' 2 "$(grep -c '^| standalone .*| 0.0 | 0.0 ± 0.0 | ' "$work/hundred/hundred.md")"
for figure in hundred-seconds hundred-confidence; do
  grep -q '^</svg>' "$work/hundred/$figure.svg" || fail "there is no whole $figure.svg"
done
finish
