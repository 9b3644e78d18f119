# TLS, and certificates that are renewed by SIGHUP while connections last; openssl and curl are the judges.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
command -v openssl >/dev/null || skip 'openssl is not there'
compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
compile "$default/model.onnx" "$work/split.llmpart" --tokenizer="$default/tokenizer.json" --device=jetson-nano --cloud=v100s --link=lan \
  --march=native --scheduler=cut --cut=1 || finish
certify() { # certify NAME: $work/cert.pem and key.pem for this name
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" -addext 'subjectAltName=IP:127.0.0.1' \
    -keyout "$work/fresh.key" -out "$work/fresh.pem" 2>"$work/err" || fail "openssl: $(cat "$work/err")"
  chmod 600 "$work/fresh.key"
  mv "$work/fresh.key" "$work/key.pem"
  mv "$work/fresh.pem" "$work/cert.pem"
}
subject() { # subject HOST:PORT: the name in the certificate that is shown there
  openssl s_client -connect "$1" </dev/null 2>/dev/null | openssl x509 -noout -subject 2>/dev/null | sed 's/.*CN *= *//'
}
shows() { [ "$(subject "$1")" = "$2" ]; }

certify first
cp "$work/cert.pem" "$work/first.pem"
echo 'edge: { bundle: story.llmpart, threads: 1 }
cert: cert.pem
cert_key: key.pem' >"$work/tls.yaml"
serve tls
at=${url#http://} url=https://$at
await shows "$at" first || fail "shows '$(subject "$at")'"
curl -sS --cacert "$work/first.pem" "$url/v1/models" | grep -q '"edge"' || fail 'no answer by TLS'
curl -sS --max-time 5 "http://$at/healthz" >/dev/null 2>&1 && fail 'it answers without TLS'
curl -sS --max-time 5 "$url/healthz" >/dev/null 2>&1 && fail 'a certificate that nobody trusts'
body='{"model":"edge","prompt":"Once upon a time","max_tokens":400,"temperature":0,"stream":true,"logit_bias":{"0":-100}}'
curl -sSN --cacert "$work/first.pem" -d "$body" -H 'Content-Type: application/json' --limit-rate 4k "$url/v1/completions" \
  >"$work/stream" 2>"$work/stream.err" &
stream=$!
begins() { [ -s "$work/stream" ]; }
await begins || fail 'the stream does not begin'
certify second
kill -HUP "$pid"
await shows "$at" second || fail "after SIGHUP it shows '$(subject "$at")'"
wait "$stream" || fail "the stream ends: $(cat "$work/stream.err")"
grep -q '^data: \[DONE\]' "$work/stream" || fail 'the stream is cut'
curl -sS --cacert "$work/cert.pem" "$url/v1/models" | grep -q '"edge"' || fail 'no answer by the second certificate'
# A certificate that cannot be used: the last one stays.
echo nonsense >"$work/cert.pem"
kill -HUP "$pid"
says() { grep -q 'the configuration stays as it was' "$work/tls.log"; }
sleep 0.5
shows "$at" second || fail "with a wrong file it shows '$(subject "$at")'"
kill -TERM "$pid"
wait "$pid" || fail "the server ends with $?"
says || fail "no warning: $(cat "$work/tls.log")"
url=http://$at

# The worker, and a server that trusts what it shows.
certify third
"$LLMPART" worker "$work/split.llmpart" --listen=127.0.0.1:0 --threads=1 --cert="$work/cert.pem" --cert-key="$work/key.pem" 2>"$work/worker.log" &
worker=$! started="$started $!"
listening() {
  address=$(sed -n 's/^listening on //p' "$work/worker.log")
  [ -n "$address" ]
}
await listening || fail "the worker does not start: $(cat "$work/worker.log")"
echo "split: { bundle: split.llmpart, threads: 1, workers: [\"$address\"], ca: cert.pem }" >"$work/split.yaml"
serve split
wanted=$("$LLMPART" run "$work/story.llmpart" --prompt='Once upon a time' -n 12 --threads=1)
ask='{"model":"split","prompt":"Once upon a time","max_tokens":12,"temperature":0}'
same 'by the third certificate' "$wanted" "$(post /v1/completions "$ask" | text)"
certify fourth
kill -HUP "$worker"
await shows "$address" fourth || fail "the worker shows '$(subject "$address")'"
sleep 1.2 # the server makes a connection without sessions anew, and reads the certificate that it trusts again
same 'by the fourth certificate' "$wanted" "$(post /v1/completions "$ask" | text)"
kill -TERM "$pid" "$worker"
wait "$pid" || fail "the server ends with $?"
wait "$worker" || fail "the worker ends with $?"
finish
