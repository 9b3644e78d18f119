# What strangers cannot do: learn the words of another key's prompt, read log and pool, send messages that two readers
# understand in two ways, or end the server with SIGHUP.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
export ONE=one-secret TWO=two-secret THREE=three-secret
cat >"$work/keys.yaml" <<'END'
edge: { bundle: story.llmpart, threads: 1 }
keys:
  - { name: one, key_env: ONE, tenant: shop }
  - { name: two, key_env: TWO, tenant: shop }
  - { name: three, key_env: THREE, parallel: 2 }
router: { policy: rule, pool: pool.db }
log: requests.log
END
serve keys
words='Once upon a time there was a little girl who lived in a small house near the wood with her mother and her father and a dog and a cat and'
ask="{\"model\":\"edge\",\"prompt\":\"$words $words\",\"max_tokens\":2,\"temperature\":0}"
cached() { # cached KEY: the tokens that it is told were there
  post /v1/completions "$ask" -H "Authorization: Bearer $1" | sed 's/.*"cached_tokens":\([0-9]*\).*/\1/'
}
same 'the first request' 0 "$(cached $ONE)"
shared=$(cached $ONE)
[ "$shared" -ge 32 ] || fail "a key's own words: $shared"
same 'a key of the same tenant' "$shared" "$(cached $TWO)"
same 'a key of the same tenant, as Anthropic sends it' "$shared" "$(post /v1/completions "$ask" -H "x-api-key: $TWO" | sed 's/.*"cached_tokens":\([0-9]*\).*/\1/')"
rejected 'no key' 401 'the key is missing' /v1/completions "$ask" -H 'x-api-key: other'
same 'a stranger' 0 "$(cached $THREE)"
same "the stranger's own words" "$shared" "$(cached $THREE)"
same 'the log' 600 "$(stat -c %a "$work/requests.log")"
for file in "$work"/pool.db*; do
  same "${file##*/}" 600 "$(stat -c %a "$file")"
done
# Decisions of the router belong to the key that asked, or to its tenant.
decided=$(post /v1/router/decide '{"keywords":"secret words"}' -H "Authorization: Bearer $ONE" | sed 's/.*"id":\([0-9]*\).*/\1/')
explain() { curl -s -H "Authorization: Bearer $1" "$url/v1/router/explain/$decided"; }
case $(explain $TWO) in *'secret words'*) ;; *) fail "the tenant: $(explain $TWO)" ;; esac
same 'a stranger asks' '{"error":{"message":"no decision '"$decided"'","type":"invalid_request_error","param":null,"code":null}}' "$(explain $THREE)"
outcome() { post /v1/router/outcome "{\"id\":$decided,\"reward\":$2}" -H "Authorization: Bearer $1"; }
same 'a stranger reports' "$(explain $THREE)" "$(outcome $THREE 1)"
case $(outcome $ONE 1e300) in *"'reward' must be"*) ;; *) fail 'a reward of 1e300 is taken' ;; esac
same 'the outcome' "{\"id\":$decided}" "$(outcome $TWO 1.5)"
# Each answer counts.
case $(post /v1/completions '{"model":"edge","prompt":"a","n":3,"max_tokens":2}' -H "Authorization: Bearer $THREE") in
*'more answers than the key may have'*) ;; *) fail 'three answers at a time' ;;
esac
# Malformed and oversized messages.
"${LP_PYTHON:-python3}" "$LP_SOURCE/tests/runtime/serve/messages.py" "${url#http://}" "$ONE" >"$work/found" 2>&1 ||
  fail "HTTP: $(cat "$work/found")"
kill -HUP "$pid"
says() { grep -q 'the configuration was read again' "$work/keys.log"; }
await says || fail "SIGHUP: $(cat "$work/keys.log")"
same 'after SIGHUP' "$shared" "$(cached $ONE)"
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"

"$LLMPART" compile "$default/model.onnx" -O0 --device=jetson-nano --cloud=v100s --link=lan --march=native --scheduler=cut --cut=1 \
  -o "$work/split.llmpart" --quiet || fail 'no split'
"$LLMPART" worker "$work/split.llmpart" --listen=127.0.0.1:0 --threads=1 2>"$work/worker.log" &
worker=$! started="$started $!"
listens() { grep -q '^listening on ' "$work/worker.log"; }
await listens || fail "the worker does not start: $(cat "$work/worker.log")"
kill -HUP "$worker"
tells() { grep -q 'there are no certificates or keys to read again' "$work/worker.log"; }
await tells || fail "SIGHUP: $(cat "$work/worker.log")"
kill -TERM "$worker"
wait "$worker" || fail "the worker ends with $?"
finish
