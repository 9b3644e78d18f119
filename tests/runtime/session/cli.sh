#!/bin/sh
# run, worker and bench on hand-made bundles: what they print, and their exit status.  cli.sh TOY_WRITE
set -eu
toy_write=$1
dir=$(mktemp -d)
worker=
trap '[ -z "$worker" ] || kill "$worker" 2>/dev/null; rm -rf "$dir"' EXIT

fail() {
  echo "cli.sh: $*" >&2
  exit 1
}

# expect STATUS TEXT COMMAND...: the exit status, and a text in what is printed (stdout and stderr)
expect() {
  want=$1 text=$2
  shift 2
  status=0
  "$@" >"$dir/out" 2>&1 || status=$?
  [ "$status" = "$want" ] || fail "status $status, wanted $want: $*: $(cat "$dir/out")"
  grep -qF -- "$text" "$dir/out" || fail "no '$text' from $*: $(cat "$dir/out")"
}

# print COMMAND...: prints stdout; nothing may come on stderr
print() {
  "$@" 2>"$dir/err" || fail "failed: $*: $(cat "$dir/err")"
  [ ! -s "$dir/err" ] || fail "$*: $(cat "$dir/err")"
}

"$toy_write" "$dir" whole dddddd
"$toy_write" "$dir" split ddccdd
"$toy_write" "$dir" tail dddccc

whole=$(print "$LLMPART" run "$dir/whole" --tokens=1,2,3 -n 12)
[ "$(echo "$whole" | wc -w)" = 12 ] || fail "not 12 tokens: $whole"
for bundle in split tail; do
  [ "$(print "$LLMPART" run "$dir/$bundle" --tokens=1,2,3 -n 12)" = "$whole" ] || fail "$bundle with a worker of its own"
  [ "$(print "$LLMPART" run "$dir/$bundle" --tokens=1,2,3 -n 12 --in-process)" = "$whole" ] || fail "$bundle in process"
done

# A batch: a row each; --batch repeats the prompt.
[ "$(print "$LLMPART" run "$dir/split" --tokens='1,2,3;4,5,6' -n 12 | head -n 1)" = "$whole" ] || fail "first row"
[ "$(print "$LLMPART" run "$dir/split" --tokens=1,2,3 --batch=3 -n 12 | sort -u)" = "$whole" ] || fail "--batch"

# A worker that was there before.
"$LLMPART" worker "$dir/split" --listen=127.0.0.1:0 2>"$dir/worker" &
worker=$!
for _ in $(seq 1200); do
  grep -q listening "$dir/worker" && break
  kill -0 "$worker" 2>/dev/null || fail "the worker has ended: $(cat "$dir/worker")"
  sleep 0.05
done
address=$(sed -n 's/^listening on //p' "$dir/worker")
[ "$(print "$LLMPART" run "$dir/split" --tokens=1,2,3 -n 12 --cloud="$address")" = "$whole" ] || fail "--cloud"
expect 1 "cannot listen on $address" "$LLMPART" worker "$dir/split" --listen="$address"
expect 1 "serves another bundle" "$LLMPART" run "$dir/tail" --tokens=1 --cloud="$address"
kill "$worker"
wait "$worker" || fail "the worker did not end cleanly"
worker=
expect 1 "cannot reach the cloud at $address" "$LLMPART" run "$dir/split" --tokens=1 --cloud="$address" --cloud-timeout=200ms

# JSON
print "$LLMPART" run "$dir/tail" --tokens=1,2,3 -n 2 -o json >"$dir/json"
for key in '"schema": "llmpart.run/1"' '"tokens"' '"text"' '"side": "cloud"' '"exit_layer": null' '"confidence"' \
  '"bytes_up"' '"bytes_down"' '"cloud_requests": 2' '"ttft_ms"' '"tpot_ms"'; do
  grep -qF "$key" "$dir/json" || fail "JSON has no $key"
done
print "$LLMPART" bench "$dir/tail" -p 8 -n 8 -r 2 -t 1 -o json | grep -qF '"schema": "llmpart.bench/1"' || fail bench
print "$LLMPART" bench "$dir/whole" -p 8 -n 8 -r 2 -t 1 | grep -qF '| tg8 |' || fail "bench md"
[ "$(print "$LLMPART" bench "$dir/whole" -p 0 -n 8 -d 4 -r 2 -t 1 -o csv | sed -n '2s/^[^,]*,[^,]*,[^,]*,\([^,]*\).*/\1/p')" = \
  "tg8 @ d4" ] || fail "bench csv"
