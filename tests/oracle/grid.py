"""The exact planner on a grid of cases: plan, bound, gap and time of each, and HiGHS's plan beside some of them.

    python tests/oracle/grid.py LLMPART TABLE.md [--every N] [--judge M] [--seconds S] [--models DIR] [--limits]

Each case is a model, a pair of machines, a link, a number of sessions, a prompt length and an SLA. Models are shapes: their
weights are absent. For each case without an SLA two plans are made first, the cheapest and the one of least latency. An SLA
is a share of the way from the latter's TTFT and TPOT to the former's, on a logarithmic scale: 0.01 is the tightest, 0.8 the
loosest; `none` sets none. The tolerance is 0, so plans are judged by their cost. TABLE.md gets a row for each case. Time is CPU time of the whole command on one thread: import,
plan and report.

`--every N` takes every Nth case. `--judge M` gives every Mth of those to plan_milp.py for S seconds. Exit status 1: the oracle
contradicts a report, or `--limits` is given and a case breaks the limits that this file states.
"""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/models"), str(ROOT / "tests/oracle")]

# Layers, and what llama7b.py needs besides them; None: a file of the project.
MODELS = {
    "default": (9, None),
    "smollm2": (30, "--hidden 576 --ffn 1536 --heads 9 --kv-heads 3 --head-dim 64 --vocab 49152"),
    "m": (12, "--hidden 768 --ffn 2048 --heads 12 --kv-heads 12 --head-dim 64"),
    "7b": (32, ""),
    "13b": (40, "--hidden 5120 --ffn 13824 --heads 40 --kv-heads 40"),
    "70b": (80, "--hidden 8192 --ffn 28672 --heads 64 --kv-heads 8"),
}
PAIRS = {
    "default": ["jetson-nano-p1 v100s-p1", "raspberry-pi-5 epyc-9654", "snapdragon-8s-gen3-p1 a100"],
    "smollm2": ["jetson-nano-p1 v100s-p1", "raspberry-pi-5 l4", "snapdragon-8s-gen3-p1 a100"],
    "m": ["jetson-nano-p1 v100s-p1", "raspberry-pi-5 l4", "snapdragon-8s-gen3-p1 a100"],
    "7b": ["snapdragon-8s-gen3-p1 a100", "snapdragon-8s-gen3-p1,memory=12GiB a100", "jetson-orin h100", "jetson-nano-p1 v100s-p1",
           "apple-m3 l4", "snapdragon-8s-gen3-p1,memory=24GiB a100"],
    "13b": ["snapdragon-8s-gen3-p1 a100", "jetson-orin h100", "apple-m4 a100"],
    "70b": ["jetson-orin b200", "apple-m4,memory=192GB b200", "jetson-nano-p1 v100s-p1,memory=192GiB"],
}
LINKS = ["loopback", "lan", "wifi", "5g", "lte"]
PROMPTS = [128, 512, 2048, 8192]
SLAS = [None, 0.8, 0.4, 0.1, 0.01]
CASES_PER_PAIR = 10

# What --limits wants: the proved gap of any model, that of a model of few layers, and CPU seconds by layers.
MOST_GAP, FEW_LAYERS, LEAST_GAP = 0.01, 12, 1e-9
MOST_SECONDS = [(32, 1.0), (80, 2.0)]


@dataclass
class Case:
    model: str
    pair: str
    link: str
    sessions: int
    prompt: int
    sla: float | None

    def __str__(self) -> str:
        sla = "none" if self.sla is None else f"{self.sla:g}"
        return f"{self.model} | {self.pair.replace(' ', ' + ')} | {self.link} | {self.sessions} | {self.prompt} | {sla}"


