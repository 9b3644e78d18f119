"""A server and its worker under clients that come, go, crawl and lie, for a time; memory, descriptors and latency as a chart.

soak.py LLMPART EDGE SPLIT [--seconds 3600] [--chart soak.svg]
EDGE and SPLIT are bundles of one model. The script starts `llmpart worker SPLIT` and `llmpart serve` over both, and
checks every whole answer against the first one. Exit status 1: a wrong answer, a process that ended, or at the end
descriptors that are not given back, or memory that grows by more than a fifth and 8 MiB after the first quarter.
Only the standard library is used."""

import argparse
import http.client
import json
import os
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

parser = argparse.ArgumentParser()
parser.add_argument("llmpart")
parser.add_argument("edge")
parser.add_argument("split")
parser.add_argument("--seconds", type=float, default=3600)
parser.add_argument("--chart", default="soak.svg")
options = parser.parse_args()
folder = Path(tempfile.mkdtemp())
stop = threading.Event()
counts, latencies, samples = Counter(), [], []  # events; (time, s); (time, MiB, descriptors) for each process
lock = threading.Lock()


def count(what):
    with lock:
        counts[what] += 1


def start(*arguments):
    """A process that listens: itself and its port."""
    log = open(folder / f"{arguments[0]}.log", "w+")
    process = subprocess.Popen([options.llmpart, *arguments], stderr=log)
    while process.poll() is None:
        found = re.search(r"listening on \S*:(\d+)", Path(log.name).read_text())
        if found:
            return process, int(found.group(1))
        time.sleep(0.05)
    sys.exit(f"soak: {arguments[0]} does not start: {Path(log.name).read_text()}")


worker, worker_port = start("worker", options.split, "--listen=127.0.0.1:0", "--threads=1")
config = {
    "edge": {"bundle": os.path.abspath(options.edge), "threads": 1},
    "split": {"bundle": os.path.abspath(options.split), "workers": [f"127.0.0.1:{worker_port}"], "threads": 1},
    "router": {"policy": "edge", "pool": str(folder / "pool.db")},
}
(folder / "serve.yaml").write_text(json.dumps(config))  # JSON is YAML
server, port = start("serve", str(folder / "serve.yaml"), "--listen=127.0.0.1:0")


def request(model, stream, tokens=12):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = {"model": model, "prompt": "Once upon a time", "max_tokens": tokens, "temperature": 0, "stream": stream}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    return connection, connection.getresponse()


