"""Random problems of middle size: the planner's plan and stated bound beside HiGHS's.

    python tests/oracle/random_plans.py LLMPART [--count N] [--seed S] [--seconds T] [--folder DIR]

A problem is a llama of one to four layers with random sizes (20 to 60 units a stage), two machines with random peaks, bandwidths
and launch times, a random link, and limits of TTFT, TPOT and both memories between those of the cheapest plan and of the fastest
one. Problem N of a seed is the same on every machine. HiGHS solves the certificate of the report (plan_milp.py), to its optimum
where the time T allows. Exit status 1: in a problem

  - the stated bound is above HiGHS's plan, or HiGHS's bound above the plan: one of the two is wrong;
  - the plan costs more than a share WORST above HiGHS's;
  - the planner finds no plan, and HiGHS does.
"""

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/oracle"))

import plan_milp

WORST = 0.005  # of plans beside HiGHS's
ROUNDING = 1e-8


def log_uniform(draw: random.Random, low: float, high: float) -> float:
    return low * (high / low) ** draw.random()


def make_model(draw: random.Random, folder: Path) -> Path:
    heads, head_dim = draw.choice([2, 4, 8]), draw.choice([16, 32, 64])
    hidden = heads * head_dim
    shape = {"layers": draw.randint(1, 4), "hidden": hidden, "ffn": draw.randint(1, 5) * hidden, "heads": heads,
             "kv-heads": draw.choice([1, 2, heads]), "head-dim": head_dim, "vocab": draw.choice([64, 512, 4096])}
    out = folder / "-".join(str(size) for size in shape.values())
    if not (out / "model.onnx").exists():
        command = [sys.executable, ROOT / "tests/models/llama7b.py", "--out", out]
        subprocess.run(command + [f"--{name}={size}" for name, size in shape.items()], check=True, stdout=subprocess.DEVNULL)
    return out / "model.onnx"


def machine(draw: random.Random, name: str, slow: float, fast: float, price: float) -> str:
    """A machine file; peaks and bandwidth are drawn apart, so that either side may be the better one for an operator."""
    peak, bandwidth = log_uniform(draw, slow, fast) * 1e12, log_uniform(draw, slow, fast) * 1e11
    return "\n".join([
        f"machine: {name}", f"title: {name}", "kind: gpu", "target: { os: linux, cpu: x86-64 x86-64-v3, gpu: cuda sm_80, types: f32 f16 }",
        f"peak_f32: {{ value: {peak / 2e9:.6g} GFLOP/s, source: drawn }}", f"peak_f16: {{ value: {peak / 1e9:.6g} GFLOP/s, source: drawn }}",
        f"memory_bandwidth: {{ value: {bandwidth / 1e9:.6g} GB/s, source: drawn }}", "memory: { value: 64 GiB, source: drawn }",
        "compute_utilisation: { value: 1, source: drawn }", "memory_utilisation: { value: 1, source: drawn }",
        f"launch: {{ value: {draw.choice([0, 1, 5, 20])}us, source: drawn }}", f"price_usd_per_s: {{ value: {price:.6g}, source: drawn }}",
        "power: { value: 10 W, source: drawn }", ""])


