# Every option of llmpart that a page or example names exists: in each line of a code block, or code between backquotes,
# that begins with `llmpart SUBCOMMAND`, each word that begins with `-` is looked up in the subcommand's --help. So
# blocks that no test runs (they need a GPU, two machines or minutes) name no invented option either. options.sh
# [PAGE.md]: of this page only.
set -eu
: "${LP_SOURCE:?is set by ctest}" "${LLMPART:?is set by ctest}"
cd "$LP_SOURCE"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$LLMPART" help --words >"$work/subcommands"
[ -s "$work/subcommands" ] || { echo "llmpart help --words lists no subcommands"; exit 1; }
while read -r name; do "$LLMPART" "$name" --help | tr -c 'A-Za-z0-9_-' '\n' | grep '^-' | sort -u >"$work/help-$name"; done <"$work/subcommands"
# The example in each subcommand's own help is held to the same rule.
{
  echo '```'
  while read -r name; do "$LLMPART" help "$name" | sed -n '/^example:/,/^$/p' | grep "^  llmpart $name" || echo "llmpart $name --no-example"; done <"$work/subcommands"
  echo '```'
} >"$work/help.md"

# Prints "PAGE:LINE SUBCOMMAND OPTION..." for every command. Lines that end with a backslash are joined; a command ends
# at a comment, pipe or redirection. Quoted text holds no options.
[ $# != 0 ] || set -- README.md CONTRIBUTING.md docs examples
{
  find "$@" -name '*.md' ! -path '*/build/*' | sort
  echo "$work/help.md"
} | xargs awk '
  function command(text, words, count, i, line) {
    if (text ~ /^(sh|env|python3?) /) return # LLMPART=.../llmpart sh script.sh
    gsub(/"[^"]*"|'\''[^'\'']*'\''/, "X", text)
    sub(/[ \t]#.*/, "", text)
    sub(/[|>&;].*/, "", text)
    count = split(text, words, /[ \t]+/)
    line = FILENAME ":" FNR " " words[1]
    for (i = 2; i <= count; i++) if (words[i] ~ /^--?[A-Za-z]/) { sub(/=.*/, "", words[i]); line = line " " words[i] }
    print line
  }
  FNR == 1 { inside = 0; joined = "" }
  /^```/ { inside = !inside; next }
  {
    text = joined $0; joined = ""
    if (inside && text ~ /\\$/) { joined = substr(text, 1, length(text) - 1); next }
    if (inside) { if (match(text, /(^|[ \/])(llmpart|\$L) [a-z]/)) command(substr(text, RSTART + RLENGTH - 1)) }
    else while (match(text, /`llmpart [a-z][^`]*`/)) { command(substr(text, RSTART + 9, RLENGTH - 10)); text = substr(text, RSTART + RLENGTH) }
  }' >"$work/commands"
[ -s "$work/commands" ] || { echo "no commands were found in the pages"; exit 1; }
failures=0
while read -r place subcommand options; do
  if ! grep -qx -- "$subcommand" "$work/subcommands"; then
    echo "$place: llmpart has no subcommand '$subcommand'"
    failures=$((failures + 1))
    continue
  fi
  for option in $options; do
    grep -qx -- "$option" "$work/help-$subcommand" && continue
    echo "$place: llmpart $subcommand has no option '$option'"
    failures=$((failures + 1))
  done
done <"$work/commands"
[ "$failures" = 0 ] || exit 1
