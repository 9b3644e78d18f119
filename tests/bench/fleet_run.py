"""Runs the fleets that `llmpart fleet` chooses for some loads, and prints what it predicted beside what was measured.

    python3 tests/bench/fleet_run.py LLMPART MODEL.onnx RELAY --vocab=49152 [--rates=2,4,6] [--fewer=4] [--seconds=600] [--alone] [--keep=DIR]

A machine of the fleet is one thread of `llmpart serve` on a core of its own, measured by `llmpart hw profile` while the other cores
generate, so that all share the memory as the servers will. With --alone the other cores are idle, and there is one machine. MODEL is
served in int8 by the configuration that `--deploy` writes. Clients send a trace of Poisson arrivals over emulated links (RELAY is
bench_relay) to the server with the fewest requests; the lengths are those of the specification, and the prompts are random token numbers,
of which no two begin alike. --fewer are rates that run again with one machine fewer than the fleet has. Utilisation is from the
servers' /metrics. The machine should be idle."""

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

LENGTHS = ((64, 48, 0.6), (256, 96, 0.4))
LIMITS = {"ttft": 1.0, "tpot": 0.03}
LINK = "rtt=30ms,up=10Mbit/s,down=50Mbit/s"
SHARES = (50, 95, 99)


def quantile(values, percent):
    ordered = sorted(values)
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


