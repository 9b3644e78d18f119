# The page of a server in headless Chromium: it draws the places, their queues and the times of requests, explains a
# decision, and shows which machine wrote which token of an answer.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
. "$LP_SOURCE/tests/e2e/browser.sh"
budget=9000 breaks='tr\|svg\|h2\|div\|p\|span'
mkdir "$work/chats"
cp "$default/tokenizer.json" "$work/chats"
printf '{"chat_template": "{%% for m in messages %%}{{ m.content }}\\n{%% endfor %%}"}' >"$work/chats/tokenizer_config.json"
compile "$default/model.onnx" "$work/story.llmpart" -O0 --tokenizer="$work/chats/tokenizer.json" --device=host || finish
compile "$default/model.onnx" "$work/split.llmpart" -O0 --tokenizer="$default/tokenizer.json" --device=jetson-nano --cloud=v100s --link=lan \
  --march=native --exits=2 || finish
printf 'edge: { bundle: story.llmpart, model: "<b>tale</b>", threads: 1 }
split: { bundle: split.llmpart, threads: 1 }
router: { policy: quickest, pool: pool.db }
prediction: { rate: 1000 }
origins: ["null"]\n' >"$work/page.yaml"
serve page
for place in edge split auto; do post /v1/completions "{\"model\":\"$place\",\"prompt\":\"Once\",\"max_tokens\":4}" >/dev/null; done

look "$url/"
grep -q '<h2>' "$work/dom" || skip "chromium does not run here: $(tail -n 1 "$work/log")"
same 'places' 2 "$(grep -c '^<div class="card [a-z]*"><b>' "$work/dom")"
grep -q '<b>edge</b> &lt;b&gt;tale&lt;/b&gt; <i class="good">up</i>' "$work/dom" || fail "no edge, or a name that is markup: $(grep '"card' "$work/dom")"
grep -q '2 answered, 0 failed\|1 answered, 0 failed' "$work/dom" || fail 'no counts'
grep -q '^<p class="good">the load fits the prediction; [0-9]* requests' "$work/dom" || fail "no prediction: $(grep '^<p' "$work/dom")"
same 'charts' 4 "$(grep -c '^<svg' "$work/dom")"
same 'lines of rates' 4 "$(grep -o '<path d="M[^"]*L' "$work/dom" | wc -l)"
same 'requests' 3 "$(grep -c '^<tr class=""><td><button' "$work/dom")"

# The same page with a script that acts as a reader. A file is another site, `null`, which the configuration allows.
act() { # act SCRIPT: runs it once the page has the server's state
  curl -sS "$url/" | awk -v script="const wait = setInterval(() => { if (!last) return; clearInterval(wait); $1 }, 50);" -v base="<base href=\"$url/\">" '{ sub(/<head>/, "<head>" base); if (!sub(/<\/body>/, "<script>" script "</script></body>")) print; else print }' \
    >"$work/shown.html"
  look "file://$work/shown.html"
}
act 'document.querySelector("tbody tr").click();'
grep -q '<b>Request 3</b>' "$work/dom" || fail 'no explanation'
grep -q '^<p>[a-z]*: score [0-9.]*, expected delay .*decided' "$work/dom" || fail "no reasons: $(grep '^<p>' "$work/dom")"
chat() { # chat PLACE: sends a prompt to it
  act "kind.value = \"completions\"; route.value = \"$1\"; text.value = \"Once upon a time\"; most.value = 12; chat.requestSubmit();"
  written=$(sed -n 's/^<span class="m[0-9]" title="[^"]*">\(.*\)<\/span>.*/\1/p' "$work/dom" | tr -d '\n')
}
chat edge
same 'by the edge' edge "$(sed -n 's/^<span class="m[0-9]" title="\([^"]*\)">.*/\1/p' "$work/dom" | sort -u)"
[ "$(printf '%s' "$written" | wc -w)" -ge 4 ] || fail "the answer of 12 tokens is '$written'"
grep -q 'answered by edge' "$work/dom" || fail "the course: $(grep 'id="course"' "$work/dom")"
chat split
sed -n 's/^<span class="m[0-9]" title="\([^"]*\)">.*/\1/p' "$work/dom" | sort -u >"$work/machines"
[ -s "$work/machines" ] || fail "the split wrote nothing: $(grep 'id="course"' "$work/dom")"
! grep -v '^127\.0\.0\.1:[0-9]*$\|^device\(, exit after layer 2\)\?$' "$work/machines" || fail 'unknown machines'

# A chat sends what was said before, and its failure has a reason. The page fits a phone, and draws rates over time.
alone=$(post /v1/chat/completions '{"model":"edge","messages":[{"role":"user","content":"The dog said"}],"max_tokens":1}' | sed 's/.*"prompt_tokens":\([0-9]*\).*/\1/')
act 'route.value = "edge"; most.value = 8; text.value = "Once upon a time"; chat.requestSubmit(); const again = setInterval(() => { if (send.disabled || turns.length !== 2) return; clearInterval(again); text.value = "The dog said"; chat.requestSubmit(); }, 50);'
cp "$work/shown.html" "$work/phone.html"
same 'turns' 2 "$(grep -c '^<p class="user">' "$work/dom")"
both=$(curl -sS "$url/v1/status" | sed 's/.*"recent":\[{[^}]*}[^}]*"prompt_tokens":\([0-9]*\).*/\1/')
[ "$both" -ge $((alone + 8)) ] || fail "the second turn of a chat has $both tokens, alone it has $alone"
fits_screens "$work/phone.html"
act 'kind.value = "completions"; text.value = "Once"; route.replaceChildren(make("option", { value: "nosuch" }, "nosuch")); chat.requestSubmit();'
grep -q '<p class="bad">failed: there is no model .nosuch.: wanted .* (status 404)' "$work/dom" || fail "no reason: $(grep '"bad"' "$work/dom")"
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"
finish
