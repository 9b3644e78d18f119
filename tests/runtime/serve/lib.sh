# Functions of the tests of `llmpart serve`, after those of tests/e2e/lib.sh.
command -v curl >/dev/null || skip 'curl is not there'
default=$LP_SOURCE/examples/default-model

fail() { # fail TEXT: notes a failure, and goes on unless the server is gone, without which nothing can succeed
  echo "$name: $*"
  failures=$((failures + 1))
  [ -z "${pid:-}" ] || kill -0 "$pid" 2>/dev/null || { echo "$name: the server has ended: $(tail -qn 3 "$work"/*.log 2>/dev/null)"; finish; }
}
listens() { # listens LOG
  url=$(sed -n 's/^listening on /http:\/\//p' "$1")
  [ -n "$url" ]
}
listens_or_gone() { listens "$1" || ! kill -0 "$pid" 2>/dev/null; } # listens_or_gone LOG
serve() { # serve NAME [HOST]: the server of $work/NAME.yaml; sets $url and $pid
  : >"$work/$1.log" # not the address of an earlier server of this name
  "$LLMPART" serve "$work/$1.yaml" --listen="${2-127.0.0.1}:0" 2>"$work/$1.log" &
  pid=$! started="$started $!"
  await listens_or_gone "$work/$1.log"
  [ -n "$url" ] && return
  fail "$1 does not start: $(head -n 3 "$work/$1.log")"
}
type=application/json
post() { # post PATH BODY [option ...]: the answer's body; its status is in $work/status, its head in $work/head
  path=$1 body=$2
  shift 2
  curl -sS --max-time 300 -D "$work/head" -o "$work/body" -w '%{http_code}' \
    -H "Content-Type: $type" -d "$body" "$@" "$url$path" >"$work/status"
  cat "$work/body"
}
text() { sed -n 's/.*"text":"\([^"]*\)".*/\1/p' | tr -d '\n'; }
rejected() { # rejected WHAT STATUS PATTERN PATH BODY [option ...]
  what=$1 code=$2 pattern=$3
  shift 3
  post "$@" >"$work/answer"
  same "$what: status" "$code" "$(cat "$work/status")"
  grep -Eq "\"message\":\"[^\"]*$pattern" "$work/answer" || fail "$what: $(cat "$work/answer")"
}
route() { sed -n 's/^X-Llmpart-Route: \([a-z]*\).*/\1/p' "$work/head"; }
readiness() { curl -sS "$url/readyz" | sed -n 's/^{"status":"\([a-z]*\)".*/\1/p'; } # ready, degraded or down; empty: another answer
state() { curl -sS "$url/readyz" | grep -o "\"$1\":{[^}]*}"; }                      # state PLACE

# ---- a database that servers share -----------------------------------------------------------------------------------

needs_redis() { # sets $redis_port, below the ports that outgoing connections take
  ldd "$LLMPART" | grep -q hiredis || skip 'llmpart is built without hiredis'
  command -v redis-server >/dev/null || skip 'there is no redis-server'
  redis_port=$((20000 + $$ % 12000))
  while ss -Hltn "sport = :$redis_port" 2>/dev/null | grep -q .; do redis_port=$((redis_port + 1)); done
}
cli() { redis-cli -s "$work/redis.sock" "$@"; }
redis() { # redis: starts the database; sets $database
  redis-server --port "$redis_port" --bind 127.0.0.1 --unixsocket "$work/redis.sock" --save '' --requirepass secret \
    --dir "$work" >"$work/redis.log" 2>&1 &
  database=$! started="$started $!"
  await cli -a secret ping >/dev/null 2>&1 || fail "redis does not start: $(tail -n 2 "$work/redis.log")"
}
