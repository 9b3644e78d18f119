# Runs the commands of a page: commands.sh PAGE.md. Each ```sh block runs in order, in one folder that holds model.onnx
# and tokenizer.json of examples/default-model and a link to examples/. tests/docs/blocks.awk describes what a page may
# say of a block. Ports 7700 to 7709 and 8080 become others, below those that the kernel hands out, so that two pages
# can be run at the same time.
set -eu
: "${LP_SOURCE:?is set by ctest}" "${LLMPART:?is set by ctest}"
page=$1
work=$(mktemp -d)
server="" # the process group of the last background block

stop_server() {
  [ -n "$server" ] || return 0
  kill -s TERM -- "-$server" 2>/dev/null || true # `kill -TERM` takes no group in dash
  wait "$server" 2>/dev/null || true
  server=""
}
clean_up() {
  stop_server
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

fail() { # fail LINE TEXT: ends the test with the output of the block
  echo "$page:$1: $2"
  cat "$work/output"
  exit 1
}

start_server() { # start_server BLOCK LINE: replaces the server before it; returns when the new one listens
  stop_server
  setsid sh -eu "$1" >"$work/output" 2>&1 &
  server=$!
  for _ in $(seq 600); do
    ! grep -q listening "$work/output" || return 0
    kill -0 "$server" 2>/dev/null || fail "$2" "the server ended"
    sleep 0.1
  done
  fail "$2" "the server does not listen after a minute"
}

run_block() { # run_block BLOCK LINE STATUS
  status=0
  timeout 600 sh -eu "$1" >"$work/output" 2>&1 </dev/null || status=$?
  [ "$status" = "$3" ] || fail "$2" "exit status $status, expected $3"
}

mkdir "$work/bin" "$work/blocks" "$work/here"
# The pages show commands, not optimised code, and -O0 takes a seventh of the time.
cat >"$work/bin/llmpart" <<END
#!/bin/sh
[ "\$1" != compile ] || { shift; set -- compile -O0 "\$@"; }
exec "$LLMPART" "\$@"
END
chmod +x "$work/bin/llmpart"
ln -s "$LP_SOURCE/examples" "$work/here/examples"
ln -s "$LP_SOURCE/tests" "$work/here/tests"
cp "$LP_SOURCE/examples/default-model/model.onnx" "$LP_SOURCE/examples/default-model/tokenizer.json" "$work/here"
PATH=$work/bin:$PATH
XDG_CACHE_HOME=$work/cache
export PATH XDG_CACHE_HOME
awk -v out="$work/blocks" -f "$LP_SOURCE/tests/docs/blocks.awk" "$LP_SOURCE/$page" >"$work/list"
sed -i "s/\b770\([0-9]\)\b/$((2000 + $$ % 1000))\1/g; s/\b8080\b/$((30000 + $$ % 2700))/g" "$work"/blocks/* 2>/dev/null || true
: >"$work/output"
cd "$work/here"
ran=0
while read -r number kind line argument <&3; do
  case $kind in
  unclosed) fail 0 "a code block is not closed" ;;
  file) cp "$work/blocks/$number" "$argument" ;;
  background) start_server "$work/blocks/$number" "$line" ;;
  run) run_block "$work/blocks/$number" "$line" "$argument" && ran=$((ran + 1)) ;;
  esac
done 3<"$work/list"
echo "$page: $ran blocks ran"
