# A request's headers, or else its key, give the rates of its user's link. They decide between the edge and a split that
# sends hidden states over this link.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
compile "$default/model.onnx" "$work/story.llmpart" -O0 --tokenizer="$default/tokenizer.json" --device=host || finish
compile "$default/model.onnx" "$work/split.llmpart" -O0 --tokenizer="$default/tokenizer.json" --device=jetson-nano --cloud=v100s --link=lan \
  --march=native --scheduler=cut --cut=1 || finish
printf 'service: made
edge: { model: e, ttft: 100s, tokens_per_s: 10, source: made }
cloud: { model: c, ttft: 100s, tokens_per_s: 10, source: made }
split: { model: s, ttft: 1s, tokens_per_s: 10, source: made }\n' >"$work/made.yaml"
printf 'service: ./made.yaml\nsplit_plan: { row_bytes: 100000 }\n' >"$work/backends.yaml"
printf 'edge: { bundle: story.llmpart, threads: 1 }
split: { bundle: split.llmpart, threads: 1 }
keys:
  - { name: fast, key_env: FAST }
  - { name: slow, key_env: SLOW, up: 10kbit/s }
router: { policy: quickest, backends: backends.yaml }\n' >"$work/link.yaml"
FAST=fast SLOW=slow
export FAST SLOW
serve link
ask='{"model":"auto","prompt":"Once","max_tokens":2}'
takes() { # takes WHAT ROUTE [option ...]
  what=$1 wanted=$2
  shift 2
  post /v1/completions "$ask" "$@" >/dev/null
  same "$what" "$wanted" "$(route)"
}
takes 'no link' split -H 'Authorization: Bearer fast'
takes 'a slow uplink' edge -H 'Authorization: Bearer fast' -H 'X-Llmpart-Up: 10kbit/s'
takes 'a slow downlink, which carries tokens only' split -H 'Authorization: Bearer fast' -H 'X-Llmpart-Down: 10kbit/s'
takes "the key's uplink" edge -H 'Authorization: Bearer slow'
takes 'the header before the key' split -H 'Authorization: Bearer slow' -H 'X-Llmpart-Up: 100Mbit/s'
rejected 'a rate that is none' 400 "'fast' is not a rate" /v1/completions "$ask" -H 'Authorization: Bearer fast' -H 'X-Llmpart-Up: fast'
finish
