"""Functions of the comparisons with other runtimes: `llmpart bench` as one measurement, interleaved rounds, one table."""

import json
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

Speeds = tuple[float, float]  # tokens per second of prefill and of decode


def bench_command(llmpart: list[str], bundle: Path, prompt: int, tokens: int, threads: int) -> Speeds:
    """One fresh process of `llmpart bench`; `llmpart` is the command that starts it."""
    command = [*llmpart, "bench", str(bundle), "-p", str(prompt), "-n", str(tokens), "-r", "1", "-t", str(threads),
               "-o", "json"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["tests"]
    speed = {row["test"][:2]: row["tokens_per_s"] for row in rows}
    return speed["pp"], speed["tg"]


def compare(peer_name: str, prompt: int, tokens: int, threads: list[int], rounds: int,
            ours: Callable[[int], Speeds], peer: Callable[[int], Callable[[], Speeds]]) -> None:
    """Prints medians over rounds A B A B; `peer` of a number of threads gives the peer's measurement."""
    print(f"threads  test    llmpart tok/s  {peer_name + ' tok/s':>18}  ratio")
    for count in threads:
        measure = peer(count)
        pairs = [(ours(count), measure()) for _ in range(rounds)]
        for i, name in enumerate((f"pp{prompt}", f"tg{tokens}")):
            a, b = (statistics.median(pair[side][i] for pair in pairs) for side in (0, 1))
            print(f"{count:7}  {name:6} {a:14.1f}  {b:18.1f} {a / b:6.2f}", flush=True)
