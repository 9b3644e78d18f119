# The page of a report in headless Chromium: it draws without an error, its sliders give what the planner computes for
# the same placement over that link, its operators fold, sort and filter, and hostile names in a model stay text.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/e2e/browser.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx
report() { # report OUT RTT
  "$LLMPART" compile "$model" --device=jetson-nano-p1 --cloud=v100s-p1 --link="rtt=$2,up=20Mbit/s,down=80Mbit/s" --isl=64 --osl=16 \
    --scheduler=cut --cut=2 --ttft=40ms --plan-only --report="$1"
}
row() { sed -n "s/^<tr><td>$1[^<]*<\/td><td>\([^<]*\)<\/td><td>\([^<]*\)<\/td>.*/\1 \2/p" "$work/dom"; } # row PLAN: TTFT and TPOT

report "$work/near.html" 4ms || fail 'no report'
open_page "$work/near.html" ''
grep -q '<svg' "$work/dom" || skip "chromium does not run here: $(tail -n 1 "$work/log")"
same 'charts' 3 "$(grep -c '^<svg' "$work/dom")"
grep -q 'Where the layers run' "$work/dom" || fail 'no strip of layers'
grep -q '<rect[^>]*--cloud-soft' "$work/dom" || fail 'no layer in the cloud'
near=$(row 'this plan')
fits_screens "$work/near.html"

# The slider of the round trip, from 4 to 40 ms: the same as a report for a link of 40 ms.
report "$work/far.html" 40ms 2>/dev/null
open_page "$work/far.html" ''
far=$(row 'this plan') far_cloud=$(row cloud_only)
[ -n "$far" ] && [ "$far" != "$near" ] || fail "the link does not matter: '$near', '$far'"
open_page "$work/near.html" 'const knob = document.querySelector(`[aria-label="round trip"]`); knob.value = 1; knob.dispatchEvent(new Event("input"));'
same 'the round trip by the slider' "$far" "$(row 'this plan')"
same 'the round trip of the cloud alone' "$far_cloud" "$(row cloud_only)"
grep -q '<td class="bad">no</td>' "$work/dom" || fail 'the limit of 40 ms holds over a round trip of 40 ms'

# README's picture is what its command's page shows.
LLMPART=$LLMPART sh "$LP_SOURCE/tools/screenshots.sh" --strip "$work" || fail 'no strip'
cmp -s "$work/strip.svg" "$LP_SOURCE/docs/images/strip.svg" || fail 'docs/images/strip.svg is another plan: sh tools/screenshots.sh --strip docs/images'

# Operators: folded by layer at first; the filter shows those that match; a click sorts.
open_page "$work/near.html" 'document.querySelector("[type=search]").value = "op.attention"; document.querySelector("[type=search]").dispatchEvent(new Event("input"));'
same 'filtered operators' 3 "$(grep -c '<td class="left">op.attention</td>' "$work/dom")"
open_page "$work/near.html" '[...document.querySelectorAll("#operators button")].find((b) => b.textContent === "bytes").click();'
sed -n 's/.*<td class="left">[^<]*<\/td><td class="[a-z]*">[a-z]*<\/td><td>[^<]*<\/td><td>\([0-9.]*\) \([kM]*\)B<\/td>.*/\1 \2/p' "$work/dom" |
  awk '{ v = $1 * ($2 == "k" ? 1e3 : $2 == "M" ? 1e6 : 1); if (NR > 1 && v > last) bad++; last = v } END { exit !(NR > 20 && !bad) }' || fail 'bytes are not sorted'

# Predicted beside measured.
"$LLMPART" compile "$model" --device=jetson-nano-p1 --cloud=v100s-p1 --link=lan --plan-only --report="$work/plan.json" || fail 'a plan'
printf '{"schema": "llmpart.run/1", "batch": 1, "prompt_tokens": 512, "tokens": [], "ttft_ms": 80.0, "tpot_ms": 20.0, "plan": {"plan": 0},
  "planned": {"device": "jetson-nano-p1", "cloud": "v100s-p1", "placement": %s}, "link": {"kind": "emulated", "rtt_ms": 0.5}}' \
  "$(sed -n 's/^  "placement": \(".*"\),/\1/p' "$work/plan.json")" >"$work/run.json"
"$LLMPART" compile "$model" --device=jetson-nano-p1 --cloud=v100s-p1 --link=lan --plan-only --measured="$work/run.json" --report="$work/measured.html" \
  --report="$work/measured.txt" --report="$work/measured.json" || fail '--measured'
open_page "$work/measured.html" ''
same 'measured bars' 2 "$(grep -o 'measured: [28]0 ms' "$work/dom" | wc -l)"
grep -Eq '^  measured +80\.0 ms +20\.0 ms ' "$work/measured.txt" || fail "the report has no measurement: $(grep measured "$work/measured.txt")"

# A name that looks like markup stays text.
mkdir "$work/<img src=x onerror=alert(1)>"
cp "$model" "$work/<img src=x onerror=alert(1)>/<script>alert(1)<script>.onnx"
"$LLMPART" compile "$work/<img src=x onerror=alert(1)>/<script>alert(1)<script>.onnx" --device=jetson-nano-p1 --plan-only --report="$work/hostile.html" || fail 'a hostile name'
open_page "$work/hostile.html" ''
grep -q '<h1>&lt;script&gt;alert(1)&lt;script&gt;</h1>' "$work/dom" || fail "the hostile name is not shown: $(grep -o '<h1>.*</h1>' "$work/dom")"
finish
