# Opens pages in headless Chromium, for tests that have sourced lib.sh.
browser=$(command -v chromium) || skip "the Debian package 'chromium' is not installed"

# open_page PAGE SCRIPT: the document after the script has run, elements on lines of their own; messages of the console
# are failures.
open_page() {
  awk -v script="$2" '{ if (!sub(/<\/body>/, "<script>" script "</script></body>")) print; else print }' "$1" >"$work/shown.html"
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --user-data-dir="$work/profile" --enable-logging=stderr --virtual-time-budget=2000 \
    --dump-dom "file://$work/shown.html" 2>"$work/log" | sed 's/<\(tr\|svg\|h2\|main\|circle\|path\|pre\)/\
<\1/g' >"$work/dom"
  ! grep 'CONSOLE' "$work/log" || fail "errors in the page $1"
}
