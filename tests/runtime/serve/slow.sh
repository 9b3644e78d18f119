# 300 clients that send their requests byte by byte shut nobody out.
. "$LP_SOURCE/tests/e2e/lib.sh"
. "$LP_SOURCE/tests/runtime/serve/lib.sh"
echo 'cloud: { url: http://127.0.0.1:1/v1, model: large }' >"$work/slow.yaml"
serve slow
cat >"$work/crawl.py" <<'END'
import socket, sys, time
host, port, ready = sys.argv[1], int(sys.argv[2]), sys.argv[3]
peers = []
for i in range(300):
    peers.append(socket.create_connection((host, port), 60))
    peers[-1].sendall(b"GET /healthz HTTP/1.1\r\nX-")
open(ready, "w").close()
while True:
    time.sleep(1)
    for peer in peers:
        try:
            peer.send(b"a")
        except OSError:
            pass
END
address=${url#http://}
python3 "$work/crawl.py" "${address%:*}" "${address##*:}" "$work/ready" &
started="$started $!"
await [ -e "$work/ready" ]
for i in 1 2 3; do
  same "health $i" '{"status":"ok"}' "$(curl -sS --max-time 300 "$url/healthz")"
done
kill "$pid"
wait "$pid" || fail "the server ends with $?"
finish
