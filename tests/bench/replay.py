"""One trace through `llmpart serve` and through `llmpart simulate`: mean and 95th percentile of the delay, side by side.

    python3 tests/bench/replay.py LLMPART MODEL.onnx RELAY [--seconds=20] [--rate=6] [--rounds=3] [--link=rtt=20ms,...] [--seed=1] [--quick]

The deployment: an edge and a split of the model in one server, the split's worker and a second server (the cloud) behind emulated links
(RELAY is bench_relay). First the places are measured without links: passes over 1 to 16 rows, prompts, and the server's work on a request;
then lone requests give what a round trip of the links really takes. From these a scenario predicts the trace: requests of Poisson arrivals
that name their place, and then requests that the router sends to the quickest. The places are measured before and after each trace, since
the machine's speed changes. Times are those of the server's log; the trace that is simulated has the lengths that were measured. With
--check the exit status is 4 when a mean or percentile of all requests is off by more than 10 %. --quick measures the places only roughly.
On a machine with other work run it in a session of its own whose autogroup has a negative nice value."""

import argparse
import csv
import http.client
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/default-model"))
from corpus import make_story  # noqa: E402

WIDTHS = (1, 2, 4, 8, 16)
PROMPTS = (1, 16, 32, 64, 128)
PLACES = ("edge", "cloud", "split")
MESSAGE = 45  # bytes of a message beside its hidden states


def quantile(values, share):
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


def words(seed, count):
    return " ".join(make_story(7, seed).split()[:count]) or "Once"


