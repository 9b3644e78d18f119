"""Mixed requests for a deployment, and a comparison of two runs.

load.py URL CLIENTS REQUESTS SETS [FILE]: sends REQUESTS requests of each of SETS sets, with CLIENTS at a time, and prints
a line of JSON for each answer; again and again until FILE is there. The exit status is 1 if one was lost.
load.py --compare QUIET LOAD LOG: the answers of two runs must be equal; prints how the log says they were routed."""

import collections
import http.client
import itertools
import json
import os
import sys
import threading
import time
import urllib.parse

PROMPTS = ["Once upon a time", "The dog ran to the", "One day a girl found a", "It was raining, and", "The old man had a boat that"]
PLACES = ["auto", "split", "auto", "edge", "split", "cloud"]


def request(group, number):
    n = group * 31 + number
    body = {"model": PLACES[n % len(PLACES)], "prompt": PROMPTS[n % len(PROMPTS)], "max_tokens": 8 + n * 7 % 90, "stream": n % 3 != 0}
    body.update({"temperature": 0} if n % 2 else {"temperature": 0.9, "top_p": 0.95, "seed": n})
    if n % 7 == 0:
        body["stop"] = [". The"]
    return body


def read(response, stream):
    """The text; None: the answer is incomplete."""
    if not stream:
        return json.loads(response.read())["choices"][0]["text"]
    text, done = "", False
    for line in response:
        if line.startswith(b"data: [DONE]"):
            done = True
        elif line.startswith(b"data: {"):
            event = json.loads(line[6:])
            if "error" in event:
                raise RuntimeError(event["error"]["message"])
            text += event["choices"][0]["text"] if event["choices"] else ""
    if not done:
        raise RuntimeError("the stream ends without [DONE]")
    return text


def ask(url, body):
    """Asks until the place has room: 503 with a full queue is the answer to a client that sends too much at once."""
    while True:
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=120)
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status == 200:
            return response.getheader("X-Llmpart-Route"), read(response, body["stream"])
        message = json.loads(response.read())["error"]["message"]
        if response.status != 503 or "saturated" not in message:
            raise RuntimeError(f"status {response.status}: {message}")
        time.sleep(0.05)


def load(url, clients, requests, groups, until=None):
    work = [(group, number) for number in range(requests) for group in range(groups)]
    count, lock, lost = itertools.count(), threading.Lock(), []

    def run():
        while True:
            at = next(count)
            if at >= len(work) and (until is None or os.path.exists(until)):
                return
            group, number = work[at % len(work)]
            body, begin, found = request(group, number), time.monotonic(), {}
            try:
                found["route"], found["text"] = ask(url, body)
            except (OSError, RuntimeError, http.client.HTTPException) as error:
                found["error"] = str(error)
                lost.append(error)
            with lock:
                print(json.dumps({"id": f"{group}.{number}", "asked": body["model"], "seconds": round(time.monotonic() - begin, 3), **found}), flush=True)

    threads = [threading.Thread(target=run) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 1 if lost else 0


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def compare(quiet, loaded, log):
    wanted = {a["id"]: a for a in lines(quiet)}
    found, wrong = lines(loaded), 0
    for answer in found:
        if "error" in answer:
            print(f"{answer['id']} ({answer['asked']}) was lost: {answer['error']}")
        elif answer["text"] != wanted[answer["id"]].get("text"):
            wrong += 1
            print(f"{answer['id']} by {answer['route']}: wanted {wanted[answer['id']].get('text')!r}, found {answer['text']!r}")
    lost = sum("error" in a for a in found) + len(wanted.keys() - {a["id"] for a in found})
    ways = collections.Counter((e["asked"], e.get("route", "-"), e.get("decided_by", "-"), e.get("fell_back", False), "failed" if "error" in e else "answered")
                               for e in lines(log) if "asked" in e)
    print(f"{'asked':8}{'route':8}{'decided by':12}{'fell back':11}{'result':10}requests")
    for (asked, route, by, fell, result), count in sorted(ways.items()):
        print(f"{asked:8}{route:8}{by:12}{'yes' if fell else 'no':11}{result:10}{count}")
    times = sorted(a["seconds"] for a in found)
    print(f"{len(found)} requests: {lost} lost, {wrong} wrong; median {times[len(times) // 2]:.2f} s, longest {times[-1]:.2f} s")
    return 1 if lost or wrong else 0


if sys.argv[1] == "--compare":
    sys.exit(compare(*sys.argv[2:5]))
sys.exit(load(urllib.parse.urlsplit(sys.argv[1]), *(int(n) for n in sys.argv[2:5]), *sys.argv[5:6]))
