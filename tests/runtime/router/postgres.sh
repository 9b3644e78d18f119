# postgres.sh TEST_STORE: pools in a PostgreSQL database. The store's own tests run over it, then servers share it: each
# learns from the others, one is killed, and the database is away for a while.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
"$LLMPART" route --keywords=code --pool=postgresql://127.0.0.1:1/x 2>&1 | grep -q 'without libpq' && skip 'llmpart is built without libpq'
bin=$(find /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/local/pgsql/bin -name initdb 2>/dev/null | tail -n 1)
bin=$(dirname "${bin:-$(command -v initdb || echo none/none)}")
[ -x "$bin/initdb" ] || skip 'there is no PostgreSQL server (initdb)'
PATH=$PATH:$bin # psql is a wrapper on Debian

# PostgreSQL refuses to run as root.
user=""
if [ "$(id -u)" = 0 ]; then
  id postgres >/dev/null 2>&1 || skip 'there is no user postgres, and root may not run the server'
  user='setpriv --reuid=postgres --regid=postgres --clear-groups'
fi
data=$(mktemp -d /tmp/llmpart-pg-XXXXXX)
[ -z "$user" ] || chown postgres "$data"
database() { # database start|stop [option ...]
  # shellcheck disable=SC2086 # a list of words
  (cd "$data" && $user "$bin/pg_ctl" -s -w -D "$data/data" -l "$data/log" "$@" >/dev/null 2>&1)
}
trap 'clean_up; database stop -m immediate; rm -rf "$data"' EXIT
# shellcheck disable=SC2086
(cd "$data" && $user "$bin/initdb" -D "$data/data" -U llmpart -A trust -N) >"$work/initdb" 2>&1 || fail "initdb: $(tail -n 2 "$work/initdb")"
echo "listen_addresses = ''
unix_socket_directories = '$data'" >>"$data/data/postgresql.conf"
database start || fail "the database does not start: $(tail -n 3 "$data/log")"
pool="postgresql:///postgres?host=$data&user=llmpart"

LP_TEST_POOL=$pool "$1" >"$work/out" 2>&1 || fail "the store: $(tail -n 5 "$work/out")"
psql -q "$pool" -c 'DROP SCHEMA llmpart CASCADE' 2>/dev/null

# Three servers with a pool. Outcomes at the first and second teach the third, which has answered nothing.
compile "$default/model.onnx" "$work/story.llmpart" --tokenizer="$default/tokenizer.json" --device=host || finish
for name in one two three; do
  cat >"$work/$name.yaml" <<END
edge: { bundle: story.llmpart, threads: 1 }
cloud: { url: "http://127.0.0.1:9/v1", model: none }
router: { policy: greedy, model: lookup, pool: "$pool" }
END
  serve $name
  eval "$name=$url pid_$name=$pid"
done
decide() { # decide URL BODY: what the server says
  curl -sS --max-time 20 --json "$2" "$1/v1/router/decide"
}
teach() { # teach URL ROUTE REWARD
  id=$(decide "$1" "{\"keywords\":\"code\",\"offered\":[\"$2\"]}" | sed -n 's/^{"id":\([0-9]*\).*/\1/p')
  curl -sS --json "{\"id\":${id:-0},\"reward\":$3}" "$1/v1/router/outcome" | grep -q '^{"id"' || fail "no outcome of decision '$id'"
}
chooses() { # chooses URL ROUTE
  decide "$1" '{"keywords":"code"}' | grep -q "\"route\":\"$2\",\"source\":\"model\""
}
rows() { psql -qAt "$pool" -c "SELECT count(*) FROM llmpart.outcome"; }
# shellcheck disable=SC2154 # set by eval
{
  teach "$one" cloud 1
  teach "$two" edge 5
  await chooses "$three" edge || fail "the third learns nothing: $(decide "$three" '{"keywords":"code"}')"
  teach "$three" cloud 25
  await chooses "$one" cloud || fail 'the first does not learn from the third'

  # One is killed, and nothing of it is lost.
  teach "$two" cloud -500
  kill -9 "$pid_two"
  same 'outcomes' 4 "$(rows)"
  await chooses "$one" edge || fail 'what a killed server knew is lost'

  # Requests are answered while the database is away, which /readyz tells; then decisions are kept again.
  database stop -m immediate
  url=$one
  story='{"model":"edge","prompt":"Once","max_tokens":4,"temperature":0}'
  post /v1/completions "$story" >"$work/answer"
  same 'an answer without the database' 200 "$(cat "$work/status")"
  same 'the readiness' degraded "$(readiness)"
  database start || fail 'the database does not start again'
  kept() { post /v1/completions "$story" >/dev/null; [ "$(rows)" -gt 4 ]; }
  await kept || fail 'nothing is kept after the database is back'
}
finish
