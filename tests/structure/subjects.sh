# Subjects of commits are "folder: imperative" in at most 72 characters: those of the commits after the one that added
# this test.
set -u
bad() { # bad: of the lines HASH SUBJECT on stdin, those whose subject is none
  awk '{ subject = substr($0, index($0, " ") + 1) } length(subject) > 72 || subject !~ /^[^ ].*: [^ ]/'
}
# First the check proves that it finds both faults and lets the rest pass.
long=$(printf '%066d' 0)
found=$(printf '1 base: %s\n2 tests: %s\n3 no folder\n' "$long" "$long" | bad | cut -d ' ' -f 1 | tr '\n' ' ')
[ "$found" = '2 3 ' ] || { echo "the check finds '$found' of its own faults"; exit 1; }

cd "$LP_SOURCE" || exit 1
first=$(git log --diff-filter=A --format=%H -- tests/structure/subjects.sh 2>/dev/null | tail -n 1)
[ -n "$first" ] || { echo 'skipped: no history of commits is here'; exit 77; }
found=$(git log --no-merges --format='%h %s' "$first..HEAD" | bad)
[ -z "$found" ] || { printf 'subjects that are longer than 72 characters, or not "folder: imperative":\n%s\n' "$found"; exit 1; }