def profile(args, folder, cores):
    """The file of a machine that is the first of `cores`, measured while the others generate, because all share the memory."""
    file, bundle = folder / "core.yaml", folder / "busy.llmpart"
    if file.exists():
        return file
    subprocess.run([args.llmpart, "compile", args.model, "--device=jetson-nano", "--march-device=native", "--dtype-device=int8", "--activations=auto",
                    "-o", bundle, "--quiet"], check=True)
    busy = [subprocess.Popen(["taskset", "-c", str(core), args.llmpart, "bench", bundle, "-p", "0", "-n", "1000", "-r", "1000", "-t", "1"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for core in cores[1:] if not args.alone]
    home = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(["taskset", "-c", str(cores[0]), args.llmpart, "hw", "profile", "--threads=1", "-o", file], env=home)
    for other in busy:
        other.kill()
        other.wait()
    if done.returncode:
        sys.exit("fleet_run: `llmpart hw profile` failed")
    return file


def plan(args, folder, machine, rate):
    """The report of the fleet for `rate` requests/s, and the folder of its deployment."""
    spec, out = folder / f"rate{rate:g}.yaml", folder / f"rate{rate:g}"
    lengths = "".join(f"  - {{ isl: {isl}, osl: {osl}, share: {share} }}\n" for isl, osl, share in LENGTHS)
    limits = ", ".join(f"{name}: {{ p95: {limit}s }}" for name, limit in LIMITS.items())
    spec.write_text(f"model: {args.model.resolve()}\nload: {{ rate: {rate} }}\nlengths:\n{lengths}classes:\n"
                    f'  - {{ name: users, share: 1, device: jetson-nano, link: "{LINK}", limits: {{ {limits} }} }}\n'
                    f"machines: [{{ machine: {machine.name}, usd_per_hour: 1 }}]\ndtypes: {{ device: f32, cloud: int8 }}\nrequests: 100000\n")
    subprocess.run([args.llmpart, "fleet", spec, "-o", f"{out}.json", f"--deploy={out}", "--quiet"], check=True)
    return json.loads(Path(f"{out}.json").read_text()), out


def simulate(args, folder, rate, machines):
    """The predicted times of the class and the share of time in passes, with this number of machines."""
    spec = folder / f"judge{rate:g}.yaml"
    spec.write_text(f"fleet: rate{rate:g}.json\nrequests: 100000\nreplicas: {machines}\n")
    done = subprocess.run([args.llmpart, "simulate", spec, "-o", "json"], check=True, capture_output=True, text=True)
    point = json.loads(done.stdout)["points"][0]
    return point["classes"][0], point["pools"][0]["busy"]


class Server:
    """A machine of the fleet, and an emulated link to it."""

    def __init__(self, args, deployment, cores, number):
        text = next(deployment.glob("*.serve.yaml")).read_text()
        text = re.sub(r"(?m)^listen: .*$", "listen: 127.0.0.1:0", re.sub(r"(?m)^key_env: .*\n", "", text))
        text = re.sub(r"window: \S+", "window: 3600s", text.replace("edge: {", "edge: { threads: 1,"))
        config = deployment / f"server{number}.yaml"
        config.write_text(text)
        self.process = subprocess.Popen(["taskset", "-c", cores, args.llmpart, "serve", config], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if line.startswith("listening on "):
                self.address = line.split()[-1].removeprefix("http://")
                break
        self.relay = subprocess.Popen([str(args.relay), LINK, self.address], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        self.far = self.relay.stdout.readline().strip()
        self.running = 0

    def busy(self):
        """Seconds in passes so far."""
        with urllib.request.urlopen(f"http://{self.address}/metrics") as answer:
            return float(re.search(r"(?m)^llmpart_pass_seconds_total\S* (\S+)$", answer.read().decode()).group(1))

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.relay.stdin.close()
        self.relay.wait()


def make_trace(seed, seconds, rate, vocab):
    """Requests of Poisson arrivals; answers may not end before their length: token 0 is the end of a text."""
    draw, at, out = random.Random(seed), 0.0, []
    while (at := at + draw.expovariate(rate)) < seconds:
        isl, osl, _ = draw.choices(LENGTHS, [share for *_, share in LENGTHS])[0]
        prompt = [draw.randrange(3, vocab) for _ in range(isl)]
        out.append((at, json.dumps({"prompt": prompt, "max_tokens": osl, "temperature": 0, "stream": True, "logit_bias": {"0": -100, "2": -100}}), osl))
    return out


async def ask(servers, body, osl, times):
    server = min(servers, key=lambda one: one.running)
    server.running += 1
    host, port = server.far.split(":")
    begin, first, last, end = time.monotonic(), None, None, False
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                 f"Connection: close\r\n\r\n{body}".encode())
    while line := await reader.readline():
        end |= line.startswith(b"data: [DONE]")
        if line.startswith(b"data: {") and b'"text"' in line and b'"finish_reason":null' in line.replace(b" ", b""):
            last = time.monotonic()
            first = first or last
    writer.close()
    server.running -= 1
    if not end or first is None:
        sys.exit("fleet_run: a request failed")
    times.append({"ttft": first - begin, "tpot": (last - first) / (osl - 1), "answer": last - begin})


async def send(servers, trace):
    begin, times, tasks = time.monotonic(), [], []
    for at, body, osl in trace:
        await asyncio.sleep(max(0, begin + at - time.monotonic()))
        tasks.append(asyncio.create_task(ask(servers, body, osl, times)))
    await asyncio.gather(*tasks)
    return times


def run(args, deployment, rate, machines, cores):
    """Times of requests, and the share of the machines' time in passes."""
    servers = [Server(args, deployment, ",".join(map(str, cores)) if args.alone else str(cores[i]), i) for i in range(machines)]
    try:
        asyncio.run(send(servers, make_trace(-1, 5, rate, args.vocab)))  # the first passes read the weights from the file
        busy, begin = sum(server.busy() for server in servers), time.monotonic()
        times = asyncio.run(send(servers, make_trace(args.seed, args.seconds, rate, args.vocab)))
        return times, (sum(server.busy() for server in servers) - busy) / machines / (time.monotonic() - begin)
    finally:
        for server in servers:
            server.stop()


def rows_of(title, predicted, busy, times, measured_busy):
    """Rows of the table: a figure, predicted and measured, and how far the prediction is off."""
    out = [f"| {title}, {len(times)} requests | busy | {100 * busy:.1f} % | {100 * measured_busy:.1f} % | {100 * (busy - measured_busy):+.1f} points | |"]
    for name in ("ttft", "tpot", "answer"):
        values = [one[name] for one in times]
        for percent in SHARES:
            found, said = 1e3 * quantile(values, percent), predicted[f"{name}_ms"][f"p{percent}"]
            limit = 1e3 * LIMITS.get(name, 0) if percent == 95 else 0
            kept = "" if not limit else f"{limit:.0f} ms {'kept' if found <= limit else 'broken'}, predicted {'kept' if said <= limit else 'broken'}"
            out.append(f"| | {name} p{percent} | {said:.1f} ms | {found:.1f} ms | {100 * (said / found - 1):+.1f} % | {kept} |")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llmpart")
    parser.add_argument("model", type=Path)
    parser.add_argument("relay", type=Path)
    parser.add_argument("--vocab", type=int, required=True)
    parser.add_argument("--rates", default="2,4,6")
    parser.add_argument("--fewer", default="4")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name:
        folder = (args.keep or Path(name)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        machine = profile(args, folder, cores)
        print("| load | figure | predicted | measured | off | limit |\n| --- | --- | --- | --- | --- | --- |")
        for rate in map(float, args.rates.split(",")):
            report, deployment = plan(args, folder, machine, rate)
            subprocess.run(["sh", deployment / "compile.sh", "--activations=auto"], check=True, capture_output=True,
                           env={**os.environ, "LLMPART": str(Path(args.llmpart).resolve())})
            count = report["pools"][0]["count"]
            if count > (1 if args.alone else len(cores)):
                sys.exit(f"fleet_run: {count} machines for {rate:g} requests/s, and {len(cores)} cores")
            for machines in [count] + ([count - 1] if f"{rate:g}" in args.fewer.split(",") and count > 1 else []):
                times, busy = run(args, deployment, rate, machines, cores)
                point = simulate(args, folder, rate, machines)
                print("\n".join(rows_of(f"{rate:g} requests/s, {machines} of {count} machines", *point, times, busy)), flush=True)


if __name__ == "__main__":
    main()
