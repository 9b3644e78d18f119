"""Predicted against measured on this machine: profiles it, compiles models, runs them, prints a Markdown table.

    python tests/bench/predict_host.py --llmpart build/release/tools/llmpart [MODEL.onnx ...] [--no-profile] [--operators]

Without models: the default model. TTFT of 512 tokens and TPOT behind 512 + 64 tokens as the planner gives them, beside what
`llmpart bench` measures; then the mean absolute error over operators that take 1 % of their stage or more (equal ones of all
layers count once, by the median of their times; what timing each part by itself adds is taken off), and over all of them
weighted by time. The machine should be idle.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

PROMPT, TOKENS = 512, 128


def run(*command: object) -> str:
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def speeds(llmpart: str, bundle: Path, rounds: int, threads: int) -> tuple[float, float]:
    """Measured TTFT and TPOT in ms: medians over fresh processes."""
    ttft, tpot = [], []
    for _ in range(rounds):
        pp = json.loads(run(llmpart, "bench", bundle, "-p", PROMPT, "-n", 0, "-r", 5, "-t", threads, "-o", "json"))["tests"][0]
        tg = json.loads(run(llmpart, "bench", bundle, "-p", 0, "-n", TOKENS, "-d", PROMPT, "-r", 3, "-t", threads,
                            "-o", "json"))["tests"][0]
        ttft.append(1e3 * PROMPT / pp["tokens_per_s"])
        tpot.append(1e3 / tg["tokens_per_s"])
    return statistics.median(ttft), statistics.median(tpot)


def part_times(llmpart: str, bundle: Path, threads: int) -> dict[str, list[tuple[str, float]]]:
    """Measured (name, ms) of each operator of both stages."""
    def parts(*options: object) -> list[tuple[str, float]]:
        tests = json.loads(run(llmpart, "bench", bundle, "--profile", "-t", threads, "-o", "json", *options))["tests"]
        return [(p["name"], p["ms"]) for p in tests[0]["parts"]]
    return {"prefill": parts("-p", PROMPT, "-n", 0, "-r", 9),
            "decode": parts("-p", 0, "-n", TOKENS, "-d", PROMPT, "-r", 41)}


Row = tuple[str, str, float, float, bool]


def operator_errors(report: dict, measured: dict[str, list[tuple[str, float]]], whole: dict[str, float]) -> list[Row]:
    """(stage, operator, predicted ms, measured ms, takes 1 %), operators of equal kind and FLOPs and bytes merged."""
    groups: dict[tuple, list[tuple[float, float]]] = {}
    total: dict[str, float] = {}
    for stage, parts in measured.items():
        total[stage] = sum(ms for _, ms in parts)
        overhead = max(total[stage] - whole[stage], 0) / len(parts)
        times: dict[str, list[float]] = {}
        for name, ms in parts:
            times.setdefault(name, []).append(ms)
        for op in report["operators"]:
            found = times.get(f"{op['kind']} {op['name']}")
            if op["stage"] == stage and found:  # views run nothing; operators of positions alone are not reported
                key = (stage, op["kind"], op["flops"], op["bytes"])
                ms = found.pop(0)
                groups.setdefault(key, []).append((op["device_ms"], max(ms - overhead, ms / 10)))
    rows = []
    for (stage, kind, flops, _), times in groups.items():
        predicted, found = (statistics.median(t[i] for t in times) for i in (0, 1))
        rows.append((stage, f"{kind} {flops:.3g} FLOP", predicted, found, found * len(times) >= 0.01 * total[stage]))
    return rows


def mean_error(rows: list[Row], weighted: bool = False) -> float:
    weights = [row[3] if weighted else row[4] for row in rows]
    return 100 * sum(w * abs(r[2] / r[3] - 1) for w, r in zip(weights, rows)) / max(sum(weights), 1e-12)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmpart", required=True)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0, help="of the profile and of the runs (the machine's cores)")
    parser.add_argument("--no-profile", action="store_true", help="use the profile that is kept")
    parser.add_argument("--operators", action="store_true", help="also print every operator")
    args = parser.parse_args()
    models = args.models or [Path(__file__).parents[2] / "examples" / "default-model" / "model.onnx"]
    print(f"load before: {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not args.no_profile:
            subprocess.run([args.llmpart, "hw", "profile", "-o", str(folder / "host.yaml"), f"--threads={args.threads}"],
                           check=True)
        print("| model | TTFT predicted | measured | error | TPOT predicted | measured | error | operators: mean error | "
              "by time |\n| --- |" + " ---: |" * 8)
        for model in models:
            bundle, parts, report = folder / "b.llmpart", folder / "p.llmpart", folder / "r.json"
            run(args.llmpart, "compile", model, "--device=host", "-o", bundle, f"--report={report}")
            run(args.llmpart, "compile", model, "--device=host", "--profile", "-o", parts)
            plan = json.loads(report.read_text())
            ttft, tpot = speeds(args.llmpart, bundle, args.rounds, args.threads)
            rows = operator_errors(plan, part_times(args.llmpart, parts, args.threads), {"prefill": ttft, "decode": tpot})
            want_ttft, want_tpot = plan["plan"]["ttft_ms"], plan["plan"]["tpot_ms"]
            print(f"| {model.parent.name} | {want_ttft:.2f} | {ttft:.2f} | {100 * (want_ttft / ttft - 1):+.1f} % | "
                  f"{want_tpot:.3f} | {tpot:.3f} | {100 * (want_tpot / tpot - 1):+.1f} % | {mean_error(rows):.1f} % | "
                  f"{mean_error(rows, True):.1f} % |", flush=True)
            if args.operators:
                for stage, operator, predicted, measured, _ in rows:
                    print(f"  {stage:8} {operator:34} {1e3 * predicted:10.1f} {1e3 * measured:10.1f} us "
                          f"{100 * (predicted / measured - 1):+6.1f} %")
    print(f"load after: {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
