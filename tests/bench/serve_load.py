"""Load on a running `llmpart serve`, or another server of OpenAI's API: tokens/s and times for numbers of clients.

serve_load.py URL MODEL [CLIENTS,...] [TOKENS] [REQUESTS]: each client sends REQUESTS requests one after the other and
reads streams of TOKENS tokens; prompts differ. The numbers of clients run in turn, twice, and the better run counts.
Only the standard library is used."""

import http.client
import json
import sys
import threading
import time
import urllib.parse

url, model = urllib.parse.urlsplit(sys.argv[1]), sys.argv[2]
counts = [int(n) for n in (sys.argv[3] if len(sys.argv) > 3 else "1,8,32").split(",")]
tokens = int(sys.argv[4]) if len(sys.argv) > 4 else 64
requests = int(sys.argv[5]) if len(sys.argv) > 5 else 4


def ask(client, number, times):
    body = {"model": model, "prompt": f"Once upon a time {client} of {number} friends", "max_tokens": tokens,
            "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
    if model != "split":  # whose worker draws: an answer may end early there
        body["logit_bias"] = {"0": -100}
    begin, first, made = time.monotonic(), None, 0
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=600)
    connection.request("POST", url.path + "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    for line in connection.getresponse():
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        if event["choices"] and first is None:
            first = time.monotonic()
        if event.get("usage"):
            made = event["usage"]["completion_tokens"]
    end = time.monotonic()
    times.append((first - begin, (end - first) / max(1, made - 1), made))


def load(clients):
    times = []

    def work(client):
        for number in range(requests):
            ask(client, number, times)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(clients)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begin
    ttft = sorted(t[0] for t in times)
    return (sum(t[2] for t in times) / seconds, ttft[len(ttft) // 2], ttft[int(len(ttft) * 0.95)],
            sum(t[1] for t in times) / len(times))


ask(0, 0, [])  # warm
best = {}
for _ in range(2):
    for clients in counts:
        found = load(clients)
        best[clients] = max(best.get(clients, found), found)
print("| clients | tokens/s | times one client | TTFT median | TTFT 95 % | TPOT |\n| --- | --- | --- | --- | --- | --- |")
for clients, (rate, median, late, tpot) in best.items():
    print(f"| {clients} | {rate:.0f} | {rate / best[counts[0]][0]:.1f} | {median * 1e3:.1f} ms | {late * 1e3:.1f} ms | {tpot * 1e3:.2f} ms |")
