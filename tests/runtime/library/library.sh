# library.sh CALLS: the program CALLS checks the functions of the public library. Then llmpart is installed into an
# empty folder, where examples/embed is built with pkg-config and with CMake, and generates what `llmpart run` does:
# in one process, with a worker of its own, and with `llmpart worker`.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/examples/default-model/model.onnx
# shellcheck disable=SC2086 # the pair is three options
compile "$model" "$work/model.llmpart" $pair --scheduler=cut --cut=4 -O1 || finish
compile "$model" "$work/places.llmpart" --place=phone=host --place=edge=host,memory=3MB --place=server=host,memory=3MB --device-memory=3MB --link=lan \
  --isl=16 --osl=16 -O1 || finish
"$1" "$work/model.llmpart" "$work/places.llmpart" >"$work/out" 2>&1 || fail "calls: $(cat "$work/out")"

cmake --install "$LP_BUILD" --prefix "$work/installed" >"$work/out" 2>&1 || fail "install: $(tail -n 3 "$work/out")"
libraries=$(dirname "$(find "$work/installed" -name libllmpart-runtime.so)")
nm -D --defined-only "$libraries/libllmpart-runtime.so" >"$work/symbols"
grep -v ' A LLMPART_1$' "$work/symbols" | awk '{ print $3 }' | sed 's/@.*//' | sort >"$work/exported"
sed -n 's/^[a-z].*[ *]\(llmpart_[a-z_]*\)(.*/\1/p' "$work/installed/include/llmpart.h" | grep -v '^llmpart_\(log\|token_sink\)$' | sort >"$work/declared"
same 'what is exported' "$(cat "$work/declared")" "$(cat "$work/exported")"

PKG_CONFIG_PATH=$libraries/pkgconfig pkg-config --cflags --libs llmpart-runtime >"$work/flags" || fail 'no pkg-config'
# shellcheck disable=SC2046 # options of the compiler
cc -std=c17 -Wall -Wextra -Werror "$LP_SOURCE/examples/embed/embed.c" -o "$work/embed" $(cat "$work/flags") -Wl,-rpath,"$libraries" ||
  fail 'examples/embed by pkg-config'
{ cmake -S "$LP_SOURCE/examples/embed" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/installed" && cmake --build "$work/build"; } >"$work/out" 2>&1 ||
  fail "examples/embed by CMake: $(tail -n 5 "$work/out")"
c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -x c++ "$work/installed/include/llmpart.h" || fail 'the header in C++'

want=$("$LLMPART" run "$work/model.llmpart" --prompt='Once upon a time' -n 48 --in-process)
for program in "$work/embed" "$work/build/embed"; do
  same "$program" "$want" "$("$program" "$work/model.llmpart" 'Once upon a time' 2>"$work/err")"
done
same 'a worker of its own' "$want" "$("$work/embed" "$work/model.llmpart" 'Once upon a time' worker 2>"$work/err")"
serve "$work/model.llmpart"
same 'a worker elsewhere' "$want" "$("$work/embed" "$work/model.llmpart" 'Once upon a time' "$address" 2>"$work/err")"
"$work/embed" "$work" text >"$work/out" 2>"$work/err" && fail 'no bundle, and no failure'
grep -q '^embed: no bundle: .*manifest.json: error: cannot open' "$work/err" || fail "no bundle: $(cat "$work/err")"
finish
