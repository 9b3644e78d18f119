# A template that breaks a limit for some messages fails those requests only; one that breaks it for all is refused by
# `compile`.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
cp "$default/tokenizer.json" "$work"
template() { # template TEXT: the default model with this chat template
  printf '%s' "$1" >"$work/chat_template.jinja"
}
try() { compile "$default/model.onnx" "$work/edge.llmpart" --tokenizer="$work/tokenizer.json" --device=host; }

template '
{% set ns = namespace(l=[]) %}{% for a in range(90000) %}{% set ns.l = [ns.l] %}{% endfor %}
{{ ns.l | tojson }}'
refused 'a template that nests' 'chat_template.jinja: error: chat template, line 3, column [0-9]*: .*nested too deeply, more than 400' \
  "$LLMPART" compile "$default/model.onnx" -o "$work/edge.llmpart" --tokenizer="$work/tokenizer.json" --device=host
template '{% if tools %}{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}{% endif %}a'
refused 'a template that nests loops for tools' 'chat_template.jinja: error: .*takes more than 128 MiB of memory' \
  "$LLMPART" compile "$default/model.onnx" -o "$work/edge.llmpart" --tokenizer="$work/tokenizer.json" --device=host
template "{{ raise_exception('only tests') if messages | length > 1 }}a"
try || finish # refuses a conversation, but breaks no limit

template "{% set kind = messages[-1].content %}{% set ns = namespace(l=[], s='ab') %}
{% if kind == 'deep' %}{% for a in range(90000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l | tojson }}{% endif %}
{% if kind == 'wide' %}{% for a in range(90000) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{% endif %}
{% if kind == 'long' %}{% for a in range(90000) %}{% if 'x' in 'ab' * 5000000 %}{% endif %}{% endfor %}{% endif %}
{% if kind == 'slow' %}{% set s = 'ab' * 500000 %}{% for a in range(90000) %}{% if s.count('b') %}{% endif %}{% endfor %}{% endif %}
{% for m in messages %}{% if m.content is none and kind == 'none' %}{{ 'Once' }}{% else %}{{ '' + m.content }}{% endif %}{% endfor %}"
try || finish
echo 'edge: { bundle: edge.llmpart, threads: 1 }' >"$work/edge.yaml"
chat() { echo "{\"model\":\"edge\",\"messages\":[{\"role\":\"user\",\"content\":\"$1\"}],\"max_tokens\":4,\"temperature\":0}"; }
serve edge
wanted=$(post /v1/chat/completions "$(chat Once)" | sed -n 's/.*"content":"\([^"]*\)".*/\1/p')
[ -n "$wanted" ] || fail "an ordinary request: $(cat "$work/body")"
# A call has no content, which is an empty text to the template. A template without tools is told of.
call='{"role":"assistant",CONTENT"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":""}'
for content in '"content":null,' ''; do
  with_call=$(echo "$call" | sed "s/CONTENT/$content/")
  same "a call with [$content]" "$wanted" "$(post /v1/chat/completions "{\"messages\":[{\"role\":\"user\",\"content\":\"Once\"},$with_call],\"max_tokens\":4,\"temperature\":0}" | sed -n 's/.*"content":"\([^"]*\)".*/\1/p')"
done
none="{\"messages\":[$(echo "$call" | sed 's/CONTENT/"content":null,/;s/"content":""/"content":"none"/')],\"max_tokens\":4,\"temperature\":0}"
plain=$(post /v1/chat/completions "$(chat Oncenone)" | sed -n 's/.*"content":"\([^"]*\)".*/\1/p')
same 'a template that asks for none' "$plain" "$(post /v1/chat/completions "$none" | sed -n 's/.*"content":"\([^"]*\)".*/\1/p')"
grep -q '^X-Llmpart-Note' "$work/head" && fail "a note: $(cat "$work/head")"
post /v1/chat/completions '{"messages":[{"role":"user","content":"Once"}],"max_tokens":4,"tools":[{"type":"function","function":{"name":"f"}}]}' >/dev/null
grep -q "^X-Llmpart-Note: the model's chat template has no tools" "$work/head" || fail "tools without a word: $(cat "$work/head")"
rejected 'depth' 400 'line 2, .*nested too deeply, more than 400' /v1/chat/completions "$(chat deep)"
rejected 'memory' 400 'line 3, .*more than 128 MiB of memory' /v1/chat/completions "$(chat wide)"
rejected 'memory of texts' 400 'line 4, .*more than 128 MiB of memory' /v1/chat/completions "$(chat long)"
rejected 'steps' 400 'line 5, .*too many steps, more than 20000000' /v1/chat/completions "$(chat slow)"
for kind in deep wide long slow deep wide long slow; do
  curl -sS --max-time 300 -o /dev/null --json "$(chat $kind)" "$url/v1/chat/completions" &
  started="$started $!"
done
same 'beside eight of them' "$wanted" "$(post /v1/chat/completions "$(chat Once)" | sed -n 's/.*"content":"\([^"]*\)".*/\1/p')"
peak=$(sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$pid/status")
[ "$peak" -le $((2 << 20)) ] || fail "the server took $peak KB"
for i in 1 2 3 4 5 6 7 8; do
  curl -sS --max-time 300 -o /dev/null --json "$(chat slow)" "$url/v1/chat/completions" 2>/dev/null &
  started="$started $!"
done
sleep 0.3
begun=$(date +%s)
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"
took=$(($(date +%s) - begun))
[ "$took" -le 10 ] || fail "SIGTERM takes $took s"
finish
