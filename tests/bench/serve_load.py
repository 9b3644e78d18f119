"""Load on a running `llmpart serve`, or another server of OpenAI's API: tokens/s and times for numbers of clients.

serve_load.py URL MODEL [CLIENTS,...] [TOKENS] [REQUESTS] [PID]: each client sends REQUESTS requests one after the other
and reads streams of TOKENS tokens; prompts differ. The numbers of clients run in turn, twice, and the better run counts.
PID is the server's process: its CPU time for each token is told, and is steadier than tokens/s beside other work.
"Slowest client" is the tokens/s of the slowest client over those of the fastest. Only the standard library is used."""

import http.client
import json
import math
import os
import sys
import threading
import time
import urllib.parse

url, model = urllib.parse.urlsplit(sys.argv[1]), sys.argv[2]
counts = [int(n) for n in (sys.argv[3] if len(sys.argv) > 3 else "1,8,32").split(",")]
tokens = int(sys.argv[4]) if len(sys.argv) > 4 else 64
requests = int(sys.argv[5]) if len(sys.argv) > 5 else 4
pid = sys.argv[6] if len(sys.argv) > 6 else None


def cpu_seconds():
    """Of all threads of the server, those that have ended included."""
    if not pid:
        return math.nan
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(client, number, times, rates=None):
    body = {"model": model, "prompt": f"Once upon a time {client} of {number} friends", "max_tokens": tokens,
            "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
    if model != "split":  # whose worker would send the logits of each token: an answer may end early there
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
    if rates is not None:
        rates[client] = rates.get(client, 0) + made / (end - begin) / requests


def load(clients):
    times, rates = [], {}

    def work(client):
        for number in range(requests):
            ask(client, number, times, rates)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(clients)]
    begin, cpu = time.monotonic(), cpu_seconds()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, cpu = time.monotonic() - begin, cpu_seconds() - cpu
    ttft, made = sorted(t[0] for t in times), sum(t[2] for t in times)
    return (made / seconds, ttft[len(ttft) // 2], ttft[int(len(ttft) * 0.95)],
            sum(t[1] for t in times) / len(times), cpu / made, min(rates.values()) / max(rates.values()))


ask(0, 0, [])  # warm
best = {}
for _ in range(2):
    for clients in counts:
        found = load(clients)
        best[clients] = max(best.get(clients, found), found)
print("| clients | tokens/s | times one client | TTFT median | TTFT 95 % | TPOT | CPU a token | slowest client |\n" + "| --- " * 8 + "|")
for clients, (rate, median, late, tpot, cpu, slowest) in best.items():
    print(f"| {clients} | {rate:.0f} | {rate / best[counts[0]][0]:.1f} | {median * 1e3:.1f} ms | {late * 1e3:.1f} ms | "
          f"{tpot * 1e3:.2f} ms | {'-' if math.isnan(cpu) else f'{cpu * 1e3:.2f} ms'} | {slowest:.2f} |")
