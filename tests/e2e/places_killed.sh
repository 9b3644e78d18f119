# places_killed.sh MODEL: a model over four places, as processes. Each place but the device is killed in turn, at one
# point of a text, and in the soak at two more, and started again: the text stays that of one process.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1 ids=1,5,9,20,33,2 count=48 places='edge.1 edge.2 server'
bundle=$work/four.llmpart
sed 's/^memory: .*/memory: 2300kB/' "$LP_SOURCE/hwmodels/machines/l4.yaml" >"$work/box.yaml"
"$LLMPART" compile "$model" ${LP_LEVEL:-} --place=phone=host --device-memory=1000kB --objective=latency --march=native --isl=16 --osl=16 --link=lan \
  --place=edge="$work/box.yaml",count=2 --place=server="$work/box.yaml" -o "$bundle" >"$work/out" 2>"$work/err" || { fail "$(head -n 3 "$work/err")"; finish; }
for place in $places; do
  [ -f "$bundle/$place/model.so" ] || fail "nothing is at $place"
done
want=$(tokens "$bundle" "$ids" "$count" --in-process)

# Below the ports that outgoing connections take.
port=$((20000 + $$ % 12000))
for place in $places; do
  while ss -Hltn "sport = :$port" 2>/dev/null | grep -q .; do port=$((port + 1)); done
  echo "$place=127.0.0.1:$port" >>"$work/addresses"
  port=$((port + 1))
done
address() { sed -n "s/^$1=//p" "$work/addresses"; }
others() { sed "/^$1=/d; s/^/--$2=/" "$work/addresses"; } # others NAME OPTION: the option for each place but NAME
begin() { # begin NAME: its worker
  : >"$work/$1.err"
  # shellcheck disable=SC2046 # a list of options
  "$LLMPART" worker "$bundle" --place="$1" --listen="$(address "$1")" --threads=1 $(others "$1" peer) 2>"$work/$1.err" &
  echo $! >"$work/$1.pid"
  started="$started $!"
  await grep -q 'listening on' "$work/$1.err" || fail "$1 does not listen: $(cat "$work/$1.err")"
}
for place in $places; do begin "$place"; done
# shellcheck disable=SC2046 # a list of options
same 'four processes' "$want" "$(tokens "$bundle" "$ids" "$count" $(others phone cloud))"

grows() { [ -s "$work/saved" ] && [ "$(wc -c <"$work/saved")" -ge "$1" ]; } # grows BYTES: the saved text has so many
grown_or_over() { grows "$1" || ! kill -0 "$device" 2>/dev/null; }
# killed PLACE BYTES: kills the place's worker once the saved file has BYTES bytes after its header and starts it again.
# Returns false when the text ended first, which happens on a busy machine.
killed() {
  rm -f "$work/saved"
  # shellcheck disable=SC2046 # a list of options
  "$LLMPART" run "$bundle" --tokens="$ids" -n "$count" --threads=1 --ignore-eos -o json --link=rtt=30ms --session="$work/saved" $(others phone cloud) >"$work/json" 2>"$work/err" &
  device=$!
  started="$started $device"
  await grown_or_over 1 || fail "$1: no text is saved"
  await grown_or_over $(($(wc -c <"$work/saved") + $2)) || fail "$1: the saved text does not grow"
  kill -9 "$(cat "$work/$1.pid")"
  kill -0 "$device" 2>/dev/null && generates=yes || generates=''
  sleep 0.3
  begin "$1"
  wait "$device" || fail "$1 was killed after $2 bytes: exit status $?: $(cat "$work/err")"
  same "$1 was killed after $2 bytes" "$want" "$(sequences "$work/json")"
  [ -n "$generates" ]
}
for place in $places; do
  for after in 0 24 96; do
    case $after in 24) part long ;; *) part soak ;; esac || continue
    tries=0
    until killed "$place" $after || [ $tries = 10 ]; do tries=$((tries + 1)); done
    [ $tries != 10 ] || fail "$place: the text always ended before $place was killed"
  done
done
rm -f "$work/saved"

# A place that stays away is named.
kill -9 "$(cat "$work/server.pid")"
# shellcheck disable=SC2046 # a list of options
"$LLMPART" run "$bundle" --tokens="$ids" -n "$count" --cloud-timeout=1s $(others phone cloud) >"$work/out" 2>"$work/err" && fail 'it runs without the server'
grep -q "server" "$work/err" || fail "the place that is away is not named: $(cat "$work/err")"
finish
