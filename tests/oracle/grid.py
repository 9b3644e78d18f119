"""The exact planner on a grid of cases: plan, bound, gap and time of each, and HiGHS's plan beside some of them.

    python tests/oracle/grid.py LLMPART TABLE.md [--every N] [--first K] [--cases 98,128] [--jobs J] [--judge M] [--seconds S]
                                [--models DIR] [--results FILE.json] [--against FILE.json] [--limits]

Each case is a model, a pair of machines, a link, a number of sessions, a prompt length and an SLA. Models are shapes: their
weights are absent. For each case with an SLA two plans are made first, the cheapest and the one of least latency. An SLA
is a share of the way from the latter's TTFT and TPOT to the former's, on a logarithmic scale: 0.01 is the tightest, 0.8 the
loosest; `none` sets none. The tolerance is 0, so plans are judged by their cost. Time is CPU time of the whole command on one
thread: import, plan, proof and report. Bound and gap are the checker's.

TABLE.md gets a row for each case, FILE.json of `--results` the same as numbers. `--against` names such a file of another
planner: the cases get the SLAs of that file, without plans for their ends, and the table says how the plans compare. `--every N`
takes every Nth case from the Kth on, `--cases` those with the given numbers. `--judge M` gives every Mth of them to plan_milp.py
for S seconds. Exit status 1: the oracle contradicts a report, a case that has a plan gets none, or `--limits` is given and the
cases break the limits that this file states.
"""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/oracle")]

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

# What --limits wants: a proved gap of at most MOST_GAP in this share of the plans, and at most these CPU seconds for a
# case. With --against: this share of the plans at most MOST_DEARER dearer.
MOST_GAP, GAP_SHARE, MOST_SECONDS = 0.01, 195 / 207, 8.0
MOST_DEARER, DEARER_SHARE = 0.005, 200 / 207


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


class Planner:
    """Plans cases with one build of llmpart. Reports are files of the folder."""

    def __init__(self, llmpart: str, folder: Path):
        self.llmpart, self.folder = llmpart, folder

    def plan(self, case: Case, report: Path, *options: str) -> tuple[dict, float]:
        """The report and CPU seconds. An infeasible plan exits with 3 and leaves a report as well."""
        device, cloud = case.pair.split()
        command = [self.llmpart, "compile", model_path(case.model, self.folder), f"--device={device}", f"--cloud={cloud}", f"--link={case.link}",
                   f"--isl={case.prompt}", f"--sessions={case.sessions}", "--objective=cost", "--tolerance=0", "--plan-only", f"--report={report}", *options]
        report.unlink(missing_ok=True)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        error = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.stderr.close()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 3):
            raise RuntimeError(f"{' '.join(map(str, command))}: exit status {process.returncode}: {error}")
        with open(report) as file:
            return json.load(file), usage.ru_utime + usage.ru_stime

    def find_sla(self, case: Case, report: Path) -> list[float] | None:
        """The SLA in ms of TTFT and TPOT, [] without one; None when the cheapest or the fastest plan is not found."""
        if case.sla is None:
            return []
        ends = []
        for objective in ("cost", "latency"):
            found, _ = self.plan(case, report, f"--objective={objective}")
            if not found["feasible"]:
                return None
            ends.append([found["plan"][what] for what in ("ttft_ms", "tpot_ms")])
        return [fast * (max(slow, fast) / fast) ** case.sla * (1 + 1e-6) for slow, fast in zip(*ends)]

    def run(self, number: int, case: Case, known: dict | None) -> dict:
        """The case's result; `known` is that of another planner."""
        report = self.folder / f"report-{number}.json"
        sla = known["sla"] if known else self.find_sla(case, report)
        options = [f"--ttft={sla[0]:.9g}ms", f"--tpot={sla[1]:.9g}ms"] if sla else []
        found, seconds = self.plan(case, report, *options)
        result = {"case": number, "sla": sla, "seconds": seconds, "feasible": found["feasible"], "binding": found["binding"]}
        if found["feasible"]:
            result |= {"value": found["certificate"]["value"], "bound": found["plan"]["lower_bound"], "gap": found["plan"]["gap"]}
        return result


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


def ratio_of(result: dict, known: dict | None) -> float | None:
    """The plan's cost over that of another planner; None when one of them has no plan."""
    if not known or not known["feasible"] or not result["feasible"]:
        return None
    return result["value"] / known["value"] if known["value"] > 0 else float("inf") if result["value"] > 0 else 1


def row(case: Case, result: dict, known: dict | None, oracle: str) -> str:
    if not result["feasible"]:
        return f"| {result['case']} | {case} | infeasible: {result['binding'] or 'no fastest plan'} | | | | {result['seconds']:.2f} | {oracle} |"
    ratio = ratio_of(result, known)
    return (f"| {result['case']} | {case} | {result['value']:.6g} | {'' if ratio is None else f'{ratio:.5f}'} | {result['bound']:.6g} "
            f"| {100 * result['gap']:.3f} % | {result['seconds']:.2f} | {oracle} |")


