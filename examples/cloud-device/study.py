"""The study of P1, three ways: Algorithm 1 as published, the same charged for the link and memory, and exact.

Usage: study.py LLMPART OUT   (study.sh makes OUT/llama2-7b.onnx first)

Writes OUT/study.csv, OUT/times.svg and OUT/decrement.svg; then of whole requests OUT/requests.csv and OUT/requests.svg,
the saving of each of the 64 pairs of prompt and output length. OUT/study.md has the tables of README.md.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SIZES = [16, 32, 64, 128, 256, 512, 1024, 2048]
LINK = "rtt=10ms,up=100Mbit/s,down=100Mbit/s"
BOUND_MS = {"prefill": 400.0, "decode": 100.0}
WAYS = ["published", "charged", "exact"]

# Peak FLOP/s, byte/s, memory, price per s: as P1 has them.
MACHINES = {
    "nano": ("0.47 TFLOP/s", "25.6 GB/s", "4 GiB", 0.0),
    "snapdragon": ("8.5 TFLOP/s", "76.6 GB/s", "12 GiB", 0.0),
    "v100s": ("130 TFLOP/s", "1134 GB/s", "32 GiB", 1.5e-5),
    "a100": ("312 TFLOP/s", "2039 GB/s", "40 GiB", 4e-5),
}
PUBLISHED = {"L": 0.116, "H": 0.207}  # the mean saving that the paper reports
GROUPS = {"L": ("nano", "v100s", 0.73), "H": ("snapdragon", "a100", 0.39)}  # the last: the device's utilisation that gives PUBLISHED
SHEETS = {"L": (0.52, 0.82), "H": (0.087, 0.63)}  # of computing and memory, of jetson-nano and snapdragon-8s-gen3


@dataclass(frozen=True)
class Point:
    group: str
    utilisation: float  # of the device
    size: int
    stage: str
    way: str
    ms: float
    decrement: float  # of the cloud's busy time against cloud-only
    feasible: bool


def write_machines(out: Path) -> None:
    for name, (peak, bandwidth, memory, price) in MACHINES.items():
        (out / f"{name}.yaml").write_text(
            f"machine: {name}\ntitle: as P1 has it\nkind: gpu\npeak_f32: {peak}\npeak_f16: {peak}\n"
            f"memory_bandwidth: {bandwidth}\nmemory: {memory}\ncompute_utilisation: 1\nmemory_utilisation: 1\n"
            f"launch: 0ms\nprice_usd_per_s: {price:g}\npower: 0 W\n"
        )


def report(llmpart: str, out: Path, group: str, utilisation: float, size: int) -> dict:
    device, cloud, _ = GROUPS[group]
    path = out / "report.json"
    used = f"compute_utilisation={utilisation},memory_utilisation={utilisation}"
    command = [llmpart, "compile", str(out / "llama2-7b.onnx"), "--plan-only", "--tolerance=0", f"--report={path}"]
    command += [f"--device={out / device}.yaml,{used}", f"--cloud={out / cloud}.yaml", f"--link={LINK}"]
    command += [f"--isl={size}", "--osl=2", "--ttft=400ms", "--tpot=100ms"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"study: {' '.join(command)}\n{done.stderr}")
    return json.loads(path.read_text())


def points(found: dict, group: str, utilisation: float, size: int) -> list[Point]:
    greedy, cloud = found["baselines"].get("greedy"), found["baselines"]["cloud_only"]
    out = []
    for stage, total in (("prefill", "ttft_ms"), ("decode", "tpot_ms")):
        whole = cloud[f"{stage}_cloud_ms"]
        def point(way: str, ms: float, busy: float, feasible: bool) -> Point:
            return Point(group, utilisation, size, stage, way, ms, 1 - busy / whole, feasible)
        if greedy:
            hidden = greedy[f"{stage}_device_ms"] + greedy[f"{stage}_cloud_ms"]
            out.append(point("published", hidden, greedy[f"{stage}_cloud_ms"], hidden < BOUND_MS[stage]))
            held = greedy["feasible"]  # a plan that misses a limit cannot be used: only the cloud-only plan remains
            out.append(point("charged", greedy[total], greedy[f"{stage}_cloud_ms"] if held else whole, held))
        plan = found["plan"]
        out.append(point("exact", plan[total], plan[f"{stage}_cloud_ms"], plan["feasible"]))
    return out


# ---- drawing --------------------------------------------------------------------------------------------------------

COLOURS = {"published": "#c77700", "charged": "#b3261e", "exact": "#0b57d0"}


def panel(x0: int, y0: int, title: str, series: dict[str, list[float]], bound: float | None, unit: str) -> str:
    width, height = 320, 180
    top = max([max(s) for s in series.values() if s] + ([bound * 1.1] if bound else []) + [1e-9])
    low = min([min(s) for s in series.values() if s] + [0.0])
    def at(i: int, value: float) -> tuple[float, float]:
        return x0 + i * width / (len(SIZES) - 1), y0 + height - (value - low) / (top - low) * height
    parts = [f'<text x="{x0}" y="{y0 - 8}" font-weight="bold">{title}</text>',
             f'<rect x="{x0}" y="{y0}" width="{width}" height="{height}" fill="none" stroke="#888"/>',
             f'<text x="{x0 - 6}" y="{y0 + 10}" text-anchor="end">{top:.4g} {unit}</text>',
             f'<text x="{x0 - 6}" y="{y0 + height}" text-anchor="end">{low:.3g}</text>']
    for i, size in enumerate(SIZES):
        parts.append(f'<text x="{at(i, low)[0]:.1f}" y="{y0 + height + 14}" text-anchor="middle">{size}</text>')
    if bound:
        y = at(0, bound)[1]
        parts.append(f'<line x1="{x0}" x2="{x0 + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#555" stroke-dasharray="5 4"/>')
    for way, values in series.items():
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(i, v) for i, v in enumerate(values)))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[way]}" stroke-width="2"/>')
    return "\n".join(parts)


def draw(path: Path, title: str, all_points: list[Point], utilisations: dict[str, float], what: str) -> None:
    parts = []
    for row, group in enumerate(GROUPS):
        for column, stage in enumerate(BOUND_MS):
            def values(way: str) -> list[float]:
                chosen = [p for p in all_points if (p.group, p.stage, p.way) == (group, stage, way)
                          and p.utilisation == utilisations[group]]
                return [p.ms if what == "ms" else 100 * p.decrement for p in chosen]
            series = {way: values(way) for way in WAYS if len(values(way)) == len(SIZES)}
            if what == "ms":  # the charged plan may be far off the scale
                series = {w: [min(v, 4 * BOUND_MS[stage]) for v in s] for w, s in series.items()}
            parts.append(panel(90 + 460 * column, 70 + 260 * row, f"Group-{group}, {stage}", series,
                               BOUND_MS[stage] if what == "ms" else None, "ms" if what == "ms" else "%"))
    legend = " ".join(f'<text x="{90 + 130 * i}" y="44" fill="{COLOURS[w]}">{w}</text>' for i, w in enumerate(WAYS))
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="920" height="580" font-family="sans-serif" '
                    f'font-size="11"><rect width="920" height="580" fill="#fff"/>'
                    f'<text x="90" y="24" font-size="15">{title}</text>{legend}\n' + "\n".join(parts) + "\n</svg>\n")


# ---- whole requests -------------------------------------------------------------------------------------------------


def sweep(llmpart: str, out: Path, group: str, shares: tuple[float, float]) -> dict[tuple[int, int], float]:
    """The saving of cloud time of Algorithm 1 over cloud-only, by prompt and output length."""
    device, cloud, _ = GROUPS[group]
    spec = out / "requests.yaml"
    used = f"compute_utilisation={shares[0]},memory_utilisation={shares[1]}"
    spec.write_text(
        f"model: llama2-7b.onnx\nmachines:\n  - {{ device: \"{out.resolve() / device}.yaml,{used}\", "
        f"cloud: \"{out.resolve() / cloud}.yaml\" }}\nlinks: [\"{LINK}\"]\n"
        f"workloads: {{ isl: {SIZES}, osl: {SIZES} }}\n"
        f"slas: [{{ ttft: 400ms, tpot: 100ms }}]\nschedulers: [greedy, cloud-only]\n")
    done = subprocess.run([llmpart, "sweep", str(spec), "-o", "csv"], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"study: sweep {spec}\n{done.stderr}")
    busy: dict[tuple[str, int, int], float] = {}
    for row in csv.DictReader(done.stdout.splitlines()):
        busy[row["scheduler"], int(row["isl"]), int(row["osl"])] = float(row["cloud_busy_ms"])
    return {(p, o): 1 - busy["greedy", p, o] / busy["cloud-only", p, o] for p in SIZES for o in SIZES}


def bars(x0: int, y0: int, title: str, saved: dict[tuple[int, int], float], published: float) -> str:
    """A bar for each pair, grouped by prompt length; lines at the mean and at the paper's."""
    width, height, top = 860, 170, max([*saved.values(), published]) * 1.1
    def y(value: float) -> float:
        return y0 + height - height * max(value, 0) / top
    parts = [f'<text x="{x0}" y="{y0 - 8}" font-weight="bold">{title}</text>']
    step = width / len(SIZES)
    for i, prompt in enumerate(SIZES):
        parts.append(f'<text x="{x0 + (i + 0.45) * step:.1f}" y="{y0 + height + 14}" text-anchor="middle">{prompt}</text>')
        for k, length in enumerate(SIZES):
            at = y(saved[prompt, length])
            parts.append(f'<rect x="{x0 + i * step + k * step * 0.11:.1f}" y="{at:.1f}" width="{step * 0.1:.1f}" '
                         f'height="{y0 + height - at:.1f}" fill="#0b57d0" fill-opacity="{0.3 + 0.1 * k:.1f}"/>')
    own = sum(saved.values()) / len(saved)
    for value, colour, label in ((own, "#0b57d0", "mean"), (published, "#b3261e", "paper")):
        parts.append(f'<line x1="{x0}" x2="{x0 + width}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="{colour}"/>'
                     f'<text x="{x0 + width + 4}" y="{y(value) + (9 if label == "mean" else -3):.1f}" fill="{colour}">'
                     f"{label} {100 * value:.1f} %</text>")
    return "\n".join(parts)


