"""Exact mode against the full model: how many tokens differ over many prompts and round trips, and what a round trip is worth.

    python3 tests/bench/exact_tokens.py LLMPART MODEL.onnx --exits=2,6 [--prompts=1000] [--rtt=0,10,50,200] [--tokens=32] [--jobs=8]

Prompts are drawn from a seed, 1 to 24 ids of the vocabulary. The full model runs in one process; exact mode with a worker, over an emulated
link of each round trip. At the last but one round trip the plain split (--mode=full) runs too, for --plain prompts. The exit status is 4
when a token differs."""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def run(llmpart: str, bundle: Path, prompt: list[int], tokens: int, options: list[str]) -> dict:
    """The JSON of one run."""
    command = [llmpart, "run", str(bundle), "--tokens=" + ",".join(map(str, prompt)), "-n", str(tokens), "--ignore-eos",
               "--threads=1", "-o", "json", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def numbers(text: str) -> list[int]:
    """`1,2,3`"""
    return [int(part) for part in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llmpart")
    parser.add_argument("model", type=Path)
    parser.add_argument("--exits", required=True)
    parser.add_argument("--prompts", type=int, default=1000)
    parser.add_argument("--rtt", type=numbers, default=[0, 10, 50, 200])
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--plain", type=int, default=4)
    args = parser.parse_args()
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder) / "exact.llmpart"
        subprocess.run([args.llmpart, "compile", str(args.model), "--device=jetson-nano", "--cloud=v100s", "--march=native", "--link=lan",
                        f"--exits={args.exits}", "-o", str(bundle)], check=True, capture_output=True)
        vocabulary = json.loads((bundle / "manifest.json").read_text())["vocab"]
        prompts = [[draw.randrange(vocabulary) for _ in range(draw.randint(1, 24))] for _ in range(args.prompts)]
        worker = subprocess.Popen([args.llmpart, "worker", str(bundle), "--listen=127.0.0.1:0", "--threads=1"],
                                  stderr=subprocess.PIPE, text=True)
        cloud = "--cloud=" + worker.stderr.readline().split()[-1]
        differing = 0
        try:
            with ThreadPoolExecutor(args.jobs) as pool:
                def over(options: list[str], some: list[list[int]]) -> list[dict]:
                    return list(pool.map(lambda prompt: run(args.llmpart, bundle, prompt, args.tokens, options), some))

                want = over(["--in-process", "--mode=full"], prompts)
                for rtt in args.rtt:
                    link = [cloud, f"--link=rtt={rtt}ms"] if rtt else [cloud]
                    got = over(["--mode=exact", *link], prompts)
                    wrong = sum(a != b for x, y in zip(want, got) for a, b in zip(x["tokens"], y["tokens"], strict=True))
                    waits = sum(y["cloud_requests"] for y in got)
                    tpot = sum(y["tpot_ms"] for y in got) / len(got)
                    print(f"rtt {rtt} ms: {wrong} of {args.tokens * len(prompts)} tokens differ over {len(prompts)} prompts; "
                          f"{args.tokens * len(prompts) / waits:.2f} tokens for each question, {tpot:.2f} ms/token", flush=True)
                    differing += wrong
                    if len(args.rtt) > 1 and rtt == args.rtt[-2]:
                        plain = over(["--mode=full", *link], prompts[:args.plain])
                        slow = sum(y["tpot_ms"] for y in plain) / len(plain)
                        fast = sum(y["tpot_ms"] for y in got[:args.plain]) / len(plain)
                        print(f"rtt {rtt} ms: the plain split takes {slow:.2f} ms/token, {slow / fast:.2f} times as long")
        finally:
            worker.terminate()
            worker.wait()
    return 4 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
