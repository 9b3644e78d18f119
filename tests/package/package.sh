# The packages of tools/package.sh: lintian accepts them, their programs are hardened, and they install and work in a
# clean Debian 12 (debootstrap). There the command compiles and runs a model, its manual and completions are in place,
# and a C program is built against the library.
. "$LP_SOURCE/tests/e2e/lib.sh"
[ "$(id -u)" = 0 ] || skip 'debootstrap needs root'
for program in debootstrap lintian; do command -v "$program" >/dev/null || skip "the Debian package '$program' is not installed"; done
sh "$LP_SOURCE/tools/package.sh" "$work/packages" >"$work/out" 2>&1 || { fail "tools/package.sh: $(tail -n 5 "$work/out")"; finish; }
same 'the packages' 3 "$(find "$work/packages" -name '*.deb' | wc -l)"
lintian --fail-on error,warning "$work"/packages/*.deb >"$work/out" 2>&1 || fail "lintian: $(cat "$work/out")"
for package in "$work"/packages/*.deb; do dpkg-deb -x "$package" "$work/files" || fail "dpkg-deb $package"; done
sh "$LP_SOURCE/tests/tools/hardening.sh" "$work/files/usr/bin/llmpart" "$work/files/usr/lib/$(cc -print-multiarch)/libllmpart-runtime.so.1" >"$work/out" ||
  fail "not hardened: $(cat "$work/out")"

root=$work/root
# The packages come from where this machine gets its own.
mirror=$(sed -n 's/^URIs: *//p; s/^deb \([^ ]*\) .*/\1/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
debootstrap --variant=minbase bookworm "$root" "${mirror:-http://deb.debian.org/debian}" >"$work/out" 2>&1 ||
  skip "debootstrap cannot load a Debian: $(tail -n 1 "$work/out")"
inside() { chroot "$root" env -u LLMPART_HOST DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
cp /etc/resolv.conf "$root/etc/" 2>/dev/null
cp -r "$work/packages" "$root/packages"
mount -t proc proc "$root/proc" || skip 'proc cannot be mounted'
trap 'umount "$root/proc"; clean_up' EXIT
{ inside apt-get update -qq && inside sh -c 'apt-get install -y -qq --no-install-recommends /packages/*.deb man-db gcc libc6-dev pkg-config'; } \
  >"$work/out" 2>&1 || { fail "apt-get install: $(tail -n 5 "$work/out")"; finish; }

cp "$LP_SOURCE/examples/default-model/model.onnx" "$LP_SOURCE/examples/default-model/tokenizer.json" "$LP_SOURCE/examples/embed/embed.c" "$root/root/"
inside llmpart compile /root/model.onnx --device=host --cloud=host --link=wifi --cut=4 -o /root/m.llmpart >"$work/out" 2>&1 ||
  fail "compile: $(cat "$work/out")"
want=$("$LLMPART" compile "$LP_SOURCE/examples/default-model/model.onnx" --device=host --march=native -o "$work/m.llmpart" 2>/dev/null &&
  "$LLMPART" run "$work/m.llmpart" --prompt='Once upon a time' -n 24)
same 'the text of two sides' "$want" "$(inside llmpart run /root/m.llmpart --prompt='Once upon a time' -n 24)"
inside sh -c 'cc -Wall -Werror /root/embed.c -o /root/embed $(pkg-config --cflags --libs llmpart-runtime)' || fail 'embed.c is not built'
inside /root/embed /root/m.llmpart 'Once upon a time' >"$work/out" 2>"$work/err" || fail "embed: $(cat "$work/err")"
case $(cat "$work/out") in "$want"*) ;; *) fail "embed: $(cat "$work/out")" ;; esac
inside man llmpart-compile 2>/dev/null | grep -q -e '--device=HW' || inside zcat /usr/share/man/man1/llmpart-compile.1.gz >/dev/null || fail 'no manual'
inside llmpart simulate --help | grep -q usage || fail 'simulate'
inside llmpart route --keywords=code --pool=/root/pool.db >"$work/out" 2>&1 || fail "the embedded router: $(cat "$work/out")"
same 'completions' 'worker' "$(inside bash -c '. /usr/share/bash-completion/completions/llmpart; COMP_WORDS=(llmpart wor); COMP_CWORD=1; _llmpart; echo "${COMPREPLY[@]}"')"
inside apt-get remove -y -qq llmpart libllmpart-runtime1 >/dev/null 2>&1 || fail 'the packages cannot be removed'
finish