print "$LLMPART" bench "$dir/whole" -p 8 -n 0 -b 3 -r 2 -t 1 -o csv | grep -q '^[^,]*,[^,]*,1,pp8 x 3,24,' || fail "bench of three sequences"
print "$LLMPART" bench "$dir/whole" -p 4 -n 4 -r 1 -t 1 -o html | grep -qF '<title>whole: llmpart bench</title>' || fail "bench html"
# MLflow's rule for names, and the members of its entities
print "$LLMPART" bench "$dir/whole" -p 8 -n 8 -d 4 -b 2 -r 2 -t 1 -o mlflow | python3 -c 'import json, re, sys
body = json.load(sys.stdin)
assert all(re.fullmatch(r"[/\w.\- :]+", each["key"]) for part in body.values() for each in part), body
assert {each["key"] for each in body["metrics"]} >= {"pp8 x 2 - d4/tokens_per_s", "tg8 x 2 - d4/tokens_per_s", "load_ms"}, body
assert all(set(each) == {"key", "value", "timestamp", "step"} and each["value"] >= 0 < each["timestamp"] for each in body["metrics"]), body
assert {"key": "bundle", "value": "whole"} in body["params"] and set(body) == {"metrics", "params", "tags"}, body' || fail "bench mlflow"
print "$LLMPART" bench "$dir/tail" --profile -p 4 -n 4 -r 1 -t 1 -o json >"$dir/parts"
for key in '"schema": "llmpart.profile/1"' '"test": "pp4"' '"test": "tg4"' '"total_ms"' '"parts"'; do
  grep -qF "$key" "$dir/parts" || fail "the profile has no $key"
done
print "$LLMPART" bench "$dir/tail" --profile -p 4 -n 0 -r 1 -t 1 -o csv >"$dir/parts"
[ "$(head -n 1 "$dir/parts")" = test,part,ms ] || fail "profile csv: $(cat "$dir/parts")"
grep -q '^pp4,' "$dir/parts" || fail "profile csv: $(cat "$dir/parts")"
! grep -q '^tg' "$dir/parts" || fail "a test of no tokens: $(cat "$dir/parts")"
print "$LLMPART" bench "$dir/tail" --profile -p 0 -n 4 -r 1 -t 1 >"$dir/parts"
grep -qF '| tg4: part | us | share |' "$dir/parts" || fail "profile md: $(cat "$dir/parts")"
expect 2 "a profile is not compared" "$LLMPART" bench "$dir/tail" --profile --baseline="$dir/json"
for form in html mlflow; do expect 2 "a profile is written as" "$LLMPART" bench "$dir/tail" --profile -o $form; done
# A baseline of no speed at all is kept by any, one that is a million times as fast by none.
print "$LLMPART" bench "$dir/whole" -p 4 -n 0 -r 1 -t 1 -o json >"$dir/json"
sed 's/\("tokens_per_s": \)[0-9.e+-]*/\10.001/; s/\("load_ms": \)[0-9.e+-]*/\11e9/; s/\("peak_bytes": \)[0-9]*/\11000000000000/; s/\("gbytes_per_s": \)[0-9.e+-]*/\11e-9/' "$dir/json" >"$dir/slow"
print "$LLMPART" bench "$dir/whole" -p 4 -n 0 -r 1 -t 1 --baseline="$dir/slow" >"$dir/out"
sed 's/\("tokens_per_s": \)[0-9.e+-]*/\11e12/' "$dir/json" >"$dir/fast"
expect 4 "is allowed" "$LLMPART" bench "$dir/whole" -p 4 -n 0 -r 1 -t 1 --baseline="$dir/fast"
expect 1 "$dir/absent" "$LLMPART" bench "$dir/whole" -p 4 -n 0 -r 1 -t 1 --baseline="$dir/absent"
expect 1 "2000000000 sequences of 9 tokens are too many" "$LLMPART" bench "$dir/whole" -p 8 -n 8 -b 2000000000

