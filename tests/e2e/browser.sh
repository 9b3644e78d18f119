# Opens pages in headless Chromium, for tests that have sourced lib.sh.
browser=$(command -v chromium) || skip "the Debian package 'chromium' is not installed"

budget=2000                                   # of virtual time, in ms
breaks='tr\|svg\|h2\|main\|circle\|path\|pre' # elements that begin a line

# look URL [OPTION]: the document after some seconds, elements on lines of their own; messages of the console are
# failures.
look() {
  timeout 300 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --user-data-dir="$work/profile" --enable-logging=stderr --virtual-time-budget="$budget" \
    --dump-dom ${2:+"$2"} "$1" 2>"$work/log" | sed "s/<\\($breaks\\)/\\
<\\1/g" >"$work/dom"
  ! grep CONSOLE "$work/log" | grep -v 'is sandboxed' || fail "errors in the page $1"
}

# open_page PAGE SCRIPT: the same of a file, after the script has run.
open_page() {
  awk -v script="$2" '{ if (!sub(/<\/body>/, "<script>" script "</script></body>")) print; else print }' "$1" >"$work/shown.html"
  look "file://$work/shown.html"
}

# fits_phone PAGE: in a frame as wide as a phone nothing is wider than the frame.
fits_phone() {
  {
    printf '<!DOCTYPE html><html><body><iframe style="width:390px;height:844px;border:0" srcdoc="'
    sed 's/&/\&amp;/g; s/"/\&quot;/g; s/<\/body>//' "$1" # open_page's script is for the outer body
    printf '"></iframe></body></html>'
  } >"$work/framed.html"
  open_page "$work/framed.html" 'addEventListener("load", () => setTimeout(() => {
    const inner = document.querySelector("iframe").contentDocument.documentElement;
    document.title = `phone: ${inner.scrollWidth} of ${inner.clientWidth}`; }, 500));'
  grep -Eq '<title>phone: ([0-9]+) of \1</title>' "$work/dom" || fail "$1 is wider than a phone: $(grep -o '<title>phone[^<]*' "$work/dom")"
}
