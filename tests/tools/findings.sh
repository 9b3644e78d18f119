# tools/findings.awk: findings of analyzers beside those that are known to be none.
. "$LP_SOURCE/tests/e2e/lib.sh"
mkdir "$work/src"
printf 'int f(int *p) {\n  return *p;\n}\nint g(int n) {\n\treturn 1 / n; \n}\n' >"$work/src/a.c"
printf '# the caller has checked it\nsrc/a.c | analyzer-null-dereference | return *p;\n' >"$work/known"
compare() { # compare STATUS REPORT
  status=0
  printf '%s\n' "$2" | awk -v root="$work/" -v known="$work/known" -f "$LP_SOURCE/tools/findings.awk" >"$work/out" || status=$?
  same "status for $2" "$1" "$status"
}
said() { same "$1" "$2" "$(cat "$work/out")"; }
null="$work/src/a.c:2:10: error: dereference of NULL 'p' [CWE-476] [-Werror=analyzer-null-dereference]"
division="$work/src/a.c:5:11: warning: Division by zero [clang-analyzer-core.DivideZero,-warnings-as-errors]"

compare 0 "In function 'f':
$null
$null
    2 |   return *p;"
said 'a known finding' ''
compare 0 ''
said 'no finding' ''
compare 1 "$null
$division"
said 'a new finding' "$division
  src/a.c | clang-analyzer-core.DivideZero | return 1 / n;"
compare 1 "$work/src/a.c:2:10: fatal error: x.h: No such file or directory"
said 'an error of the compiler' "$work/src/a.c:2:10: fatal error: x.h: No such file or directory
  src/a.c | none | return *p;
$work/known: not found any more: src/a.c | analyzer-null-dereference | return *p;"
# The list's line is stale once its source line has another text, or another finding.
printf 'src/a.c | clang-analyzer-core.DivideZero | return 2 / n;\n' >>"$work/known"
compare 0 "$null"
said 'a stale line' "$work/known: not found any more: src/a.c | clang-analyzer-core.DivideZero | return 2 / n;"
finish
