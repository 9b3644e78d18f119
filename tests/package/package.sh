# The packages of tools/package.sh: lintian accepts them, their programs are hardened, and they install and work in a
# clean Debian 12 (debootstrap). There the command compiles and runs a model, its manual and completions are in place,
# a C program is built against the library, and Python generates. In the soak the image of examples/container is built
# and serves, and when the packages are gone, the wheel does the same without any library of theirs.
. "$LP_SOURCE/tests/e2e/lib.sh"
[ "$(id -u)" = 0 ] || skip 'debootstrap needs root'
for program in debootstrap lintian; do command -v "$program" >/dev/null || skip "the Debian package '$program' is not installed"; done
sh "$LP_SOURCE/tools/package.sh" "$work/packages" >"$work/out" 2>&1 || { fail "tools/package.sh: $(tail -n 5 "$work/out")"; finish; }
same 'the packages' 4 "$(find "$work/packages" -name '*.deb' | wc -l)"
lintian --fail-on error,warning "$work"/packages/*.deb >"$work/out" 2>&1 || fail "lintian: $(cat "$work/out")"
for package in "$work"/packages/*.deb; do dpkg-deb -x "$package" "$work/files" || fail "dpkg-deb $package"; done
sh "$LP_SOURCE/tests/tools/hardening.sh" "$work/files/usr/bin/llmpart" "$work/files/usr/lib/$(cc -print-multiarch)/libllmpart-runtime.so.1" >"$work/out" ||
  fail "not hardened: $(cat "$work/out")"

clean=$work/clean root=$work/root
# The packages come from where this machine gets its own.
mirror=$(sed -n 's/^URIs: *//p; s/^deb \([^ ]*\) .*/\1/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
debootstrap --variant=minbase bookworm "$clean" "${mirror:-http://deb.debian.org/debian}" >"$work/out" 2>&1 ||
  skip "debootstrap cannot load a Debian: $(tail -n 1 "$work/out")"
