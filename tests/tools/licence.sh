# What links GSL, which is under the GPL, says so; the runtime library, which other programs load, links no such thing.
. "$LP_SOURCE/tests/e2e/lib.sh"
export LC_ALL=C
command -v readelf >/dev/null || skip "readelf is not installed"
library=$LP_BUILD/runtime/library/libllmpart-runtime.so
needs() { readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
needs "$LLMPART" | grep -q '^libgsl\.so' || fail 'the command does not link GSL, so its version should not name the GPL'
case $("$LLMPART" --version) in *'GPL-3.0-or-later'*) ;; *) fail 'the version does not name the licence of the whole' ;; esac
[ -n "$(needs "$library")" ] || fail "$library needs no library"
! needs "$library" | grep -E 'gsl|LLVM|pq' || fail "$library needs a library that it should not"
# Started by every command: what few need is loaded by those.
! needs "$LLMPART" | grep -E 'LLVM|libpq|libcurl|microhttpd|z3|icu' || fail 'the command needs a library that few commands use'
finish
