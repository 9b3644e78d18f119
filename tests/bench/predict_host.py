"""Predicted against measured on this machine: profiles it, runs models before and after, prints a Markdown table.

    python tests/bench/predict_host.py --llmpart build/release/tools/llmpart [MODEL ...] [--no-profile] [--operators]
        [--dtypes=bf16,int8,int4] [--figures] [--repetitions=5,61]

Without models: the default model. TTFT of 512 tokens and TPOT after 512 tokens and 32 as the planner predicts them, compared with
`llmpart bench --profile`: the mean of the middle half of the passes, of the round in which it is least, since other work
on the machine only slows it. One round is before the profile, the rest after it. Then the mean absolute error over
operators that take 1 % of their stage or more (those that the planner cannot tell apart, equal sizes in all layers, count
once, by the mean of their times), and over all of them weighted by time. With --figures the table has the
memory in place of operators: the plan's, and the largest resident set while it generates less that of
`llmpart --version`, the program's own. The machine should be idle.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

PROMPT, TOKENS = 512, 64
STAGES = {"prefill": ("-p", PROMPT, "-n", 0), "decode": ("-p", 0, "-n", TOKENS, "-d", PROMPT)}


def run(*command: object) -> str:
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def most_memory(*command: object) -> float:
    """The largest resident set of the command, in MiB."""
    with subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return usage.ru_maxrss / 1024


class Model:
    """Compiled twice, measured in rounds."""

    def __init__(self, args: argparse.Namespace, path: Path, dtype: str | None, folder: Path) -> None:
        self.llmpart, self.path, self.threads, self.figures = args.llmpart, path, args.threads, args.figures
        self.repetitions = dict(zip(STAGES, args.repetitions.split(",")))
        self.types = [f"--dtype-device={dtype}"] if dtype else []
        self.name = (path.name if path.is_dir() else path.parent.name) + (f" {dtype}" if dtype else "")
        self.bundle, self.marked = folder / f"{self.name}.llmpart", folder / f"{self.name}.marked.llmpart"
        self.times: dict[str, list[float]] = {"prefill": [], "decode": []}
        self.parts: dict[str, list[list[tuple[str, float]]]] = {"prefill": [], "decode": []}
        self.memory: list[float] = []
        for bundle, options in ((self.bundle, []), (self.marked, ["--profile"])):
            if not bundle.exists() and not (self.figures and options):
                run(self.llmpart, "compile", path, "--device=host", *self.types, *options, "-o", bundle)

    def bench(self, bundle: Path, *options: object) -> dict:
        return json.loads(run(self.llmpart, "bench", bundle, "--profile", "-t", self.threads, "-o", "json",
                              *options))["tests"][0]

    def measure(self) -> None:
        """One round, in fresh processes."""
        if self.figures:
            tokens = ",".join(str(i) for i in range(1, PROMPT + 1))
            whole = most_memory(self.llmpart, "run", self.bundle, f"--tokens={tokens}", "-n", TOKENS, "--ignore-eos",
                                f"--threads={self.threads or os.cpu_count()}")
            self.memory.append(whole - most_memory(self.llmpart, "--version"))
        for stage, options in STAGES.items():
            options = (*options, "-r", self.repetitions[stage])
            self.times[stage].append(self.bench(self.bundle, *options)["total_ms"])
            if self.figures:
                continue
            self.parts[stage].append([(p["name"], p["ms"]) for p in self.bench(self.marked, *options)["parts"]])

    def time(self, stage: str) -> float:
        return min(self.times[stage])

    def operators(self, stage: str) -> list[tuple[str, float]]:
        return min(self.parts[stage], key=lambda parts: sum(ms for _, ms in parts))

    def plan(self, folder: Path) -> dict:
        report = folder / "r.json"
        run(self.llmpart, "compile", self.path, "--device=host", *self.types, f"--isl={PROMPT}",
            f"--osl={TOKENS}", "--plan-only", f"--report={report}")
        return json.loads(report.read_text())


Row = tuple[str, str, float, float, bool]


def operator_errors(report: dict, model: Model) -> list[Row]:
    """(stage, operator, predicted ms, measured ms, takes 1 %), operators of equal kind and FLOPs and bytes merged."""
    groups: dict[tuple, list[tuple[float, float]]] = {}
    total: dict[str, float] = {}
    for stage in ("prefill", "decode"):
        parts = model.operators(stage)
        total[stage] = sum(ms for _, ms in parts)
        times: dict[str, list[float]] = {}
        for name, ms in parts:
            times.setdefault(name, []).append(ms)
        for op in report["operators"]:
            found = times.get(f"{op['kind']} {op['name']}")
            if op["stage"] == stage and found:  # views run nothing; operators of positions alone are not reported
                groups.setdefault((stage, op["kind"], op["flops"], op["bytes"]), []).append((op["device_ms"], found.pop(0)))
    rows = []
    for (stage, kind, flops, _), times in groups.items():
        predicted, found = (statistics.mean(t[i] for t in times) for i in (0, 1))
        rows.append((stage, f"{kind} {flops:.3g} FLOP", predicted, found, found * len(times) >= 0.01 * total[stage]))
    return rows


def mean_error(rows: list[Row], weighted: bool = False) -> float:
    weights = [row[3] if weighted else row[4] for row in rows]
    return 100 * sum(w * abs(r[2] / r[3] - 1) for w, r in zip(weights, rows)) / max(sum(weights), 1e-12)


def error(predicted: float, measured: float) -> str:
    return f" {predicted:.4g} | {measured:.4g} | {100 * (predicted / measured - 1):+.1f} % |"


def print_table(models: list[Model], folder: Path, operators: bool) -> None:
    figures = models[0].figures
    last = "memory predicted (MiB) | measured | error |" if figures else "operators: mean error | by time |"
    print("| model | TTFT predicted (ms) | measured | error | TPOT predicted (ms) | measured | error | " + last)
    print("| --- |" + " ---: |" * (9 if figures else 8))
    for model in models:
        report = model.plan(folder)
        plan = report["plan"]
        row = f"| {model.name} |" + error(plan["ttft_ms"], model.time("prefill")) + error(plan["tpot_ms"], model.time("decode"))
        if figures:
            print(row + error(plan["device_memory_bytes"] / 2**20, min(model.memory)), flush=True)
            continue
        rows = operator_errors(report, model)
        print(f"{row} {mean_error(rows):.1f} % | {mean_error(rows, True):.1f} % |", flush=True)
        if operators:
            print("  rounds: TTFT " + " ".join(f"{ms:.4g}" for ms in model.times["prefill"]) + ", TPOT " +
                  " ".join(f"{ms:.4g}" for ms in model.times["decode"]))
            for stage, operator, predicted, measured, _ in rows:
                print(f"  {stage:8} {operator:34} {1e3 * predicted:10.1f} {1e3 * measured:10.1f} us "
                      f"{100 * (predicted / measured - 1):+6.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmpart", required=True)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--dtypes", help="types of the weights, separated by commas (the model's own)")
    parser.add_argument("--figures", action="store_true", help="measure TTFT, TPOT and memory only")
    parser.add_argument("--rounds", type=int, default=3, help="at least 2 with a profile")
    parser.add_argument("--repetitions", default="5,61", help="of prompts and of decodes in a round")
    parser.add_argument("--threads", type=int, default=0, help="of the profile and of the runs (the machine's cores)")
    parser.add_argument("--no-profile", action="store_true", help="use the profile that is kept")
    parser.add_argument("--folder", type=Path, help="where compiled models are kept, and taken from if they are there")
    parser.add_argument("--operators", action="store_true", help="also print every operator")
    args = parser.parse_args()
    paths = args.models or [Path(__file__).parents[2] / "examples" / "default-model" / "model.onnx"]
    print(f"load before: {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory() as name:
        folder = args.folder or Path(name)
        dtypes = args.dtypes.split(",") if args.dtypes else [None]
        models = [Model(args, path, dtype, folder) for path in paths for dtype in dtypes]
        for turn in range(args.rounds):
            if turn == 1 and not args.no_profile:
                subprocess.run([args.llmpart, "hw", "profile", "-o", folder / "host.yaml", f"--threads={args.threads}"],
                               check=True)
            for model in models:
                model.measure()
        print_table(models, folder, args.operators)
    print(f"load after: {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