def text_of(stream, data):
    if not stream:
        return json.loads(data)["choices"][0]["text"]
    events = [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: {")]
    if any("error" in event for event in events):
        return None
    return "".join(choice["text"] for event in events for choice in event["choices"])


def ask(draw):
    """One answer, which must be right."""
    model, stream, begin = draw.choice(["edge", "split", "auto"]), draw.random() < 0.5, time.monotonic()
    connection, answer = request(model, stream)
    data = answer.read()
    connection.close()
    if answer.status in (429, 503):
        return count(f"refused {answer.status}")
    text = text_of(stream, data) if answer.status == 200 else None
    count("right" if text == wanted else "WRONG")
    if text != wanted:
        print(f"soak: {model}, status {answer.status}: {data[:300]!r}", file=sys.stderr)
    with lock:
        latencies.append((time.monotonic() - began, time.monotonic() - begin))


def leave(draw):
    """A stream of which only the beginning is read."""
    connection, answer = request(draw.choice(["edge", "split"]), True, 200)
    answer.read(draw.randrange(1, 200))
    connection.close()
    count("left")


def crawl(draw):
    """A request that comes byte by byte, and stays incomplete."""
    with socket.create_connection(("127.0.0.1", port), 10) as peer:
        for byte in b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"[: draw.randrange(5, 40)]:
            peer.send(bytes([byte]))
            if stop.wait(0.1):
                break
    count("crawled")


def lie(draw):
    """Bytes that are no request, or another length than is told, to the server or the worker."""
    with socket.create_connection(("127.0.0.1", draw.choice([port, worker_port])), 10) as peer:
        kind = draw.randrange(3)
        if kind == 0:
            peer.send(draw.randbytes(draw.randrange(1, 2000)))
        elif kind == 1:
            peer.send(b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n{"model":')
        peer.settimeout(draw.random())
        try:
            peer.recv(1000)
        except OSError:
            pass
    count("lied")


def client(act, seed, pause):
    draw = random.Random(seed)
    while not stop.wait(draw.random() * pause):
        try:
            act(draw)
        except (OSError, http.client.HTTPException) as error:
            count(f"{act.__name__}: {type(error).__name__}")


def figures(process):
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20, len(os.listdir(f"/proc/{process.pid}/fd"))


def take_sample():
    samples.append((time.monotonic() - began, *figures(server), *figures(worker)))


def line(values, color, x, y):
    points = " ".join(f"{x(time_s):.1f},{y(value):.1f}" for time_s, value in values)
    return f'<polyline fill="none" stroke="{color}" points="{points}"/>'


def chart():
    """Three panels over time: memory, descriptors, latency (each answer a point)."""
    width, height, panels = 800, 160, []
    columns = [("memory, MiB", [(1, "server"), (3, "worker")]), ("descriptors", [(2, "server"), (4, "worker")])]
    for at, (title, lines) in enumerate(columns):
        most = max(row[i] for row in samples for i, _ in lines) * 1.1
        top = at * (height + 40) + 20
        draw = [line([(row[0], row[i]) for row in samples], color, lambda t: 60 + t / samples[-1][0] * width,
                     lambda v, top=top, most=most: top + height * (1 - v / most))
                for (i, _), color in zip(lines, ("#1f77b4", "#d62728"))]
        panels += [f'<text x="60" y="{top - 5}">{title}: server blue, worker red; at most {most / 1.1:.0f}</text>', *draw,
                   f'<path d="M60 {top}v{height}h{width}" fill="none" stroke="#888"/>']
    top, most = 2 * (height + 40) + 20, max(s for _, s in latencies)
    panels += [f'<text x="60" y="{top - 5}">seconds for an answer of 12 tokens; at most {most:.2f}</text>',
               f'<path d="M60 {top}v{height}h{width}" fill="none" stroke="#888"/>']
    places = {f"M{60 + t / samples[-1][0] * width:.0f} {top + height * (1 - s / most):.0f}h0" for t, s in latencies}
    points = " ".join(sorted(places))
    panels += [f'<path d="{points}" stroke="#000" stroke-width="1.6" stroke-linecap="round"/>']
    Path(options.chart).write_text('<svg xmlns="http://www.w3.org/2000/svg" width="880" height="620" font-family="sans-serif" font-size="12">'
                                   + "".join(panels) + "</svg>\n")


began = time.monotonic()
wanted = text_of(False, request("edge", False)[1].read())
if text_of(False, request("split", False)[1].read()) != wanted:
    sys.exit("soak: edge and split differ")
time.sleep(1)
take_sample()
kinds = [(ask, 0.5)] * 4 + [(leave, 1)] * 2 + [(crawl, 0.2)] * 4 + [(lie, 0.5)] * 2
threads = [threading.Thread(target=client, args=(act, seed, pause)) for seed, (act, pause) in enumerate(kinds)]
for thread in threads:
    thread.start()
while time.monotonic() - began < options.seconds and server.poll() is None and worker.poll() is None:
    time.sleep(max(0.2, options.seconds / 600))
    if server.poll() is None and worker.poll() is None:
        take_sample()
stop.set()
for thread in threads:
    thread.join()
faults = [f"{counts['WRONG']} wrong answers"] if counts["WRONG"] else []
faults += [f"the {name} ended with {process.poll()}" for name, process in (("server", server), ("worker", worker)) if process.poll() is not None]
if not faults:
    for _ in range(100):  # what the last clients held is given back
        time.sleep(0.3)
        take_sample()
        if samples[-1][2] <= samples[0][2] + 4 and samples[-1][4] <= samples[0][4] + 4:
            break
    quarter = samples[len(samples) // 4]
    for name, at in (("server", 1), ("worker", 3)):
        if samples[-1][at] > quarter[at] * 1.2 + 8:
            faults.append(f"the {name}'s memory grew from {quarter[at]:.0f} to {samples[-1][at]:.0f} MiB")
        if samples[-1][at + 1] > samples[0][at + 1] + 4:
            faults.append(f"the {name} has {samples[-1][at + 1]} descriptors, {samples[0][at + 1]} at first")
    chart()
    for name, process in (("server", server), ("worker", worker)):
        process.send_signal(signal.SIGTERM)
        if process.wait(60) != 0:
            faults.append(f"the {name} ends with {process.returncode}")
ordered = sorted(s for _, s in latencies)
print(", ".join(f"{what} {number}" for what, number in sorted(counts.items())))
print(f"server {samples[0][1]:.0f} to {samples[-1][1]:.0f} MiB, descriptors {samples[0][2]} to {samples[-1][2]}; worker {samples[0][3]:.0f} to "
      f"{samples[-1][3]:.0f} MiB, descriptors {samples[0][4]} to {samples[-1][4]}; an answer {ordered[len(ordered) // 2]:.3f} s, "
      f"p99 {ordered[int(len(ordered) * 0.99)]:.3f}, longest {ordered[-1]:.3f}")
for fault in faults:
    print(f"soak: {fault}")
for process in (server, worker):
    if process.poll() is None:
        process.kill()
sys.exit(bool(faults))
