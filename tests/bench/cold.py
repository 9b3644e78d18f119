"""The first request against the next ones, predicted and measured on this machine.

    python tests/bench/cold.py --llmpart build/release/tools/llmpart --rounds 5 MODEL.onnx [--isl N] [--folder DIR]

Compiles the model for `host`. Each round measures the rate of loading (`llmpart hw profile --quick`, whose figure the prediction
takes), drops the bundle's files from the page cache, and runs a request of N prompt tokens twice: `run` prints the TTFT of a first request,
which waits for all weights. The second finds them in memory, but maps them again. `llmpart bench` gives the TTFT of a process that
has answered requests before. Prints the medians and their errors as a Markdown table. The machine should be idle.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path


def run(*command: object) -> str:
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def drop(folder: Path) -> None:
    """Takes the files out of the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmpart", required=True)
    parser.add_argument("model", type=Path)
    parser.add_argument("--isl", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="for bundle and profile: on the storage to measure")
    args = parser.parse_args()
    threads = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(dir=args.folder) as work:
        folder = Path(work)
        os.environ["XDG_CACHE_HOME"] = work
        os.environ.pop("LLMPART_HOST", None)
        bundle = folder / "model.llmpart"
        run(args.llmpart, "compile", args.model, "--device=host", "-o", bundle)
        ids = ",".join(str(1 + i) for i in range(args.isl))
        found: dict[str, list[float]] = {"cold": [], "mapped": [], "warm": [], "cold predicted": [], "warm predicted": []}
        for _ in range(args.rounds):
            run(args.llmpart, "hw", "profile", "--quick", "-o", folder / "host.yaml")
            report = folder / "report.json"
            run(args.llmpart, "compile", args.model, "--device=host", f"--isl={args.isl}", "--plan-only", f"--report={report}")
            plan = json.loads(report.read_text())["plan"]
            found["cold predicted"].append(plan["cold_ttft_ms"])
            found["warm predicted"].append(plan["ttft_ms"])
            drop(bundle)
            for kind in ("cold", "mapped"):
                made = run(args.llmpart, "run", bundle, f"--tokens={ids}", "-n", 1, "--ignore-eos", f"--threads={threads}", "-o", "json")
                found[kind].append(json.loads(made)["ttft_ms"])
            bench = json.loads(run(args.llmpart, "bench", bundle, "--profile", "-p", args.isl, "-n", 0, "-r", 5, "-t", threads, "-o", "json"))
            found["warm"].append(bench["tests"][0]["total_ms"])
        middle = {name: statistics.median(values) for name, values in found.items()}
        print("| request | predicted | measured | error | measured from .. to |\n| --- | ---: | ---: | ---: | --- |")
        for kind in ("cold", "warm"):
            wanted, got = middle[kind], middle[f"{kind} predicted"]
            print(f"| {kind} | {got:.1f} | {wanted:.1f} | {got / wanted - 1:+.1%} | {min(found[kind]):.1f} .. {max(found[kind]):.1f} |")
        print(f"| second process | | {middle['mapped']:.1f} | | {min(found['mapped']):.1f} .. {max(found['mapped']):.1f} |")


if __name__ == "__main__":
    main()