class Process:
    """A process of the deployment that says where it listens."""

    def __init__(self, command, marker="listening on "):
        self.process = subprocess.Popen([str(c) for c in command], stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if line.startswith(marker):
                self.address = line.split()[-1]
                break
        else:
            sys.exit(f"replay: {command[1]} does not start")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Relay:
    """Emulated links to some addresses."""

    def __init__(self, relay, shape, addresses):
        self.process = subprocess.Popen([str(relay), shape, *addresses], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        self.address = [self.process.stdout.readline().strip() for _ in addresses]

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


class Server:
    """A server with some places, and its log."""

    def __init__(self, folder, name, llmpart, text):
        self.log, config = folder / f"{name}.log", folder / f"{name}.yaml"
        self.log.unlink(missing_ok=True)
        config.write_text(f"listen: 127.0.0.1:0\nlog: {self.log.name}\n{text}")
        self.process = Process([llmpart, "serve", config])
        self.port = int(self.process.address.rsplit(":", 1)[1])

    def stop(self):
        self.process.stop()

    def ask(self, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {text[:200]}")
        return json.loads(text)

    def entries(self, since=0, count=0):
        """Those after the first `since`; waits for `count` of them, since a line may come after its answer."""
        for _ in range(500):
            found = [line for line in map(json.loads, self.log.read_text().splitlines()) if "asked" in line][since:]
            if len(found) >= count:
                break
            time.sleep(0.01)
        return found

    def together(self, bodies):
        """Sends requests at once; their entries of the log."""
        since = len(self.entries()) if self.log.exists() else 0
        threads = [threading.Thread(target=self.ask, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.entries(since, len(bodies))


def body(place, prompt, tokens, user):
    out = {"model": place, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "user": str(user)}
    if place in ("edge", "cloud"):  # the end of a text is never drawn; from a split's worker it would cost the logits of each token
        out["logit_bias"] = {"0": -100}
    return out


def measure(server, place, number):
    """Times of passes by rows of generating requests, and by rows of a lone prompt; the server's work on a request. In ms."""
    passes, prompts, rest = {}, {}, []
    server.ask(body(place, words(number, 8), 16, 0))
    for width in WIDTHS:
        found = []
        for turn in range(4 if width == 1 else 2):  # long answers, so that all run at the same time for most of them
            found += [e["tpot_ms"] for e in server.together([body(place, words(1000 * number + 100 * turn + i, 6), 300, i) for i in range(width)]) if e["tokens"] > 24]
        passes[width] = statistics.mean(found)
    for count in PROMPTS:
        found = [server.together([body(place, words(5000 + 100 * number + 10 * count + i, count), 2, i)])[0] for i in range(7)]
        found = [e for e in found if e["tokens"] > 1]  # an answer of one token has no first piece of its own
        prompts[statistics.median(e["prompt_tokens"] for e in found)] = statistics.mean(e["ttft_ms"] - e.get("queue_ms", 0) for e in found)
    lone = [server.together([body(place, words(9000 + 100 * number + i, 8), 32, i)])[0] for i in range(20)]
    for e in (e for e in lone if e["tokens"] > 1):
        rest.append(e["total_ms"] - (e["ttft_ms"] - e.get("queue_ms", 0)) - (e["tokens"] - 1) * passes[1])
    return {"passes": passes, "prompts": prompts, "request": max(0.0, statistics.mean(rest))}


ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def line(points, at):
    """Linear between points, and beyond the last as between the last two."""
    points = sorted(points.items())
    k = next((i for i, (x, _) in enumerate(points[1:], 1) if at <= x), len(points) - 1)
    (x0, y0), (x1, y1) = points[k - 1], points[k]
    return max(0.0, y0 + (y1 - y0) * (at - x0) / (x1 - x0))


def rising(values):
    out = []
    for value in values:
        out.append(max(value, out[-1] if out else value))
    return out


def table(found, share=1.0):
    """The keys of a table of passes, of the part `share` of their times."""
    rows = [[share * v for v in rising(line(found[kind], r) for r in ROWS)] for kind in ("passes", "prompts")]
    return f"{{ rows: {listed(ROWS)}, ms: {listed(rows[0])}, prompt_ms: {listed(rows[1])} }}"


def listed(values):
    return "[" + ", ".join(f"{v:.5g}" for v in values) + "]"


def mean_of(several):
    """Means over measurements of one place."""
    return {"passes": {k: statistics.mean(m["passes"][k] for m in several) for k in several[0]["passes"]},
            "prompts": {k: statistics.mean(m["prompts"].get(k, m["prompts"][min(m["prompts"], key=lambda x: abs(x - k))]) for m in several) for k in several[0]["prompts"]},
            "request": statistics.mean(m["request"] for m in several)}


def make_trace(seed, seconds, rate, auto):
    draw, at, out = random.Random(f"{seed}:{auto}"), 0.0, []
    while True:
        at += draw.expovariate(rate)
        if at > seconds:
            return out
        place = "auto" if auto else draw.choices(PLACES, (5, 3, 3))[0]
        out.append({"at": at, "place": place, "prompt": words(20000 + len(out) + 5000 * seed + (50000 if auto else 0), draw.randint(4, 60)), "tokens": draw.randint(16, 160)})


def replay(server, trace):
    """Sends the trace in time, and notes for each request its log entry."""
    begin, since, threads = time.monotonic(), len(server.entries()), []

    def send(i, request):
        request["id"] = server.ask(body(request["place"], request["prompt"], request["tokens"], i))["id"].removeprefix("cmpl-")

    for i, request in enumerate(trace):
        time.sleep(max(0, begin + request["at"] - time.monotonic()))
        request["sent"] = time.monotonic() - begin
        threads.append(threading.Thread(target=send, args=(i, request)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    by_id = {entry["id"]: entry for entry in server.entries(since, len(trace))}
    for request in trace:
        request["entry"] = by_id[request["id"]]


def simulate(llmpart, folder, trace, figures, link, rtt, policy, row_bytes, device_share):
    shape = dict(part.split("=") for part in link.split(","))
    with (folder / "trace.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["time_s", "class", "tokens", "prompt", "place"])
        out.writerows([f"{r['sent']:.6f}", "any", r["entry"]["tokens"], r["entry"]["prompt_tokens"], "" if r["place"] == "auto" else r["place"]] for r in trace)
    scenario = folder / "replay.yaml"
    scenario.write_text(f"""simulate: replay
arrivals: {{ trace: trace.csv }}
tasks: [{{ class: any, tokens: 36 }}]
backhaul: {figures['cloud']['backhaul']:.4f}ms
token_bytes: 0
edge: {{ request: {figures['edge']['request']:.4f}ms, passes: {table(figures['edge'])} }}
cloud: {{ request: {figures['cloud']['request']:.4f}ms, passes: {table(figures['cloud'])} }}
split:
  request: {figures['split']['request']:.4f}ms
  passes: {table(figures['split'], device_share)}
  worker: {table(figures['split'], 1 - device_share)}
  link: {{ rtt: {rtt:.4f}ms, up: {shape['up']}, down: {shape['down']}, row_bytes: {row_bytes}, message_bytes: {MESSAGE} }}
policies: [{policy}]
""")
    done = subprocess.run([llmpart, "simulate", scenario, "-o", "json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"replay: {done.stderr}")
    return json.loads(done.stdout)["points"][0]


def compile_all(llmpart, model, folder):
    def made(name, *options):
        out = folder / f"{name}.llmpart"
        subprocess.run([llmpart, "compile", model, *options, "-o", out], check=True, capture_output=True)
        return out

    return made("edge", "--device=host"), made("split", "--device=host", "--cloud=host", "--link=lan", "--scheduler=cut", "--cut=4")


def backends(folder, figures):
    """The file by which the server's router estimates delays: what was measured, as the simulation has it."""
    def model(place):
        found = figures[place]
        per_row = max(0.0, (line(found["prompts"], 128) - line(found["prompts"], 8)) / 120)
        return f"{{ ttft: {max(0.0, found['passes'][1] - per_row):.5g}ms, per_prompt_token: {per_row:.5g}ms, tpot: {found['passes'][1]:.5g}ms }}"
    (folder / "places.yaml").write_text("service: places\n" + "".join(f"{place}: {model(place)}\n" for place in PLACES))
    (folder / "backends.yaml").write_text(f"service: ./places.yaml\nbackhaul: {figures['cloud']['backhaul']:.4f}ms\n")


def off(found, wanted):
    return 100 * (found / wanted - 1)


def rows_of(name, trace, point):
    """Rows of a table: measured and predicted mean and 95th percentile, of all requests and of each place."""
    out = []
    for place in (None, *PLACES):
        ms = [r["entry"]["total_ms"] for r in trace if place is None or r["entry"]["route"] == place]
        at = point if place is None else point[place]
        share = 1.0 if place is None else at["share"]
        if not ms or not share:
            continue
        out.append((name, place or "all", len(ms), share * len(trace), statistics.mean(ms), 1e3 * at["delay_s"], quantile(ms, 0.95), 1e3 * at["delay_p95_s"]))
    return out


def run(args, folder):
    edge, split = compile_all(args.llmpart, args.model, folder)
    worker = Process([args.llmpart, "worker", split, "--listen=127.0.0.1:0", "--threads=1"])
    cloud = Server(folder, "cloud", args.llmpart, f"edge: {{ bundle: {edge.name}, threads: 1 }}\n")
    cloud_at = f"127.0.0.1:{cloud.port}"
    relay = Relay(args.relay, args.link, [worker.address, cloud_at])
    places = f"edge: {{ bundle: {edge.name}, threads: 1 }}\nsplit: {{ bundle: {split.name}, workers: [\"%s\"], threads: 1 }}\ncloud: {{ url: \"http://%s/v1\", model: edge }}\n"
    near = Server(folder, "near", args.llmpart, places % (worker.address, cloud_at))
    far, rows = None, []
    try:
        for turn in range(args.rounds):
            before = {place: measure(near, place, 2 * turn) for place in PLACES}
            backhaul, rtt = lone_ways(near, folder, args, places, relay, before["split"]["passes"][1])
            for auto in (False, True):
                figures = {place: before[place] for place in PLACES}
                figures["cloud"]["backhaul"] = backhaul
                backends(folder, figures)
                far = Server(folder, "far", args.llmpart, places % tuple(relay.address) + ("router: { policy: quickest, backends: backends.yaml }\n" if auto else ""))
                far.together([body(place, "Once", 4, 0) for place in PLACES])
                trace = make_trace(args.seed + turn, args.seconds, args.rate, auto)
                replay(far, trace)
                far.stop()
                far = None
                after = {place: measure(near, place, 2 * turn + 1) for place in PLACES}
                figures = {place: mean_of([before[place], after[place]]) for place in PLACES}
                figures["cloud"]["backhaul"] = backhaul
                before = after
                point = simulate(args.llmpart, folder, trace, figures, args.link, rtt, "quickest" if auto else "class", args.row_bytes, args.device_share)
                rows += rows_of("quickest" if auto else "named", trace, point)
                print(f"round {turn + 1}: edge {figures['edge']['passes']}, split {figures['split']['passes']}, requests {[round(figures[p]['request'], 2) for p in PLACES]}, to the cloud {backhaul:.1f}, round trip {rtt:.1f}", file=sys.stderr)
    finally:
        if far:
            far.stop()
        near.stop(), cloud.stop(), worker.stop(), relay.stop()
    return report(rows, args)


def lone_ways(near, folder, args, places, relay, lone_split):
    """What the links add to lone requests: the way to the cloud and back, and a round trip between the halves of the split. In ms. They are the
    same all the time, so medians keep out what else the machine did."""
    server = Server(folder, "lone", args.llmpart, places % tuple(relay.address))
    through = [e["total_ms"] for i in range(12) for e in server.together([body("cloud", words(70000 + i, 8), 2, i)])]
    turns = [e["tpot_ms"] for i in range(8) for e in server.together([body("split", words(75000 + i, 8), 24, i)]) if e["tokens"] > 8]
    server.stop()
    alone = [e["total_ms"] for i in range(12) for e in near.together([body("cloud", words(80000 + i, 8), 2, i)])]
    shape = dict(part.split("=") for part in args.link.split(","))
    up, down = (float(shape[k].removesuffix("Mbit/s")) * 1e3 for k in ("up", "down"))  # bits a ms
    sent = 8 * (args.row_bytes + MESSAGE) / up + 8 * MESSAGE / down
    return max(0.0, statistics.median(through) - statistics.median(alone)), statistics.median(turns) - lone_split - sent


def report(rows, args):
    print("| trace | place | requests | predicted | mean, ms | predicted | off | 95 %, ms | predicted | off |\n| --- " + "| --- " * 9 + "|")
    worst = 0.0
    for name, place, count, predicted, mean, mean_of_sim, late, late_of_sim in rows:
        print(f"| {name} | {place} | {count} | {predicted:.0f} | {mean:.1f} | {mean_of_sim:.1f} | {off(mean_of_sim, mean):+.1f} % | {late:.1f} | {late_of_sim:.1f} | {off(late_of_sim, late):+.1f} % |")
        if place == "all":
            worst = max(worst, abs(off(mean_of_sim, mean)), abs(off(late_of_sim, late)))
    print(f"\nThe worst of all requests together is {worst:.1f} % off.")
    return 4 if args.check and worst > 10 else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llmpart")
    parser.add_argument("model", type=Path)
    parser.add_argument("relay", type=Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rate", type=float, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--link", default="rtt=20ms,up=10Mbit/s,down=50Mbit/s")
    parser.add_argument("--row-bytes", type=int, default=512)
    parser.add_argument("--device-share", type=float, default=4 / 9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if args.quick:
        global WIDTHS, PROMPTS
        WIDTHS, PROMPTS = (1, 4), (1, 32)
    with tempfile.TemporaryDirectory() as name:
        folder = args.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        return run(args, folder)


if __name__ == "__main__":
    sys.exit(main())
