#!/bin/sh
# Runs every fuzz target for so many seconds each: all readers of bytes that come from outside.
#   sh tools/fuzz.sh SECONDS [TARGET ...]    TARGET: onnx gguf huggingface tokenizer manifest kept link device worker
#                                            template body grammar cloud yaml ir opt gpu_table
# Corpora grow in build/fuzz/corpus/TARGET. They begin with the seeds of tests/fuzz/seeds.py, if its packages (onnx and
# gguf) are there, and with the files below. A finding ends its target; its input lies in build/fuzz/findings. Exit
# status 1: there are findings.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:?wanted: the seconds for each target}
shift
corpus=build/fuzz/corpus findings=$PWD/build/fuzz/findings
cmake --preset fuzz >/dev/null
if [ $# = 0 ]; then
  set -- onnx gguf huggingface tokenizer manifest kept link device worker template body grammar cloud yaml ir opt gpu_table
fi
targets=""
for target; do targets="$targets fuzz_$target"; done
# shellcheck disable=SC2086 # a list of words
cmake --build --preset fuzz --parallel 2 --target $targets

mkdir -p "$findings" $corpus/yaml $corpus/body $corpus/cloud $corpus/grammar $corpus/template
if "${LP_PYTHON:-python3}" -c 'import onnx, gguf' 2>/dev/null; then
  "${LP_PYTHON:-python3}" tests/fuzz/seeds.py --out $corpus
else
  echo "fuzz: note: no seeds of models: the packages onnx and gguf are missing" >&2
fi
# The first byte is the reader's number.
seed() { # seed NUMBER FILE
  { printf "\\$1"; cat "$2"; } >"$corpus/yaml/$1-$(basename "$2")"
}
for file in hwmodels/machines/*.yaml; do seed 000 "$file"; done
for file in runtime/service/*/*.yaml; do seed 001 "$file"; done
for file in runtime/radio/profiles/*.yaml; do seed 002 "$file"; done
for file in examples/*/*.yaml; do
  seed 003 "$file"
  seed 004 "$file"
done
for file in tests/runtime/chat/*/*.jinja; do
  { printf '\000'; cat "$file"; } >"$corpus/template/$(basename "$file")"
done
cat >$corpus/body/one <<'END'
{"model":"edge","prompt":"a","max_tokens":4,"n":2,"temperature":0.5,"stop":["b"],"logit_bias":{"1":2},"logprobs":3,"stream":true,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x"]}},"required":["a"]}}}}
END
cat >$corpus/body/two <<'END'
{"model":"auto","messages":[{"role":"system","content":"a"},{"role":"user","content":[{"type":"text","text":"b"}]},{"role":"tool","tool_call_id":"c","content":"d"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"required"}
END
# A schema up to a NUL, and bytes that choose tokens (fuzz_grammar.c).
grammar() { # grammar NAME SCHEMA
  printf '\000%s\000%s' "$2" 'bytes that choose the tokens of a text of it' >"$corpus/grammar/$1"
}
grammar object '{"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x","yz"]}},"required":["a"]}'
grammar any '{"anyOf":[{"type":"array","items":{"type":"string","maxLength":9},"minItems":2},{"type":"array","items":{"$ref":"#"}}]}'
grammar tree '{"$defs":{"a":{"type":"object","properties":{"n":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}}},"$ref":"#/$defs/a"}'
# The first three bytes choose the request, the status of HTTP, and the bytes that come at a time (fuzz_cloud.c).
cat >$corpus/cloud/chat <<'END'
ba
: comment
data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}

data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":3}}}

data: [DONE]

END
cat >$corpus/cloud/tokens <<'END'
ca
data: {"choices":[{"index":1,"delta":{"content":"b"},"logprobs":{"content":[{"token":"b","logprob":-1.5,"bytes":[98],"top_logprobs":[{"token":"b","logprob":-1.5}]}]}}]}

data: {"error":{"message":"too busy"}}

END
cat >$corpus/cloud/completion <<'END'
aa
data: {"choices":[{"index":0,"text":"a","logprobs":{"tokens":["a"],"token_logprobs":[-0.5],"top_logprobs":[{"a":-0.5}],"text_offset":[0]}}]}

data: [DONE]

END

failed=""
for target; do
  mkdir -p "$corpus/$target"
  words=""
  [ ! -e $corpus/words.dict ] || words="-dict=$corpus/words.dict"
  log="$findings/$target.log"
  # shellcheck disable=SC2086 # one word or none
  find build/fuzz -name "fuzz_$target" -type f -exec {} "$corpus/$target" $words -max_total_time="$seconds" -timeout=10 -rss_limit_mb=3000 \
    -artifact_prefix="$findings/$target-" -print_final_stats=1 ';' >"$log" 2>&1 || :
  if grep -q 'SUMMARY: ' "$log"; then failed="$failed $target"; fi
  sed -n "s/^stat::number_of_executed_units: */$target: runs /p; s/^SUMMARY: /$target: /p" "$log"
done
[ -z "$failed" ] || { echo "fuzz: findings:$failed: see $findings" >&2; exit 1; }
