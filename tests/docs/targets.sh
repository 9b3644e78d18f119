# The first table of docs/targets.md has each machine of `llmpart hw list` once, with its target, and no other machine.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$LLMPART" hw list >"$work/list"
awk 'NR > 1 { print $1 }' "$work/list" | sort >"$work/names"
sed -n '/^## /q; s/^| \([a-z][^|]*\) | \([^|]*\) |.*/\1|\2/p' "$LP_SOURCE/docs/targets.md" | grep -v '^machines|' |
  awk -F '|' '{ count = split($1, name, ", "); for (i = 1; i <= count; i++) print name[i] "|" $2 }' >"$work/rows"
cut -d '|' -f 1 "$work/rows" | sort >"$work/there"
status=0
diff "$work/names" "$work/there" >"$work/said" || { echo "docs/targets.md (>) has other machines than hw list (<): $(grep '^[<>]' "$work/said" | tr '\n' ' ')"; status=1; }
while IFS='|' read -r name target; do
  grep -q "^$name .* $target  *[A-Z]" "$work/list" || grep -q "^$name .* $target  *this machine" "$work/list" ||
    { echo "docs/targets.md: '$target' is not the target of $name"; status=1; }
done <"$work/rows"
exit $status
