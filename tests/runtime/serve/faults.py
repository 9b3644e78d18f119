"""Faults between a server and its places, while clients ask over HTTP: faults.py LLMPART EDGE SPLIT SCRIPTS [SEED]

EDGE and SPLIT are bundles of one model. `llmpart serve` has the edge, two workers behind relays, and a cloud that this
script plays. Each script draws a fault and four requests that run while it happens: a worker is killed and started
again, stopped for a while, its connections are cut or stall; the cloud refuses, is silent, hangs up or sends garbage;
a client leaves. Every whole answer must be the model's text. Others must end with an error: with a status of 500 or
more before the first byte, by an error event without [DONE] after it. A request to `auto` that has had no byte of its
answer must be answered, since the edge is there. At the end all places are up again and answer. Prints what happened; the
exit status is 1 if something was wrong.
"""

import http.client
import http.server
import json
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

llmpart, edge, split, scripts = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve(), int(sys.argv[4])
first_seed = int(sys.argv[5]) if len(sys.argv) > 5 else 1
folder = Path(tempfile.mkdtemp())
PROMPT, TOKENS = "Once upon a time", 12
counts, wrongs, lock = Counter(), [], threading.Lock()


def note(what, detail=None):
    with lock:
        counts[what] += 1
        if detail is not None:
            wrongs.append(f"{what}: {detail}")


def start(name, *arguments):
    """A process that listens: itself and its port."""
    log = folder / f"{name}.log"
    process = subprocess.Popen([llmpart, *map(str, arguments)], stderr=open(log, "w"))
    while process.poll() is None:
        found = re.search(r"listening on \S*:(\d+)", log.read_text())
        if found:
            return process, int(found.group(1))
        time.sleep(0.02)
    sys.exit(f"faults: {name} does not start: {log.read_text()}")


class Relay:
    """Carries connections to a worker, and cuts or stalls them."""

    def __init__(self, number):
        self.number, self.target, self.pairs, self.flows = number, 0, [], threading.Event()
        self.flows.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        self.begin()

    def begin(self):
        self.worker, self.target = start(f"worker{self.number}", "worker", split, "--listen=127.0.0.1:0", "--threads=1")

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            try:
                far = socket.create_connection(("127.0.0.1", self.target), 5)
                far.settimeout(None)
            except OSError:
                near.close()
                continue
            self.pairs.append((near, far))
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(a, b), daemon=True).start()

    def carry(self, a, b):
        try:
            while data := a.recv(1 << 16):
                self.flows.wait()
                b.sendall(data)
        except OSError:
            pass
        for end in (a, b):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        for pair in self.pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.pairs = []


