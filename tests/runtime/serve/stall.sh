# A schema that takes long to follow delays nobody else, and not the end of the server.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
python=${LP_PYTHON:-python3}
compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
echo 'edge: { bundle: story.llmpart, threads: 2, model: story }' >"$work/edge.yaml"
serve edge
same 'too many alternatives' 400 "$("$python" -c 'import json
schemas = [{"type": "object", "additionalProperties": {"const": i}} for i in range(1024)]
print(json.dumps({"model": "story", "prompt": "a", "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"anyOf": schemas}}}}))' |
  curl -sS -o "$work/answer" -w '%{http_code}' -H 'Content-Type: application/json' -d @- "$url/v1/completions")"
grep -q 'the schema has too many alternatives that begin alike' "$work/answer" || fail "its reason: $(cat "$work/answer")"
for kind in fewer counted; do # 199: a new line
  "$python" "$LP_SOURCE/tests/runtime/serve/stall.py" "$url" story --banned 199 --kind "$kind" --abusers 8 --rounds 1 >"$work/found" ||
    fail "$kind: the clients fail"
  # The bounds are wide, as other work may keep the machine busy: an unbounded grammar takes minutes.
  "$python" -c 'import json, sys
found = json.load(sys.stdin)
sys.exit(found["mean_ms"][1] > 5 * found["mean_ms"][0] + 20 or found["worst_ms"][1] > 10 * found["worst_ms"][0] + 500)' <"$work/found" ||
    fail "$kind: others wait: $(cat "$work/found")"
done
"$python" "$LP_SOURCE/tests/runtime/serve/stall.py" "$url" story --banned 199 --kind counted --abusers 8 --rounds 0 --hold >"$work/held" 2>&1 &
started="$started $!"
await [ -s "$work/held" ]
sleep 1
begun=$(date +%s)
kill "$pid"
wait "$pid" || fail "the server ends with $?"
took=$(($(date +%s) - begun))
[ "$took" -le 10 ] || fail "SIGTERM takes $took s"
finish
