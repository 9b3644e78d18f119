"""Measures each type of weights beside other runtimes, in one run: prefill of 128 and 512 tokens and decode after 128.

    python tests/bench/compare_types.py --llmpart build/release/tools/llmpart SPEC.json
        [--threads 1] [--rounds 5] [--tokens 64] [--realtime] [--only M/int8] [--dram build/release/tests/e2e/bench_read_dram]

SPEC.json names models, for each the file that llmpart compiles, and for each type the peers' commands:

    {"M": {"model": "M-f32.gguf", "types": {"int8": {"llama.cpp": ["lc_bench", "-m", "M-q8_0.gguf"]}, "f32": {}}}}

A peer's command gets `-t THREADS -r 1 -n TOKENS -p 128,512` and prints the row `tag,threads,load,first,P128,P512,DECODE,...`
with tokens per second in the last three; peer.py is such a command for runtimes of Python. Bundles are compiled
first, with their CPU seconds; --activations=auto unless the type is f32. In a round all configurations run one after the other, one fresh process each; the table shows medians.
--realtime runs every process under `chrt -f 1`, which helps against other programs of the machine, though not against
those that share its caches and memory. --dram also measures in each round how fast memory can be read, and compares
what llmpart's decode reads (the weights once for each token, and the KV cache up to its position) with that.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

Speeds = tuple[float, ...]  # tokens per second of prefill 128, prefill 512 and decode
PROMPTS = (128, 512)


def output(args: argparse.Namespace, command: list[str]) -> str:
    prefix = ["chrt", "-f", "1"] if args.realtime else []
    return subprocess.run(prefix + command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True).stdout


def compile_bundle(args: argparse.Namespace, model: str, dtype: str, bundle: Path) -> float:
    """Returns the CPU seconds that compiling takes."""
    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    output(args, [args.llmpart, "compile", model, "--device=host", f"--dtype-device={dtype}",
                  f"--activations={'f32' if dtype == 'f32' else 'auto'}", "-o", str(bundle)])
    return used() - before


def measure_bundle(args: argparse.Namespace, threads: int, bundle: Path) -> Speeds:
    speed = {}
    for prompt in PROMPTS:
        tokens = args.tokens if prompt == PROMPTS[0] else 0
        rows = json.loads(output(args, [args.llmpart, "bench", str(bundle), "-p", str(prompt), "-n", str(tokens), "-r",
                                        "1", "-t", str(threads), "-o", "json"]))["tests"]
        speed |= {row["test"][:2] + (str(prompt) if row["test"][:2] == "pp" else ""): row["tokens_per_s"]
                  for row in rows}
    return speed["pp128"], speed["pp512"], speed["tg"]


def measure_peer(args: argparse.Namespace, threads: int, command: list[str]) -> Speeds:
    row = output(args, command + ["-t", str(threads), "-r", "1", "-n", str(args.tokens), "-p",
                                  ",".join(map(str, PROMPTS))])
    return tuple(float(field) for field in row.strip().split(",")[4:7])


def decode_bytes(bundle: Path, tokens: int) -> float:
    """What a token reads, on average over `tokens` of them after the first: weights and KV caches."""
    sizes = {"f32": 4, "f16": 2, "bf16": 2, "int8": 1}
    manifest = json.loads((bundle / "manifest.json").read_text())
    weights = sum(side.get("weight_bytes", 0) for side in manifest["sides"].values())
    position = sum(sizes[state["dtype"]] * math.prod(int(size) for size in state["shape"] if size.isdigit())
                   for state in manifest["states"])
    return weights + position * (2 + (tokens - 1) / 2)


def measure_dram(args: argparse.Namespace, threads: int) -> Speeds:
    return (float(output(args, [args.dram, str(threads)])),)


def prepare(args: argparse.Namespace, folder: Path,
            token_bytes: dict[str, float]) -> dict[tuple[str, str, int], Callable[[], Speeds]]:
    """The measurements by configuration, runtime and number of threads; llmpart comes first in each configuration.
    Fills `token_bytes`, what a token reads, by configuration."""
    measures: dict[tuple[str, str, int], Callable[[], Speeds]] = {}
    for threads in map(int, args.threads.split(",") if args.dram else ()):
        measures["DRAM", "read", threads] = lambda t=threads: measure_dram(args, t)
    for name, model in json.loads(args.spec.read_text()).items():
        for dtype, peers in model["types"].items():
            if args.only not in ("", f"{name}/{dtype}"):
                continue
            bundle = folder / f"{name}-{dtype}.llmpart"
            seconds = compile_bundle(args, model["model"], dtype, bundle)
            print(f"{name} {dtype}: compiled in {seconds:.1f} s of CPU", flush=True)
            key = f"{name} {dtype}"
            token_bytes[key] = decode_bytes(bundle, args.tokens)
            for threads in map(int, args.threads.split(",")):
                measures[key, "llmpart", threads] = lambda b=bundle, t=threads: measure_bundle(args, t, b)
                for peer, command in peers.items():
                    measures[key, peer, threads] = lambda c=command, t=threads: measure_peer(args, t, c)
    return measures


def print_dram(medians: dict[tuple[str, str, int], list[float]], token_bytes: dict[str, float]) -> None:
    """Compares the decode of each configuration with the speed at which memory can be read."""
    for (name, runtime, threads), speeds in medians.items():
        if runtime == "read":
            print(f"DRAM, {threads} threads: {speeds[0]:.1f} GB/s")
        elif runtime == "llmpart" and ("DRAM", "read", threads) in medians:
            read = token_bytes[name] * speeds[2] * 1e-9
            share = read / medians["DRAM", "read", threads][0]
            print(f"{name}, {threads} threads: decode reads {token_bytes[name] / 1e6:.1f} MB a token, {read:.1f} GB/s,"
                  f" {100 * share:.0f} % of that")


def print_table(medians: dict[tuple[str, str, int], list[float]]) -> None:
    print("| model | threads | runtime | prefill 128 | prefill 512 | decode | llmpart's ratio |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for (name, runtime, threads), speeds in medians.items():
        if runtime == "read":
            continue
        own = medians[name, "llmpart", threads]
        ratio = "" if runtime == "llmpart" else " / ".join(f"{a / b:.2f}" for a, b in zip(own, speeds))
        if runtime == "llmpart" and (name, runtime, 1) in medians and threads > 1:
            alone = medians[name, runtime, 1]
            ratio = " / ".join(f"{a / b:.2f}" for a, b in zip(own, alone)) + " of one thread"
        print(f"| {name} | {threads} | {runtime} | " + " | ".join(f"{s:.0f}" for s in speeds) + f" | {ratio} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmpart", required=True)
    parser.add_argument("spec", type=Path)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--only", default="", help="one configuration, as MODEL/TYPE")
    parser.add_argument("--dram", help="bench_read_dram, which measures the speed of reading memory")
    parser.add_argument("--realtime", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        token_bytes: dict[str, float] = {}
        measures = prepare(args, Path(folder), token_bytes)
        results: dict[tuple[str, str, int], list[Speeds]] = {key: [] for key in measures}
        for _ in range(args.rounds):
            for key, measure in measures.items():
                results[key].append(measure())
    medians = {key: [statistics.median(values) for values in zip(*rounds)] for key, rounds in results.items()}
    print_table(medians)
    if args.dram:
        print_dram(medians, token_bytes)


if __name__ == "__main__":
    main()