def cases() -> list[Case]:
    """Every pair meets each link, prompt and SLA at least twice; no two cases are equal."""
    found, number = [], 0
    for model, pairs in PAIRS.items():
        for pair in pairs:
            for i in range(CASES_PER_PAIR):
                link, sla = LINKS[i % 5], SLAS[(2 * i + i // 5 + number) % 5]
                found.append(Case(model, pair, link, 1 if (i + number) % 2 else 64, PROMPTS[(i + i // 4 + number) % 4], sla))
            number += 1
    return found


def model_path(name: str, folder: Path) -> Path:
    layers, shape = MODELS[name]
    if shape is None:
        return ROOT / "examples/default-model/model.onnx"
    out = folder / name
    if not (out / "model.onnx").exists():
        command = [sys.executable, ROOT / "tests/models/llama7b.py", "--out", out, "--layers", str(layers), *shape.split()]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return out / "model.onnx"


def plan(llmpart: str, model: Path, case: Case, report: Path, *options: str) -> float:
    """Writes the report; returns CPU seconds. An infeasible plan exits with 3 and leaves a report as well."""
    device, cloud = case.pair.split()
    command = [llmpart, "compile", model, f"--device={device}", f"--cloud={cloud}", f"--link={case.link}", f"--isl={case.prompt}",
               f"--sessions={case.sessions}", "--tolerance=0", "--plan-only", f"--report={report}", *options]
    report.unlink(missing_ok=True)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        sys.exit(f"grid: {' '.join(map(str, command))}: exit status {process.returncode}: {error}")
    return usage.ru_utime + usage.ru_stime


def read(report: Path) -> dict:
    with open(report) as file:
        return json.load(file)


class Limits:
    """TTFT and TPOT of the cheapest and of the fastest plan, by case without its SLA."""

    def __init__(self, llmpart: str, folder: Path):
        self.llmpart, self.folder, self.known, self.faults = llmpart, folder, {}, []

    def options(self, case: Case, model: Path) -> list[str] | None:
        """The SLA's options; None when no plan is feasible."""
        if case.sla is None:
            return []
        key = (case.model, case.pair, case.link, case.sessions, case.prompt)
        if key not in self.known:
            ends = []
            for objective in ("cost", "latency"):
                plan(self.llmpart, model, case, self.folder / "end.json", f"--objective={objective}")
                ends.append(read(self.folder / "end.json"))
            self.known[key] = [[end["plan"][what] for what in ("ttft_ms", "tpot_ms")] if end["feasible"] else None for end in ends]
        slow, fast = self.known[key]
        if (slow is None) != (fast is None):
            self.faults.append(f"{case}: only one of the cheapest and the fastest plan is found")
        if slow is None or fast is None:
            return None
        limits = [f * (max(s, f) / f) ** case.sla * (1 + 1e-6) for s, f in zip(slow, fast)]
        return [f"--ttft={limits[0]:.9g}ms", f"--tpot={limits[1]:.9g}ms"]


def judged(report: Path, seconds: float) -> tuple[str, bool]:
    """The oracle's columns: the ratio of the plan to HiGHS's, and HiGHS's gap; False when the report is contradicted."""
    import plan_milp
    arguments = argparse.Namespace(seconds=seconds, mip_gap=1e-4, threads=1, worst=float("inf"), gap=float("inf"))
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        fine = plan_milp.judge(str(report), arguments)
    words = text.getvalue().split()
    best, bound = float(words[words.index("HiGHS") + 1]), float(words[words.index("bound") + 1])
    gap = 1 - bound / best if best else 0
    return f"{words[words.index('ratio') + 1]} | {100 * max(0, gap):.2f} %", fine


def broken(case: Case, gap: float, seconds: float) -> str:
    layers = MODELS[case.model][0]
    if gap > (LEAST_GAP if layers <= FEW_LAYERS else MOST_GAP):
        return f"a gap of {100 * gap:.3f} %"
    for most, limit in MOST_SECONDS:
        if layers <= most:
            return f"{seconds:.2f} s" if seconds > limit else ""
    return ""


def summary(rows: list[tuple[Case, float, float]]) -> str:
    lines = ["| model | cases | proved gap: median | worst | at most 1 % | 0 | seconds: median | worst |", "| - | - | - | - | - | - | - | - |"]
    for model in MODELS:
        gaps = sorted(gap for case, gap, _ in rows if case.model == model)
        times = sorted(time for case, _, time in rows if case.model == model)
        if gaps:
            lines.append(f"| {model} | {len(gaps)} | {100 * gaps[len(gaps) // 2]:.3f} % | {100 * gaps[-1]:.3f} % "
                         f"| {sum(gap <= MOST_GAP for gap in gaps)} | {sum(gap <= LEAST_GAP for gap in gaps)} "
                         f"| {times[len(times) // 2]:.2f} | {times[-1]:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llmpart")
    parser.add_argument("table", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take every so many-th case (1)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case (0)")
    parser.add_argument("--judge", type=int, default=0, help="give every so many-th of them to HiGHS (0: none)")
    parser.add_argument("--seconds", type=float, default=60, help="that HiGHS may take for a case (60)")
    parser.add_argument("--models", type=Path, default=ROOT / "build/grid", help="the folder for models and reports (build/grid)")
    parser.add_argument("--limits", action="store_true", help="fail when a case breaks the limits")
    args = parser.parse_args()
    args.models.mkdir(parents=True, exist_ok=True)
    limits, rows, faults, lines, infeasible = Limits(args.llmpart, args.models), [], [], [], 0
    for number, case in enumerate(cases()[args.first::args.every]):
        model, report = model_path(case.model, args.models), args.models / "report.json"
        options = limits.options(case, model)
        seconds = plan(args.llmpart, model, case, report, *(options or []))
        found = read(report)
        if options is None or not found["feasible"]:
            infeasible += 1
            lines.append(f"| {case} | infeasible: {found['binding'] or 'no fastest plan'} | | | {seconds:.2f} | | |")
            if options is not None and options:
                faults.append(f"{case}: two plans meet the SLA, and no plan is found")
        else:
            p = found["plan"]
            rows.append((case, p["gap"], seconds))
            oracle = " | "
            if args.judge and number % args.judge == 0:
                oracle, fine = judged(report, args.seconds)
                if not fine:
                    faults.append(f"{case}: the oracle contradicts the report")
            lines.append(f"| {case} | {found['certificate']['value']:.6g} | {p['lower_bound']:.6g} | {100 * p['gap']:.3f} % | {seconds:.2f} | {oracle} |")
            if args.limits and broken(case, p["gap"], seconds):
                faults.append(f"{case}: {broken(case, p['gap'], seconds)}")
        print(lines[-1], flush=True)
    head = ["model", "machines", "link", "sessions", "prompt", "SLA", "plan", "bound", "gap", "seconds", "plan / HiGHS's", "HiGHS's gap"]
    text = ["# The exact planner on a grid", "", f"{len(lines)} cases, {infeasible} of them infeasible, by `tests/oracle/grid.py`.", "", summary(rows), "",
            f"| {' | '.join(head)} |", "|" + " - |" * len(head), *lines, ""]
    args.table.write_text("\n".join(text))
    print(summary(rows))
    for fault in faults + limits.faults:
        print(f"grid: {fault}", file=sys.stderr)
    assert len(Counter(map(str, cases()))) == len(cases()) >= 200
    sys.exit(1 if faults or limits.faults else 0)


if __name__ == "__main__":
    main()
