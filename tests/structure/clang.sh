# Clang finds no warning in the C files of the build, and does find one that is there.
set -eu
python3 tests/structure/clang.py "$LP_BUILD"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf 'enum { MANY = 3 };\nint below(double x);\nint below(double x) { return x < MANY; }\n' > "$folder/mixed.c"
printf '[{"directory": "%s", "file": "%s/mixed.c", "command": "cc -Wall -Wconversion -c %s/mixed.c -o mixed.o"}]' "$folder" "$folder" "$folder" \
  > "$folder/compile_commands.json"
if python3 tests/structure/clang.py "$folder" 2> "$folder/found"; then
  echo "clang.py does not see a warning" >&2
  exit 1
fi
grep -q 'mixed.c:3' "$folder/found"
