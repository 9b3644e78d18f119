# The targets of references in documents exist: relative links and their anchors; paths in backquotes with a slash,
# whether of a file or of a folder; files of this project that are named without their folder; scripts that code blocks
# run. docs/architecture.md lists every decision of docs/adr/.
set -eu
cd "$LP_SOURCE"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find . -path ./build -prune -o -path ./.git -prune -o -type f -print | sed 's|^\./||' >"$work/files"
sed 's|.*/||' "$work/files" | sort -u >"$work/names"

anchors() { # anchors PAGE: the anchors of its headings, as GitHub makes them
  sed -n '/^```/,/^```/d; s/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}
check_link() { # check_link PAGE TARGET
  case $2 in http*://* | mailto:* | '') return ;; esac
  file=${2%%#*}
  [ -z "$file" ] && file=$1 || file=$(dirname "$1")/$file
  [ -e "$file" ] || { echo "$1: the link to '$2' leads nowhere"; return; }
  case $2 in
  *.md\#* | \#*) anchors "$file" | grep -qxF -- "${2#*#}" || echo "$1: '$2' has no such heading" ;;
  esac
}
made="NAME|^req/rep$|^(build|device|cloud|my|gpu-pack|blobs|UNIX|lib/llmpart)/|^(lib|model|weights|manifest|launches|kernels|cloud|device|tokenizer|calibration|report|plan)[.]" # not in the tree
check_path() { # check_path PAGE PATH
  ! echo "$2" | grep -qE "$made" || return 0
  # The name of a folder in another.
  case $2 in */*/* | */[!/]*) ;; *) ! grep -qE "(^|/)$2" "$work/files" || return 0 ;; esac
  [ -e "$2" ] || [ -e "$(dirname "$1")/$2" ] || echo "$1: there is no '$2'"
}
check_name() { # check_name PAGE NAME: a source file, named without its folder
  grep -qxF -- "$2" "$work/names" || echo "$1: no file is called '$2'"
}

find README.md CONTRIBUTING.md docs examples tests/README.md -name '*.md' ! -path '*/build/*' | sort | while read -r page; do
  grep -o '](\([^)]*\)' "$page" | sed 's/](//' | sort -u | while read -r target; do check_link "$page" "$target"; done
  sed '/^```/,/^```/d' "$page" | grep -oE '`[a-z_]+/[A-Za-z0-9_/.-]*`' | tr -d '`' | sort -u | while read -r path; do check_path "$page" "$path"; done
  sed '/^```/,/^```/d' "$page" | grep -oE '`[a-z_0-9]+\.(c|h|def|py|sh|proto|awk)`' | tr -d '`' | sort -u | while read -r name; do check_name "$page" "$name"; done
  sed -n '/^```/,/^```/p' "$page" | grep -oE '(^|[ =])(tests|tools|examples|hwmodels|docs)/[a-z_/-]+\.(py|sh|yaml|onnx|txt)' | tr -d ' =' | sort -u |
    while read -r path; do check_path "$page" "$path"; done
done >"$work/broken"
for adr in docs/adr/*.md; do
  grep -qF "](adr/$(basename "$adr"))" docs/architecture.md || echo "docs/architecture.md does not list '$adr'"
done >>"$work/broken"
[ ! -s "$work/broken" ] || { cat "$work/broken"; exit 1; }