# Usage
expect 2 "wanted one of --prompt, --chat, --tokens and --features" "$LLMPART" run "$dir/whole"
expect 1 "the bundle has no early exits" "$LLMPART" run "$dir/whole" --tokens=1 --mode=threshold
expect 2 "found 'fast', wanted one of" "$LLMPART" run "$dir/whole" --tokens=1 --mode=fast
expect 2 "--theta: error: wanted --mode=threshold" "$LLMPART" run "$dir/whole" --tokens=1 --theta=0.5
expect 2 "--system: error: wanted --chat" "$LLMPART" run "$dir/whole" --tokens=1 --system=short
expect 2 "exclude each other" "$LLMPART" run "$dir/whole" --tokens=1 --in-process --cloud=127.0.0.1:1
expect 1 "the bundle is not split, so that no part of it runs on the worker at 127.0.0.1:1" \
  "$LLMPART" run "$dir/whole" --tokens=1 --cloud=127.0.0.1:1
: >"$dir/model.onnx"
expect 1 "model.onnx: error: a model, not a bundle: compile it first" "$LLMPART" bench "$dir/model.onnx"
expect 2 "a top-p in (0, 1]" "$LLMPART" run "$dir/whole" --tokens=1 --top-p=0

# Prompts from files, and from stdin; seeds of 64 bits
wanted=$("$LLMPART" run "$dir/whole" --tokens='1,2,3' -n 4)
printf '1\n2 3\n' >"$dir/ids"
[ "$("$LLMPART" run "$dir/whole" --tokens=@"$dir/ids" -n 4)" = "$wanted" ] || fail '--tokens=@FILE'
[ "$("$LLMPART" run "$dir/whole" --tokens=- -n 4 <"$dir/ids")" = "$wanted" ] || fail '--tokens=-'
"$LLMPART" run "$dir/whole" --tokens=1 -n 2 --temperature=1 --seed=18446744073709551615 >"$dir/made" || fail 'a seed of 64 bits'
expect 2 "'18446744073709551616' is not a whole number" "$LLMPART" run "$dir/whole" --tokens=1 --seed=18446744073709551616

# Bad input
expect 1 "absent.key: error: cannot open" "$LLMPART" worker "$dir/split" --key-file=absent.key
expect 1 "the bundle has no tokenizer" "$LLMPART" run "$dir/whole" --prompt=x
expect 1 "rows of 2 and 1 tokens" "$LLMPART" run "$dir/whole" --tokens='1,2;3'
expect 1 "token 99 lies outside of the vocabulary of 61" "$LLMPART" run "$dir/split" --tokens=1,99
expect 1 "exceed the model's context of 128" "$LLMPART" run "$dir/whole" --tokens=1,2 -n 127
for command in "run $dir/split --tokens=1" "bench $dir/split -p 1 -n 1 -r 1"; do
  # shellcheck disable=SC2086 # a list of words
  expect 2 "--cloud: error: 'there' is no address: wanted HOST:PORT or unix:PATH" "$LLMPART" $command --cloud=there
  # shellcheck disable=SC2086
  expect 2 "two addresses: wanted the name of a place before each" "$LLMPART" $command --cloud=127.0.0.1:1 --cloud=127.0.0.1:2
done
expect 2 "'127.0.0.1:1' is not the name and address of a place" "$LLMPART" worker "$dir/split" --peer=127.0.0.1:1
expect 2 "the place 'edge' has two addresses" "$LLMPART" worker "$dir/split" --peer=edge=127.0.0.1:1 --peer=edge=127.0.0.1:2
expect 1 "manifest.json: error: cannot open" "$LLMPART" run "$dir/none" --tokens=1
expect 1 "off loopback a key or certificates are required" "$LLMPART" worker "$dir/split" --listen=0.0.0.0:0
printf 'x' | dd of="$dir/split/cloud/weights.safetensors" bs=1 seek=5000 conv=notrunc 2>/dev/null
expect 1 "the file is damaged" "$LLMPART" run "$dir/split" --tokens=1 --in-process
expect 1 "cloud/weights.safetensors: error: the file is damaged" "$LLMPART" run "$dir/split" --tokens=1
sed -i 's/"op": "send"/"op": "sent"/' "$dir/tail/manifest.json"
expect 1 "manifest.json: error: programs.prefill.steps[4].op: unknown value 'sent'" "$LLMPART" run "$dir/tail" --tokens=1