def study_requests(llmpart: str, out: Path) -> list[str]:
    parts, rows = [], []
    lines = ["| group | at peak | at the fitted utilisation | at the sheet's shares | published |", "| --- " * 5 + "|"]
    for i, (group, (_, _, utilisation)) in enumerate(GROUPS.items()):
        shares = {1.0: (1.0, 1.0), utilisation: (utilisation, utilisation), "sheet": SHEETS[group]}
        found = {used: sweep(llmpart, out, group, of) for used, of in shares.items()}
        means = {used: f"{100 * mean(list(saved.values())):.1f} %" for used, saved in found.items()}
        lines.append(f"| {group} | {means[1.0]} | {means[utilisation]} ({utilisation}) | {means['sheet']} ({SHEETS[group][0]}, {SHEETS[group][1]}) | "
                     f"{100 * PUBLISHED[group]:.1f} % |")
        rows += [[group, utilisation, p, o, f"{v:.6g}"] for (p, o), v in found[utilisation].items()]
        parts.append(bars(60, 60 + 240 * i, f"Group-{group}, device at {utilisation}: saving by prompt length; "
                          f"bars: 16 to 2048 generated tokens", found[utilisation], PUBLISHED[group]))
    with (out / "requests.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["group", "device_utilisation", "prompt", "output", "decrement"])
        writer.writerows(rows)
    (out / "requests.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="1020" height="520" font-family="sans-serif" font-size="11">'
        '<rect width="1020" height="520" fill="#fff"/><text x="60" y="24" font-size="15">Cost of whole requests against '
        "the cloud alone, Algorithm 1</text>\n" + "\n".join(parts) + "\n</svg>\n")
    return lines


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def summarise(all_points: list[Point]) -> list[str]:
    lines = ["| group, device's utilisation | " + " | ".join(WAYS) + " | exact, both stages | " + "exact plans that meet the limits |", "| --- " * 6 + "|"]
    for group, (_, _, utilisation) in GROUPS.items():
        for used in (1.0, utilisation):
            cells = []
            for way in WAYS:
                chosen = [p for p in all_points if (p.group, p.utilisation, p.way) == (group, used, way)]
                stage = [100 * mean([p.decrement for p in chosen if p.stage == s]) for s in BOUND_MS]
                cells.append(" / ".join(f"{s:.1f}" for s in stage))
            cells += [f"{mean(stage):.1f}", f"{sum(p.feasible for p in chosen)} of {len(chosen)}"]
            lines.append(f"| {group}, {used:.2f}{' (peak)' if used == 1 else ''} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    llmpart, out = sys.argv[1], Path(sys.argv[2])
    write_machines(out)
    found: list[Point] = []
    for group, (_, _, utilisation) in GROUPS.items():
        for used in (1.0, utilisation):
            for size in SIZES:
                found += points(report(llmpart, out, group, used, size), group, used, size)
    with (out / "study.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["group", "device_utilisation", "size", "stage", "way", "ms", "decrement", "feasible"])
        for p in found:
            writer.writerow([p.group, p.utilisation, p.size, p.stage, p.way, f"{p.ms:.6g}", f"{p.decrement:.6g}", int(p.feasible)])
    fitted = {group: u for group, (_, _, u) in GROUPS.items()}
    draw(out / "times.svg", "TTFT and TPOT, device utilisation 0.73 and 0.39", found, fitted, "ms")
    draw(out / "decrement.svg", "Cost decrement against the cloud alone", found, fitted, "decrement")
    lines = ["<!-- table: three-ways -->", *summarise(found), "<!-- end -->", "<!-- table: requests -->", *study_requests(llmpart, out), "<!-- end -->"]
    (out / "study.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