inside() { chroot "$root" env -u LLMPART_HOST -u LLMPART DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
cp /etc/resolv.conf "$clean/etc/" 2>/dev/null
cp -a "$clean" "$root"
cp -r "$work/packages" "$root/packages"
containers="" # process groups: buildah leaves what it runs when it ends
contained() { # contained OPTION ...: runs a program that listens in a container; sets $worker and $address
  setsid buildah --root="$work/images" --runroot="$work/run" --storage-driver=vfs run --isolation=chroot "$@" 2>"$work/listening" &
  worker=$!
  containers="$containers -$worker"
  await listens_or_ended
}
end_containers() {
  # shellcheck disable=SC2086 # a list of numbers
  [ -z "$containers" ] || kill -- $containers 2>/dev/null
  containers=""
}

mount -t proc proc "$root/proc" || skip 'proc cannot be mounted'
trap 'end_containers; umount "$root/proc" "$root/dev/pts" 2>/dev/null; clean_up' EXIT
mount -t devpts devpts "$root/dev/pts" || skip 'devpts cannot be mounted'
{ inside apt-get update -qq && inside sh -c 'apt-get install -y -qq --no-install-recommends /packages/*.deb man-db gcc libc6-dev pkg-config fish zsh'; } \
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
python='import llmpart; print(llmpart.Bundle("/root/m.llmpart").generate("Once upon a time", n=24).text())'
same 'the text of python3-llmpart' "$want" "$(inside python3 -c "$python" 2>&1)"
for page in "$root"/usr/share/man/man1/llmpart*.gz; do
  inside man --warnings -l "/usr/share/man/man1/$(basename "$page")" >/dev/null 2>"$work/err"
  [ ! -s "$work/err" ] || fail "$(basename "$page"): $(head -n 1 "$work/err")"
done
inside man llmpart-compile 2>/dev/null | grep -q -e '--device=HW' || inside zcat /usr/share/man/man1/llmpart-compile.1.gz >/dev/null || fail 'no manual'
inside llmpart simulate --help | grep -q usage || fail 'simulate'
inside llmpart route --keywords=code --pool=/root/pool.db >"$work/out" 2>&1 || fail "the embedded router: $(cat "$work/out")"

# Completion: a subcommand, an option, and a word of a choice.
bash_completes() { inside bash -c '. /usr/share/bash-completion/completions/llmpart; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _llmpart 2>/dev/null; echo ${COMPREPLY[@]}' bash "$@"; }
same 'bash' 'worker' "$(bash_completes llmpart wor)"
same 'bash, help' 'worker' "$(bash_completes llmpart help wor)"
same 'bash, an option' '--device-memory=' "$(bash_completes llmpart compile --device-m)"
same 'bash, a word' 'bundle' "$(bash_completes llmpart compile --emit = bun)"
fish_completes() { inside fish -c 'complete -C $argv[1]' "$1" | cut -f 1 | paste -sd ' '; }
same 'fish' 'worker' "$(fish_completes 'llmpart wor')"
same 'fish, help' 'worker' "$(fish_completes 'llmpart help wor')"
same 'fish, an option' '--device-memory=' "$(fish_completes 'llmpart compile --device-m')"
same 'fish, a word' '--emit=bundle' "$(fish_completes 'llmpart compile --emit=bun')"
cat >"$root/root/complete.zsh" <<'END'
# Types $1 and a tab into another zsh, and prints the line that it then has.
zmodload zsh/zpty
zpty shell 'TERM=dumb zsh -f -i'
zpty -w shell 'PS1=; autoload -U compinit; compinit -u -d /tmp/dump; show() { print -r -- "<$BUFFER>"; BUFFER=; }; zle -N show; bindkey ^X show; print re''ady'
zpty -r shell line '*ready*'
zpty -w -n shell "$1"$'\t\C-x'
zpty -r shell line '*<*>*'
print -r -- ${${line##*<}%%>*}
END
zsh_completes() { inside timeout 60 zsh -f /root/complete.zsh "$1" | tr -d '\r'; }
same 'zsh' 'llmpart worker ' "$(zsh_completes 'llmpart wor')"
same 'zsh, an option' 'llmpart compile --device-memory=' "$(zsh_completes 'llmpart compile --device-m')"
same 'zsh, a word' 'llmpart compile --emit=bundle ' "$(zsh_completes 'llmpart compile --emit=bun')"
part soak || finish

# The image, from the clean Debian as its base.
container() {
  command -v buildah >/dev/null || { echo "$name: skipped: the image, because the Debian package 'buildah' is not installed"; return; }
  image() { buildah --root="$work/images" --runroot="$work/run" --storage-driver=vfs "$@"; }
  base=$(image from scratch) && image add -q "$base" "$clean" / >/dev/null && image commit -q "$base" docker.io/library/debian:bookworm-slim >/dev/null ||
    { fail 'buildah makes no base image'; return; }
  mkdir "$work/context" && cp -r "$work/packages" "$work/context/" || return
  image bud -q --isolation=chroot --pull-never -t llmpart -f "$LP_SOURCE/examples/container/Containerfile" "$work/context" >"$work/out" 2>&1 ||
    { fail "buildah bud: $(tail -n 5 "$work/out")"; return; }
  ready=$(image from --pull-never localhost/llmpart)
  same 'the entry point' '[llmpart]' "$(image inspect --format '{{.OCIv1.Config.Entrypoint}}' "$ready")"
  chmod -R go+rX "$root/root/m.llmpart"
  contained -v "$root/root/m.llmpart:/bundle:ro" "$ready" -- llmpart worker /bundle --listen=127.0.0.1:0
  same 'the text with a worker in a container' "$want" "$(inside llmpart run /root/m.llmpart --cloud="$address" --prompt='Once upon a time' -n 24 2>&1)"
  echo '{ listen: "127.0.0.1:0", edge: { bundle: /bundle, threads: 1 } }' >"$work/serve.yaml"
  contained -v "$root/root/m.llmpart:/bundle:ro" -v "$work/serve.yaml:/serve.yaml:ro" "$ready" -- llmpart serve /serve.yaml
  curl -sS -H 'Content-Type: application/json' -d '{"model": "edge", "prompt": "Once upon a time", "max_tokens": 24, "temperature": 0}' "http://${address#http://}/v1/completions" \
    >"$work/out" 2>&1
  grep -Fq "$(echo "$want" | cut -c 1-40)" "$work/out" || fail "the server in a container: $(cat "$work/listening" "$work/out")"
}
container
end_containers

# The wheel: the packages and the libraries that only they need are removed first.
inside sh -c 'apt-get remove -y -qq llmpart libllmpart-runtime1 libllmpart-runtime-dev python3-llmpart && apt-get autoremove -y -qq' >"$work/out" 2>&1 ||
  fail "the packages cannot be removed: $(tail -n 3 "$work/out")"
sh "$LP_SOURCE/tools/package.sh" --wheel "$root/wheels" >"$work/out" 2>&1 &&
  "$LP_SOURCE/build/venv-wheel/bin/pip" download -q -d "$root/wheels" cffi >"$work/out" 2>&1 ||
  skip "the wheel, because PyPI does not answer: $(tail -n 1 "$work/out")"
case $(ls "$root/wheels") in *llmpart-*-py3-none-manylinux_*) ;; *) fail "the wheel's name: $(ls "$root/wheels")" ;; esac
[ "$(cat "$root"/wheels/llmpart-*.whl | wc -c)" -le 50000000 ] || fail "the wheel has more than 50 MB: $(ls -l "$root/wheels")"
inside sh -c 'apt-get install -y -qq --no-install-recommends python3-venv && python3 -m venv /venv && /venv/bin/pip install -q --no-index --find-links=/wheels llmpart' \
  >"$work/out" 2>&1 || { fail "pip install: $(tail -n 5 "$work/out")"; finish; }
! inside sh -c 'command -v ld.lld-19 || ls /usr/lib/*/libLLVM*' >/dev/null 2>&1 || fail 'this Debian still has LLVM'
inside sh -c 'grep -q "^==== libgsl27" /venv/lib/python3*/site-packages/llmpart/NOTICES.txt' || fail 'the wheel has no notices'
inside /venv/bin/llmpart compile /root/model.onnx --device=host --cloud=host --link=wifi --cut=4 -o /root/m.llmpart >"$work/out" 2>&1 ||
  fail "compile by the wheel: $(cat "$work/out")"
same 'the text of the wheel' "$want" "$(inside /venv/bin/llmpart run /root/m.llmpart --prompt='Once upon a time' -n 24 2>&1)"
same 'the text of its package' "$want" "$(inside /venv/bin/python -c "$python" 2>&1)"
inside /venv/bin/python -c 'import llmpart; print(llmpart.compile("/root/model.onnx", device="host", O=0, out="/root/p.llmpart").plan)' >"$work/out" 2>&1 ||
  fail "llmpart.compile of the wheel: $(tail -n 3 "$work/out")"
inside /venv/bin/llmpart route --keywords=code --pool=/root/pool2.db >"$work/out" 2>&1 || fail "the wheel's router: $(cat "$work/out")"
finish
