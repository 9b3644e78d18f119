# Every relative link in the documents leads to a file, and every path in backquotes with a slash and an ending exists.
# docs/architecture.md lists every decision of docs/adr/.
set -eu
cd "$LP_SOURCE"
broken=$(
  find README.md docs examples -name '*.md' ! -path '*/build/*' | sort | while read -r page; do
    folder=$(dirname "$page")
    grep -o '](\([^)#]*\)' "$page" | sed 's/](//' | sort -u | while read -r target; do
      case $target in '' | http*://* | mailto:*) continue ;; esac
      [ -e "$folder/$target" ] || echo "$page: the link to '$target' leads nowhere"
    done
    grep -o '`[a-z_]*/[A-Za-z0-9_/.-]*\.[a-z]*`' "$page" | tr -d '`' | sort -u | while read -r path; do
      case $path in *NAME* | build/* | device/* | cloud/* | my/*) continue ;; esac # made by commands, not in the tree
      [ -e "$path" ] || [ -e "$folder/$path" ] || echo "$page: there is no '$path'"
    done
  done
  for adr in docs/adr/*.md; do
    grep -qF "](adr/$(basename "$adr"))" docs/architecture.md || echo "docs/architecture.md does not list '$adr'"
  done
)
[ -z "$broken" ] || { echo "$broken"; exit 1; }
