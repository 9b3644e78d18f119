# Release builds are hardened (cmake/lp_hardening.cmake): readelf finds it in the programs and libraries that are named,
# or in the command and the library of this build.
. "$LP_SOURCE/tests/e2e/lib.sh"
export LC_ALL=C
command -v readelf >/dev/null || skip "readelf is not installed"

# lacks FILE: what FILE lacks, a word each.
lacks() {
  dynamic=$(readelf -dW "$1") segments=$(readelf -lW "$1") symbols=$(readelf --dyn-syms -W "$1")
  case $(readelf -hW "$1") in *'Type:'*DYN*) ;; *) echo pie ;; esac
  case $segments in *GNU_RELRO*) ;; *) echo relro ;; esac
  echo "$dynamic" | grep -qE '\((FLAGS|FLAGS_1|BIND_NOW)\).*NOW|\(BIND_NOW\)' || echo now
  echo "$segments" | grep -E '^ +GNU_STACK .* RW +0x' >/dev/null || echo stack
  ! echo "$segments" | grep -E '^ +LOAD .* RWE ' >/dev/null || echo writable-code
  case $dynamic in *TEXTREL*) echo text-relocations ;; esac
  case $symbols in *__stack_chk_fail*) ;; *) echo protector ;; esac
  echo "$symbols" | grep -E ' __[a-z]+_chk(@|$)' >/dev/null || echo fortify
}

# The reader finds what is missing: a program without any of it.
cat >"$work/bare.c" <<'C'
#include <stdio.h>
int main(int argc, char **argv) {
  char text[64];
  (void)argc;
  return sprintf(text, "%s", argv[0]) == 0;
}
C
${CC:-cc} -O2 -w -no-pie -fno-stack-protector -U_FORTIFY_SOURCE -Wl,-z,norelro,-z,lazy,-z,execstack "$work/bare.c" -o "$work/bare" 2>"$work/err" ||
  skip "no C compiler links: $(tail -n 1 "$work/err")"
same 'a program without any' 'pie relro now stack protector fortify ' "$(lacks "$work/bare" | tr '\n' ' ')"

[ $# -gt 0 ] || set -- "$LLMPART" "$LP_BUILD/runtime/library/libllmpart-runtime.so"
for file in "$@"; do
  [ -f "$file" ] || { fail "$file is missing"; continue; }
  same "what $file lacks" '' "$(lacks "$file" | tr '\n' ' ')"
  # Functions that a pointer may reach begin with a landing pad.
  case $(readelf -hW "$file") in
  *X86-64*) [ "$(readelf -x .text "$file" | grep -c '^ *0x[0-9a-f]* f30f1efa')" -gt 10 ] || fail "$file has no landing pads" ;;
  esac
done
finish
