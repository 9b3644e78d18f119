# The website (tools/site.sh) is built, its links lead somewhere, and no page is wider than a phone; a fence that MkDocs
# does not take ends the build.
. "$LP_SOURCE/tests/e2e/lib.sh"
python=${LP_PYTHON:-python3}
"$python" -c 'import mkdocs' 2>/dev/null || skip "$python lacks mkdocs (tests/python/requirements.txt)"
LP_PYTHON=$python sh "$LP_SOURCE/tools/site.sh" "$work/site" >"$work/out" 2>&1 || { fail "tools/site.sh: $(tail -n 5 "$work/out")"; finish; }
"$python" "$LP_SOURCE/tests/docs/site.py" "$work/site" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
! grep -rlE '(src|href)="(https?:)?//[^"]*\.(js|css)"' --include=*.html "$work/site" || fail 'a page loads scripts or styles from elsewhere'

mkdir -p "$work/tree/tools/install"
cp "$LP_SOURCE/tools/site.sh" "$work/tree/tools"
cp "$LP_SOURCE/tools/install/site.py" "$work/tree/tools/install"
cp -R "$LP_SOURCE/docs" "$LP_SOURCE/examples" "$LP_SOURCE/README.md" "$LP_SOURCE/CONTRIBUTING.md" "$work/tree"
mkdir -p "$work/tree/runtime/library" "$work/tree/tests"
cp "$LP_SOURCE/runtime/library/llmpart.h" "$work/tree/runtime/library"
cp "$LP_SOURCE/tests/README.md" "$work/tree/tests"
printf '\n```sh\nllmpart\n' >>"$work/tree/docs/gpu.md"
LP_PYTHON=$python sh "$work/tree/tools/site.sh" "$work/broken" >"$work/out" 2>&1 && fail 'an open fence builds'
grep -q 'gpu.*: a block of code is not closed' "$work/out" || fail "an open fence: $(tail -n 3 "$work/out")"

. "$LP_SOURCE/tests/e2e/browser.sh"
look "file://$work/site/tutorials/own-model.html" --allow-file-access-from-files # its headings begin with digits; a script that fails is a failure
# Each page in a frame as wide as a phone, without the scripts of the theme.
(cd "$work/site" && find . -name '*.html' | sort) >"$work/pages"
{
  echo '<!DOCTYPE html><html><body><iframe sandbox="allow-same-origin" style="width:390px;height:844px;border:0"></iframe><script>const pages = ['
  sed 's/.*/"&",/' "$work/pages"
  echo ']; const frame = document.querySelector("iframe"), wide = []; let at = 0;
    frame.addEventListener("load", () => { const e = frame.contentDocument.documentElement;
      if (at > 0 && e.scrollWidth > 390) wide.push(pages[at - 1] + ": " + e.scrollWidth);
      if (at < pages.length) frame.src = pages[at++]; else document.title = at + " pages; wide: " + wide.join(", "); });
    frame.src = "about:blank";</script></body></html>'
} >"$work/site/phone.html"
budget=60000
look "file://$work/site/phone.html" --allow-file-access-from-files
same 'wide pages' "$(wc -l <"$work/pages") pages; wide: " "$(sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p' "$work/dom")"
finish
