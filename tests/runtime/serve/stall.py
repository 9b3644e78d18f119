"""stall.py URL MODEL [--abusers N] [--rounds R] [--kind K]: the times that a client waits for each of 8 tokens, alone and
while N others ask for answers under a hostile schema, or a plain answer, in turns. Prints one line of JSON: the mean and the worst times in
milliseconds, without and with the others, and how these ended. `banned` is a token that no schema here allows: a bias
towards it makes each draw ask for all allowed tokens."""

import argparse
import collections
import http.client
import json
import multiprocessing
import time
import urllib.parse

parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("model")
parser.add_argument("--abusers", type=int, default=1)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--each", type=int, default=20, help="answers of a round")
parser.add_argument("--kind", default="arrays")
parser.add_argument("--banned", type=int, default=1)
parser.add_argument("--keys", nargs=2, default=["", ""], help="of the client and of the others")
parser.add_argument("--victim-schema", action="store_true", help="the client has a schema, too")
parser.add_argument("--hold", action="store_true", help="the others then go on until the server ends")
options = parser.parse_args()


def array(i):
    return {"type": "array", "items": {"type": "string"}, "minItems": 10 + i % 90, "title": "x" * 7}


KINDS = {
    "arrays": lambda: [array(i) for i in range(1024)],  # 81 KB
    "equal": lambda: [array(1) for _ in range(1024)],
    "fewer": lambda: [array(i) for i in range(600)],  # as many places as are followed
    "counted": lambda: [{"type": "array", "items": {"type": "string", "maxLength": 1000 - i}} for i in range(30)],
    "nested": lambda: [{"type": "array", "items": {"anyOf": [array(k) for k in range(8)]}, "minItems": i} for i in range(60)],
}


def headers(key):
    return {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}


def ask(body, on_line, key):
    at = urllib.parse.urlparse(options.url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=600)
    connection.request("POST", "/v1/completions", json.dumps(body), headers(key))
    answer = connection.getresponse()
    for line in answer:
        on_line(line)
    connection.close()
    return answer.status


def victim():
    body = {"model": options.model, "prompt": "Once upon a time", "max_tokens": 8, "temperature": 0, "stream": True}
    if options.victim_schema:
        schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    times = [time.monotonic()]
    ask(body, lambda line: times.append(time.monotonic()) if line.startswith(b"data: {") else None, options.keys[0])
    return [1e3 * (b - a) for a, b in zip(times, times[1:])]


def abuse(number, ended):
    body = {"model": options.model, "prompt": f"{number} Once upon a time", "max_tokens": 400, "temperature": 0}
    if options.kind != "plain":
        schema = {"anyOf": KINDS[options.kind]()}
        body["logit_bias"] = {str(options.banned): 100}
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    while True:
        lines = []
        try:
            status = ask(body, lines.append, options.keys[1])
        except (OSError, http.client.HTTPException):
            return
        answer = json.loads(b"".join(lines))
        ended.put(answer["choices"][0]["finish_reason"] if "choices" in answer else str(status))


def many(count):
    times = []
    for _ in range(count):
        times += victim()
    return times


def begin(ended):
    processes = [multiprocessing.Process(target=abuse, args=(i, ended), daemon=True) for i in range(options.abusers)]
    for process in processes:
        process.start()
    time.sleep(1)
    return processes


alone, beside, ended = [], [], multiprocessing.Queue()
victim()
for _ in range(options.rounds):
    alone += many(options.each)
    processes = begin(ended)
    beside += many(options.each)
    for process in processes:
        process.terminate()
    time.sleep(1)
count = collections.Counter()
while not ended.empty():
    count[ended.get()] += 1
mean = lambda times: sum(times) / max(1, len(times))
worst = lambda times: max(times, default=0)
print(json.dumps({
    "kind": options.kind, "abusers": options.abusers,
    "mean_ms": [round(mean(alone), 2), round(mean(beside), 2)], "mean_ratio": round(mean(beside) / (mean(alone) or 1), 2),
    "worst_ms": [round(worst(alone), 2), round(worst(beside), 2)], "worst_ratio": round(worst(beside) / (worst(alone) or 1), 2),
    "tokens": len(alone), "ended": count,
}), flush=True)
if options.hold:
    for process in begin(ended):
        process.join()
