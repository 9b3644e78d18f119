# Functions of the tests of GPU halves; they set $model and $lists.
. "$LP_SOURCE/tests/e2e/lib.sh"

split() { # split OUT CUT [option ...]
  to=$1 cut=$2
  shift 2
  # shellcheck disable=SC2086 # a list of options
  compile "$model" "$work/$to.llmpart" $pair --scheduler=cut --cut="$cut" "$@"
}

check() { # check BUNDLE PROMPT COUNT [option ...]
  bundle_name=$1 prompt=$2 count=$3
  shift 3
  want=$(row "$lists" tokens "$prompt" | cut -d , -f "-$count")
  same "$bundle_name, prompt $prompt $*" "$want" "$(tokens "$work/$bundle_name.llmpart" "$(row "$lists" prompts "$prompt")" "$count" "$@")"
}
