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

# fits_screens PAGE: in a frame as wide as a phone nothing is wider than the frame, and on a desk no table scrolls.
fits_screens() {
  {
    printf '<!DOCTYPE html><html><body>'
    for width in 390 1280; do
      printf '<iframe style="width:%spx;height:844px;border:0" srcdoc="' $width
      sed 's/&/\&amp;/g; s/"/\&quot;/g; s/<\/body>//' "$1" # open_page's script is for the outer body
      printf '"></iframe>'
    done
    printf '</body></html>'
  } >"$work/framed.html"
  open_page "$work/framed.html" 'addEventListener("load", () => setTimeout(() => {
    const [phone, desk] = [...document.querySelectorAll("iframe")].map((frame) => frame.contentDocument.documentElement);
    const wide = [phone, desk, ...desk.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth);
    document.title = `wide: ${wide.map((e) => `${e.textContent.slice(0, 40)} ${e.scrollWidth} of ${e.clientWidth}`).join("; ")};`; }, 500));'
  grep -q '<title>wide: ;' "$work/dom" || fail "$1 does not fit: $(grep -o '<title>wide[^<]*' "$work/dom")"
}
