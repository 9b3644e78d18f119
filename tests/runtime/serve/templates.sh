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
{% for m in messages %}{{ m.content }}{% endfor %}"
try || finish
echo 'edge: { bundle: edge.llmpart, threads: 1 }' >"$work/edge.yaml"
chat() { echo "{\"model\":\"edge\",\"messages\":[{\"role\":\"user\",\"content\":\"$1\"}],\"max_tokens\":4,\"temperature\":0}"; }
serve edge
wanted=$(post /v1/chat/completions "$(chat Once)" | sed -n 's/.*"content":"\([^"]*\)".*/\1/p')
[ -n "$wanted" ] || fail "an ordinary request: $(cat "$work/body")"
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