class Cloud(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fault, text = None, ""

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except OSError:  # the server did not wait
            pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fault, text = Cloud.fault, Cloud.text
        self.close_connection = True
        if fault == "silent":
            time.sleep(0.8)  # longer than the server waits
            return
        if fault in ("500", "503", "429"):
            data = b'{"error": {"message": "as told", "type": "server_error"}}'
            self.send_response(int(fault))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            return
        if fault == "hang up":
            return
        data = self.answer(body["stream"], text)
        if fault == "garbage":
            data = random.Random(len(data)).randbytes(len(data))
        if fault in ("truncated", "short"):
            data = data[: len(data) // 2]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if body["stream"] else "application/json")
        if not body["stream"]:
            self.send_header("Content-Length", str(len(data) + (100 if fault == "truncated" else 0)))
        self.end_headers()
        self.wfile.write(data)

    @staticmethod
    def answer(stream, text):
        usage = {"prompt_tokens": 4, "completion_tokens": TOKENS, "total_tokens": 4 + TOKENS}
        choice = {"index": 0, "text": text, "finish_reason": "length"}
        if not stream:
            return json.dumps({"choices": [choice], "usage": usage}).encode()
        half = len(text) // 2
        pieces = [{"index": 0, "text": part, "finish_reason": None} for part in (text[:half], text[half:])]
        events = [{"choices": [c]} for c in (*pieces, choice | {"text": ""})] + [{"choices": [], "usage": usage}]
        return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode() + b"data: [DONE]\n\n"


def request(port, model, stream, tokens=TOKENS):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    body = {"model": model, "prompt": PROMPT, "max_tokens": tokens, "temperature": 0, "stream": stream}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    return connection.getresponse()


def streamed(data):
    """The text, whether [DONE] came, and whether an error did."""
    lines = [line[6:] for line in data.decode().splitlines() if line.startswith("data: ")]
    events = [json.loads(line) for line in lines if line != "[DONE]"]
    text = "".join(choice["text"] for event in events for choice in event.get("choices", ()))
    return text, "[DONE]" in lines, any("error" in event for event in events)


def ask(port, model, stream, what):
    """One request. Its answer is whole and right, or an error."""
    try:
        answer = request(port, model, stream)
        data = answer.read()
    except (OSError, http.client.HTTPException) as error:
        return note("NO ANSWER", f"{what}, {model}: {type(error).__name__} {error}")
    if answer.status != 200:
        error = json.loads(data)["error"]
        if answer.status < 500 or not error["message"] or model in ("auto", "edge"):
            return note("REFUSED", f"{what}, {model}: {answer.status} {data!r}")
        return note("refused with a reason")
    if not stream:
        text, done, failed = json.loads(data)["choices"][0]["text"], True, False
    else:
        text, done, failed = streamed(data)
    if failed and not done and Cloud.text.startswith(text):
        return note("ended by an error event")
    if done and not failed and text == Cloud.text:
        return note("right")
    return note("WRONG", f"{what}, {model}, stream {stream}: {data[-300:]!r}")


def leave(port, draw):
    try:
        answer = request(port, draw.choice(["edge", "split"]), True, 200)
        answer.read(draw.randrange(1, 100))
        answer.close()
    except (OSError, http.client.HTTPException) as error:
        return note("NO ANSWER", f"a client that leaves: {type(error).__name__} {error}")
    return note("left")


def kill(draw, relay):
    time.sleep(draw.random() * 0.05)
    relay.worker.kill()
    relay.worker.wait()
    relay.begin()


def stop(draw, relay):
    relay.worker.send_signal(signal.SIGSTOP)
    time.sleep(draw.random() * 0.3)
    relay.worker.send_signal(signal.SIGCONT)


def cut(draw, relay):
    for _ in range(draw.randrange(1, 4)):
        time.sleep(draw.random() * 0.02)
        relay.cut()


def stall(draw, relay):
    relay.flows.clear()
    time.sleep(draw.random() * 0.3)
    relay.flows.set()


def misbehave(draw, _):
    Cloud.fault = draw.choice(["500", "503", "429", "silent", "hang up", "garbage", "truncated", "short"])
    time.sleep(0.05)
    return Cloud.fault


def run_script(seed, port, relays):
    draw = random.Random(seed)
    fault, relay = draw.choice([kill, stop, stop, cut, cut, cut, stall, misbehave, misbehave, misbehave]), draw.choice(relays)
    what = f"script {seed}, {fault.__name__}"
    threads = [threading.Thread(target=ask, args=(port, draw.choice(["auto", "auto", "split", "cloud", "edge"]),
                                                  draw.random() < 0.5, what)) for _ in range(4)]
    threads += [threading.Thread(target=leave, args=(port, draw))] if draw.random() < 0.2 else []
    act = threading.Thread(target=fault, args=(draw, relay))
    for thread in [act, *threads]:
        thread.start()
    for thread in [act, *threads]:
        thread.join()
    note(f"fault: {fault.__name__}" + (f" ({Cloud.fault})" if fault is misbehave else ""))
    Cloud.fault = None


def begun_answers(cloud):
    """A cloud that ends in the middle of answers: the edge gives whole ones again."""
    config = {"edge": {"bundle": str(edge), "threads": 1}, "cloud": cloud, "router": {"policy": "cloud", "rule": "edge"}}
    (folder / "begun.yaml").write_text(json.dumps(config))
    server, port = start("begun", "serve", folder / "begun.yaml", "--listen=127.0.0.1:0")
    Cloud.text = json.loads(request(port, "edge", False).read())["choices"][0]["text"]
    for Cloud.fault in ("short", "truncated", "garbage", "hang up"):
        for stream in (False, True):
            ask(port, "auto", stream, f"begun answers, {Cloud.fault}")
        time.sleep(1)  # the circuit breaker lets another request through
    Cloud.fault = None
    server.terminate()
    if server.wait(60) != 0:
        note("ENDED", f"the server of begun answers with {server.returncode}")


def main():
    cloud = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cloud)
    threading.Thread(target=cloud.serve_forever, daemon=True).start()
    api = {"url": f"http://127.0.0.1:{cloud.server_port}/v1", "model": "any", "timeout": "500ms"}
    begun_answers(api)
    relays = [Relay(1), Relay(2)]
    config = {"edge": {"bundle": str(edge), "threads": 1},
              "split": {"bundle": str(split), "workers": [relay.address for relay in relays], "threads": 1},
              "cloud": api,
              "router": {"policy": "random", "rule": "edge"}}
    (folder / "serve.yaml").write_text(json.dumps(config))  # JSON is YAML
    server, port = start("serve", "serve", folder / "serve.yaml", "--listen=127.0.0.1:0")
    Cloud.text = json.loads(request(port, "edge", False).read())["choices"][0]["text"]
    for seed in range(first_seed, first_seed + scripts):
        run_script(seed, port, relays)
        if server.poll() is not None:
            note("ENDED", f"the server, in script {seed}, with {server.returncode}")
            break
    until = time.monotonic() + 120
    for model in ("edge", "split", "cloud"):
        while server.poll() is None and time.monotonic() < until and request(port, model, False).read().find(b'"choices"') < 0:
            time.sleep(0.5)
        ask(port, model, True, "at the end")
    ready = {}
    while server.poll() is None and time.monotonic() < until and ready.get("status") != "ready":
        time.sleep(0.2)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/readyz")
        ready = json.loads(connection.getresponse().read())
    if ready.get("status") != "ready":
        note("NOT READY", ready)
    server.terminate()
    if server.wait(60) != 0:
        note("ENDED", f"the server with {server.returncode}")
    for relay in relays:
        relay.worker.kill()
    for what, number in sorted(counts.items()):
        print(f"{number:6} {what}")
    for wrong in wrongs[:20]:
        print(f"faults: {wrong}")
    sys.exit(1 if wrongs else 0)


main()