def by_model(results: list[dict]) -> str:
    lines = ["| model | cases | proved gap: median | worst | at most 1 % | 0 | seconds: median | worst |", "| - | - | - | - | - | - | - | - |"]
    for model in MODELS:
        own = [result for result in results if result["feasible"] and cases()[result["case"]].model == model]
        gaps, times = sorted(result["gap"] for result in own), sorted(result["seconds"] for result in own)
        if own:
            lines.append(f"| {model} | {len(gaps)} | {100 * gaps[len(gaps) // 2]:.3f} % | {100 * gaps[-1]:.3f} % "
                         f"| {sum(gap <= MOST_GAP for gap in gaps)} | {sum(gap <= 1e-9 for gap in gaps)} "
                         f"| {times[len(times) // 2]:.2f} | {times[-1]:.2f} |")
    return "\n".join(lines)


def compare(results: list[dict], known: dict[int, dict], limits: bool) -> tuple[str, list[str]]:
    """A sentence of the figures of all cases, and what is wrong with them."""
    found = [result for result in results if result["feasible"]]
    close = sum(result["gap"] <= MOST_GAP for result in found)
    slowest = max(results, key=lambda result: result["seconds"])
    text = (f"{len(results)} cases, {len(found)} plans, {close} of them with a gap of at most {100 * MOST_GAP:g} %; "
            f"{sum(result['seconds'] for result in results):.1f} s, the slowest case {slowest['case']} with {slowest['seconds']:.2f} s.")
    faults = []
    if limits and close < GAP_SHARE * len(found) - 1e-9:
        faults.append(f"{close} of {len(found)} plans have a gap of at most {100 * MOST_GAP:g} %")
    if limits and slowest["seconds"] > MOST_SECONDS:
        faults.append(f"case {slowest['case']} takes {slowest['seconds']:.2f} s")
    lost = [result["case"] for result in results if not result["feasible"] and (known.get(result["case"], result)["feasible"] or result["sla"])]
    faults += [f"case {case}: no plan is found, and there is one" for case in lost]
    if known:
        ratios = [ratio for result in results if (ratio := ratio_of(result, known.get(result["case"]))) is not None]
        dearer = sum(ratio > 1 + MOST_DEARER for ratio in ratios)
        before = sum(known[result["case"]]["seconds"] for result in results if result["case"] in known)
        text += (f" Beside the other planner: {dearer} plans more than {100 * MOST_DEARER:g} % dearer, the worst by {100 * (max(ratios, default=1) - 1):.2f} %, "
                 f"{sum(ratio < 1 - MOST_DEARER for ratio in ratios)} as much cheaper, {len(lost)} lost; it took {before:.1f} s.")
        if limits and len(ratios) - dearer < DEARER_SHARE * len(ratios) - 1e-9:
            faults.append(f"{dearer} of {len(ratios)} plans are more than {100 * MOST_DEARER:g} % dearer")
    return text, faults


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llmpart")
    parser.add_argument("table", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take every so many-th case (1)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case (0)")
    parser.add_argument("--cases", type=lambda text: [int(number) for number in text.split(",")], help="the numbers of the cases to take")
    parser.add_argument("--jobs", type=int, default=1, help="cases that are planned at a time (1)")
    parser.add_argument("--judge", type=int, default=0, help="give every so many-th of them to HiGHS (0: none)")
    parser.add_argument("--seconds", type=float, default=60, help="that HiGHS may take for a case (60)")
    parser.add_argument("--models", type=Path, default=ROOT / "build/grid", help="the folder for models and reports (build/grid)")
    parser.add_argument("--results", type=Path, help="write SLAs and results there")
    parser.add_argument("--against", type=Path, help="such a file of another planner, whose SLAs hold")
    parser.add_argument("--limits", action="store_true", help="fail when the cases break the limits")
    return parser.parse_args()


def main() -> None:
    args = parse()
    every = cases()
    assert len(Counter(map(str, every))) == len(every) >= 200
    numbers = args.cases or range(len(every))[args.first::args.every]
    known = {result["case"]: result for result in json.loads(args.against.read_text())} if args.against else {}
    args.models.mkdir(parents=True, exist_ok=True)
    for model in {every[number].model for number in numbers}:
        model_path(model, args.models)
    planner, results, lines, contradicted = Planner(args.llmpart, args.models), [], [], []
    with ThreadPoolExecutor(args.jobs) as pool:
        for i, result in enumerate(pool.map(lambda number: planner.run(number, every[number], known.get(number)), numbers)):
            number, oracle = result["case"], " | "
            if args.judge and i % args.judge == 0 and result["feasible"]:
                oracle, fine = judged(args.models / f"report-{number}.json", args.seconds)
                if not fine:
                    contradicted.append(f"case {number}: the oracle contradicts the report")
            results.append(result)
            lines.append(row(every[number], result, known.get(number), oracle))
            print(lines[-1], flush=True)
    head = ["case", "model", "machines", "link", "sessions", "prompt", "SLA", "plan", "plan / other", "bound", "gap", "seconds", "plan / HiGHS's", "HiGHS's gap"]
    figures, faults = compare(results, known, args.limits)
    text = ["# The exact planner on a grid", "", figures, "", by_model(results), "",
            f"| {' | '.join(head)} |", "|" + " - |" * len(head), *lines, ""]
    args.table.write_text("\n".join(text))
    if args.results:
        args.results.write_text("[\n" + ",\n".join(map(json.dumps, results)) + "\n]\n")
    print(by_model(results), figures, sep="\n")
    for fault in contradicted + faults:
        print(f"grid: {fault}", file=sys.stderr)
    sys.exit(1 if contradicted or faults else 0)


if __name__ == "__main__":
    main()