class Case:
    def __init__(self, llmpart: str, seed: int, number: int, folder: Path):
        draw = random.Random(f"{seed} {number}")
        self.draw, self.llmpart, self.report = draw, llmpart, folder / "report.json"
        self.model = make_model(draw, folder)
        for name, slow, fast, price in (("device", 0.001, 0.1, 0), ("cloud", 0.02, 2, log_uniform(draw, 1e-5, 1e-3))):
            (folder / f"{name}.yaml").write_text(machine(draw, f"drawn-{name}", slow, fast, price))
        link = f"rtt={log_uniform(draw, 0.005, 5):.6g}ms,up={log_uniform(draw, 10, 10000):.6g}Mbit/s,down={log_uniform(draw, 10, 10000):.6g}Mbit/s"
        self.options = [f"--device={folder}/device.yaml", f"--cloud={folder}/cloud.yaml", f"--link={link}", f"--isl={draw.choice([4, 32, 256])}",
                        f"--osl={draw.choice([2, 16, 64])}", f"--sessions={draw.choice([1, 1, 8])}"]
        self.limits = self.draw_limits()

    def plan(self, *options: str) -> dict:
        self.report.unlink(missing_ok=True)
        command = [self.llmpart, "compile", self.model, *self.options, "--objective=cost", "--plan-only", f"--report={self.report}", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 3):
            sys.exit(f"random_plans: {' '.join(map(str, command))}: exit status {done.returncode}: {done.stderr}")
        return json.loads(self.report.read_text())

    def draw_limits(self) -> list[str]:
        draw, limits = self.draw, []
        cheap, fast = (self.plan(f"--objective={objective}", "--tolerance=0") for objective in ("cost", "latency"))
        for name, what in (("ttft", "ttft_ms"), ("tpot", "tpot_ms")):
            low, high = fast["plan"][what], max(cheap["plan"][what], fast["plan"][what])
            if draw.random() < 0.8 and low > 0:
                limits.append(f"--{name}={low * (1.001 * high / low) ** draw.uniform(0.02, 1) * 1.0005:.9g}ms")
        total = sum(max(holding["bytes"]) for holding in cheap["certificate"]["holdings"])
        most = max(max(unit["activation"]) for stage in ("prefill", "decode") for unit in cheap["certificate"][stage]["units"])
        if draw.random() < 0.6:
            limits.append(f"--device-memory={int(draw.uniform(0.2, 1) * total + 2 * most)}B")
        return limits


def judge(case: Case, seconds: float) -> tuple[str, list[str]]:
    """A line for the case, and its faults."""
    report = case.plan("--tolerance=0", *case.limits)
    if "certificate" not in report:
        return "no certificate", []
    p = plan_milp.Problem(report)
    sides, bound, done = plan_milp.Model(p).solve(seconds, 1e-7, 1)
    found = plan_milp.add_up(p, sides) if sides else None
    best = found.objective if found and not found.broken else float("inf")
    if not report["feasible"]:
        return "infeasible", [f"no plan is found, HiGHS has one of {best!r}"] if best < float("inf") else []
    own, stated, faults = plan_milp.add_up(p, p.sides), p.lower, plan_milp.sum_faults(p, plan_milp.add_up(p, p.sides), report)
    best = min(best, own.objective)
    scale = max(abs(own.objective), 1e-300)
    if stated > best + ROUNDING * scale:
        faults.append(f"the stated bound {stated!r} is above HiGHS's plan {best!r}")
    if bound > own.objective + 1e-6 * scale:
        faults.append(f"HiGHS proves {bound!r}, above the plan {own.objective!r}")
    if own.objective > best * (1 + WORST):
        faults.append(f"the plan {own.objective!r} is {own.objective / best if best else float('inf'):.4f} times HiGHS's {best!r}")
    crossings = report["plan"]["crossings_prefill"] + report["plan"]["crossings_decode"]
    gap = 1 - stated / own.objective if own.objective > 0 else 0.0
    return (f"units {len(p.units[0])} crossings {crossings} plan {own.objective:.6g} HiGHS {best:.6g}{' (optimal)' if done else ''} "
            f"gap {100 * gap:.3f} %", faults)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llmpart")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the number of the first problem (0)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10, help="that HiGHS may take for a problem (10)")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/random-plans", help="for models and reports")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    lines, bad = [], 0
    for number in range(args.first, args.first + args.count):
        case = Case(args.llmpart, args.seed, number, args.folder)
        line, faults = judge(case, args.seconds)
        lines.append(line)
        print(f"{number}: {line}", flush=True)
        for fault in faults:
            print(f"random_plans: seed {args.seed}, problem {number}: {fault}; {' '.join(map(str, [case.model, *case.options, *case.limits]))}",
                  file=sys.stderr, flush=True)
        bad += bool(faults)
    print(f"{len(lines)} problems, {sum('(optimal)' in line for line in lines)} solved by HiGHS, "
          f"{sum('gap 0.000' in line for line in lines)} plans proved best, {bad} with faults")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
