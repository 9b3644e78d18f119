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

amend() { # amend BUNDLE FILE SED: changes a file of the bundle, and its sum and the seal in the manifest
  old=$(sha256sum "$1/$2" | cut -d ' ' -f 1)
  sed -i "$3" "$1/$2"
  new=$(sha256sum "$1/$2" | cut -d ' ' -f 1)
  [ "$old" != "$new" ] || fail "$2: nothing was changed by $3"
  bytes=$(wc -c <"$1/$2")
  awk -v old="$old" -v new="$new" -v bytes="$bytes" '$0 ~ old { sub(old, new); ours = 1 }
    ours && /"crc32c"/ { next }
    ours && /"bytes"/ { sub(/[0-9]+/, bytes); ours = 0 } { print }' "$1/manifest.json" >"$work/manifest"
  mv "$work/manifest" "$1/manifest.json"
  seal "$1"
}
