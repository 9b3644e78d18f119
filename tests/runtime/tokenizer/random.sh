# Random tokenizers, and random patterns in them, give the ids of PyPI's tokenizers: 60 for 100 texts each, in the long
# part 850 for 200.
. "$LP_SOURCE/tests/e2e/lib.sh"
python=${LP_PYTHON:-python3}
"$python" -c 'import tokenizers' 2>/dev/null || skip "$python lacks tokenizers (LP_PYTHON)"
here=$LP_SOURCE/tests/runtime/tokenizer
compares() { # compares COUNT TEXTS SEED
  PYTHONDONTWRITEBYTECODE=1 "$python" "$here/random_tokenizers.py" --driver="$LP_BUILD/tests/runtime/tokenizer/tokenize" \
    --count="$1" --texts="$2" --seed="$3" >"$work/found" 2>"$work/panics" || fail "$(tail -n 20 "$work/found")"
}
if part quick; then compares 60 100 1; fi
if part long; then compares 850 200 2; fi
finish
