# The embedded model decides tasks with words that its training never contained: it learns them only from the pool.
. "$LP_SOURCE/tests/e2e/lib.sh"
if ! "$LLMPART" route --keywords=a --model=embedded --epsilon=0 >"$work/out" 2>&1; then
  echo "skipped: no embedded model was built: $(cat "$work/out")"
  exit 77
fi

# told WORDS ROUTE REWARD: what came of it.
decisions=0
told() {
  decisions=$((decisions + 1))
  "$LLMPART" route --pool="$work/pool.db" --model=lookup --keywords="$1" --offer="$2" >"$work/out" || fail "told $1"
  "$LLMPART" route --pool="$work/pool.db" --outcome=$decisions --reward="$3" >"$work/out" || fail "outcome of $1"
}
# decides WORDS ROUTE
decides() {
  decisions=$((decisions + 1))
  same "$1" "$2" "$("$LLMPART" route --pool="$work/pool.db" --model=embedded --keywords="$1" --epsilon=0 | head -n 1 | cut -d' ' -f1)"
}

# Each kind of request on its own.
for kind in zorb glim plonk; do told "$kind" edge -4; told "$kind" cloud -9; done
for kind in quux frotz; do told "$kind" edge -12; told "$kind" cloud -6; done
for kind in zorb glim plonk; do decides "$kind" edge; done
for kind in quux frotz; do decides "$kind" cloud; done
# What changed is learned again, from the pool's means.
for _ in 1 2 3 4 5 6; do told zorb edge -15; done
decides zorb cloud
decides glim edge
finish
