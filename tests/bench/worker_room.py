"""Answers of a split whose worker has little memory, how long they take, and a hash of all texts.

    python3 tests/bench/worker_room.py LLMPART SPLIT.llmpart BUDGET [CLIENTS] [TOKENS]

CLIENTS (32) ask `llmpart serve` at once for TOKENS (200) tokens each; its worker has --context-budget=BUDGET. Prompts and seeds differ among clients.
Only the standard library is used."""

import hashlib
import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

llmpart, split, budget = sys.argv[1:4]
clients = int(sys.argv[4]) if len(sys.argv) > 4 else 32
tokens = int(sys.argv[5]) if len(sys.argv) > 5 else 200


def start(command):
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "listening on " in line:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, line.split()[-1]
    sys.exit(f"worker_room: {command[1]} does not start")


def ask(url, client, answers):
    body = {"model": "split", "prompt": f"Once upon a time {client} of friends", "max_tokens": tokens, "temperature": 0.7, "seed": client}
    request = urllib.request.Request(f"http://{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            answers[client] = json.load(answer)["choices"][0]["text"]
    except urllib.error.HTTPError as error:
        answers[client] = error.read().decode()
        answers[clients] = answers[client]  # the last refusal


def main():
    with tempfile.TemporaryDirectory() as folder:
        worker, address = start([llmpart, "worker", split, "--listen=127.0.0.1:0", "--threads=1", f"--context-budget={budget}"])
        config = Path(folder) / "serve.yaml"
        config.write_text(f'split: {{ bundle: {Path(split).resolve()}, model: split, threads: 1, workers: ["{address}"] }}\n')
        server, url = start([llmpart, "serve", str(config), "--listen=127.0.0.1:0"])
        time.sleep(1)  # the server greets the worker
        answers, began = {}, time.monotonic()
        threads = [threading.Thread(target=ask, args=(url, client, answers)) for client in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
        refusal = answers.pop(clients, None)
        good = sum("server_error" not in text for text in answers.values())
        texts = hashlib.sha256(repr(sorted(answers.items())).encode()).hexdigest()[:12]
        print(f"{budget}: {good} of {clients} answers in {took:.1f} s, texts {texts}{f', refusal {refusal}' if refusal else ''}")
        for process in server, worker:
            process.terminate()
            process.wait()


main()
