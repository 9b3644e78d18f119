"""Figures 3, 4, 6 and 7 of P1 as SVG, and the saving of whole requests.

Usage: figures.py LLMPART OUT [FOLDER]   (study.sh runs it; OUT has llama2-7b.onnx, FOLDER gets the figures)

Counts products and attention, as P1 does, at the hardware models that end in -p1. FOLDER/figure3.svg: shares of the time
of products and of attention over the length. figure4.svg: the share of the peak that operators reach over their
intensity. figure6.svg: TTFT and TPOT. figure7.svg: the cost of each stage over the length. OUT/figures.md has the tables
of README.md: the saving of the 64 pairs of prompt and output length at three utilisations of the devices, and how far
Table I and the reproduction's times are off. No point of the paper's curves is known here.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

SIZES = [16, 32, 64, 128, 256, 512, 1024, 2048]
BOUND_MS = {"prefill": 400.0, "decode": 100.0}
# device, cloud, the cloud's USD/s, the saving that the paper reports; the paper has one peak for each machine
GROUPS = {"L": ("jetson-nano-p1,peak_f32=0.47TFLOP/s", "v100s-p1,peak_f32=130TFLOP/s", 1.5e-5, 0.116),
          "H": ("snapdragon-8s-gen3-p1,peak_f32=8.5TFLOP/s", "a100-p1,peak_f32=312TFLOP/s", 4e-5, 0.207)}
# The shares of peak and bandwidth that a device reaches: "fitted" gives the paper's savings, "sheet" are those of
# jetson-nano (clpeak) and of snapdragon-8s-gen3 (estimated from the 8 Gen 3).
SHARES = {"peak": {"L": (1.0, 1.0), "H": (1.0, 1.0)}, "fitted": {"L": (0.73, 0.73), "H": (0.39, 0.39)},
          "sheet": {"L": (0.52, 0.82), "H": (0.087, 0.63)}}
# A reproduction of this project, not the paper's: ms at 512 tokens, every machine at its peak, exact f16: all on the
# device, all in the cloud, Algorithm 1.
REPRODUCED_MS = {("L", "decode"): (527, 11.89, 97.5), ("H", "decode"): (176, 6.62, 99.8), ("L", "prefill"): (14412, 52.3, 353.7),
                 ("H", "prefill"): (800, 21.8, 396.6)}
H, F, V = 4096, 11008, 32000
COUNTED = ("op.linear", "op.attention")  # in the order in which Algorithm 1 moves them


class Study:
    def __init__(self, llmpart: str, out: Path) -> None:
        self.llmpart, self.out = llmpart, out
        self.reports: dict[tuple[str, str, int, int], dict] = {}

    def run(self, *arguments: str) -> str:
        done = subprocess.run([self.llmpart, *arguments], capture_output=True, text=True)
        if done.returncode not in (0, 3):
            sys.exit(f"figures: {' '.join(arguments)}\n{done.stderr}")
        return done.stdout

    def report(self, group: str, shares: str, prompt: int, output: int) -> dict:
        device, cloud, _, _ = GROUPS[group]
        compute, memory = SHARES[shares][group]
        key = (group, shares, prompt, output)
        if key not in self.reports:
            self.reports[key] = self.plan(f"{device},compute_utilisation={compute},memory_utilisation={memory}", cloud, prompt, output)
        return self.reports[key]

    def plan(self, device: str, cloud: str, prompt: int, output: int) -> dict:
        path = self.out / "figure.json"
        self.run("compile", str(self.out / "llama2-7b.onnx"), f"--device={device}", f"--cloud={cloud}", "--link=lan", "--scheduler=cloud-only",
                 "--kv-dtype=f16", f"--isl={prompt}", f"--osl={output}", "--plan-only", "--table1", f"--report={path}")
        return json.loads(path.read_text())


def apart(operator: dict) -> list[dict]:
    """The paper has two products where llmpart has one operator, which computes both products of SwiGLU."""
    if not operator["name"].endswith(".up"):
        return [operator]
    return [{side: operator[side] / 2 for side in ("device_ms", "cloud_ms")}] * 2


def algorithm_1(report: dict, stage: str) -> tuple[float, float, float, float]:
    """ms: all on the device, all in the cloud, Algorithm 1's sum, and the cloud's share of it."""
    operators = [part for kind in COUNTED for o in report["operators"] if o["stage"] == stage and o["kind"] == kind for part in apart(o)]
    device, cloud = (sum(o[f"{side}_ms"] for o in operators) for side in ("device", "cloud"))
    total, busy = device, 0.0
    for o in operators:
        if total < BOUND_MS[stage]:
            break
        total += o["cloud_ms"] - o["device_ms"]
        busy += o["cloud_ms"]
    return device, cloud, total, busy


# ---- drawing --------------------------------------------------------------------------------------------------------

COLOURS = ["#0b57d0", "#c77700", "#b3261e", "#188038", "#7b1fa2", "#5f6368"]


def write(path: Path, width: int, height: int, title: str, parts: list[str]) -> None:
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">'
                    f'<rect width="{width}" height="{height}" fill="#fff"/><text x="20" y="24" font-size="15">{title}</text>\n'
                    + "\n".join(parts) + "\n</svg>\n")


class Panel:
    """A chart with a logarithmic x axis; the y axis is too, unless it begins at 0."""

    def __init__(self, x0: float, y0: float, title: str, xs: tuple[float, float], ys: tuple[float, float], below: str, wide: float = 340) -> None:
        self.x0, self.y0, self.wide, self.high, self.xs, self.ys = x0, y0, wide, 200, xs, ys
        self.parts = [f'<text x="{x0}" y="{y0 - 8}" font-weight="bold">{title}</text>',
                      f'<rect x="{x0}" y="{y0}" width="{wide}" height="{self.high}" fill="none" stroke="#888"/>',
                      f'<text x="{x0 + wide / 2}" y="{y0 + self.high + 30}" text-anchor="middle">{below}</text>']
        for value in self.ticks(*ys):
            y = self.at(xs[0], value)[1]
            self.parts.append(f'<line x1="{x0}" x2="{x0 + wide}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                              f'<text x="{x0 - 5}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')

    @staticmethod
    def ticks(low: float, high: float) -> list[float]:
        if low == 0:
            return [high * i / 4 for i in range(5)]
        return [10.0**e for e in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]

    def at(self, x: float, y: float) -> tuple[float, float]:
        part = [(v - low) / (high - low) if low == 0 else math.log(max(v, 1e-12) / low) / math.log(high / low) for v, (low, high) in ((x, self.xs), (y, self.ys))]
        return self.x0 + part[0] * self.wide, self.y0 + self.high - min(max(part[1], 0), 1) * self.high

    def x_ticks(self, values: list[float]) -> None:
        for value in values:
            self.parts.append(f'<text x="{self.at(value, self.ys[0])[0]:.1f}" y="{self.y0 + self.high + 14}" text-anchor="middle">{value:g}</text>')

    def line(self, points: list[tuple[float, float]], colour: str, dashes: str = "") -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (self.at(*p) for p in points))
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dashed}/>')


def legend(names: list[str], y: float, step: float = 130) -> list[str]:
    return [f'<text x="{20 + step * i}" y="{y}" fill="{COLOURS[i % len(COLOURS)]}">{name}</text>' for i, name in enumerate(names)]


# ---- Figure 3 -------------------------------------------------------------------------------------------------------


def table_1(name: str, stage: str, s: int) -> float:
    """The ratio column of the paper's Table I."""
    if name == "LM head":
        return H * V / (2 * H + H * V)
    if stage == "prefill":
        return {"Q, K, V, O linear": s * H / (H + 2 * s), "S.V attention": s * H / (2 * H + s), "FFN": s * H * F / (s * (H + F) + H * F)}[name]
    return {"Q, K, V, O linear": H / (H + 2), "S.V attention": (s + 1) * H / (H + (s + 1) * (H + 1)), "FFN": H * F / (H + F + H * F)}[name]


def table_1_shares(rows: list[dict], stage: str) -> float:
    """Attention's share of the time by Table I: OPs and f16 elements at an A100's peaks. Q, K, V and O are four products."""
    def time(row: dict) -> float:
        return max(2 * row["ops"] / 312e12, 2 * row["elements"] / 2039e9) * (4 if row["operator"].startswith("Q") else 1)
    layer = {row["operator"]: 0.0 for row in rows}
    for row in rows:
        if row["stage"] == stage:
            layer[row["operator"]] += time(row) * (1 if row["operator"] == "LM head" else 32)
    return layer["S.V attention"] / sum(layer.values())


def kernel_shares(report: dict, stage: str, side: str) -> float:
    """Attention's share of the time of products and attention, by a machine's operators."""
    time = {kind: sum(o[f"{side}_ms"] for o in report["operators"] if o["stage"] == stage and o["kind"] == kind) for kind in COUNTED}
    return time["op.attention"] / sum(time.values())


def figure_3(study: Study, folder: Path) -> float:
    """Returns the largest difference of the ratios from Table I, as a share."""
    names = ["Table I at an A100's peaks", "operators measured on an A100", "llmpart's kernels on this processor"]
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    worst = 0.0
    for size in SIZES:
        report = study.plan("host", "a100", size, 2)
        for row in report["table1"]:
            worst = max(worst, abs(row["ratio"] / table_1(row["operator"], row["stage"], size) - 1))
        for stage in BOUND_MS:
            values = (table_1_shares(report["table1"], stage), kernel_shares(report, stage, "cloud"), kernel_shares(report, stage, "device"))
            for name, value in zip(names, values):
                found.setdefault((stage, name), []).append((size, 100 * value))
    parts = legend(names, 44, 240) + [f'<text x="20" y="{60}">solid: products; dashed: attention</text>']
    for i, stage in enumerate(BOUND_MS):
        panel = Panel(60 + 420 * i, 90, f"{stage}: share of the time, %", (SIZES[0], SIZES[-1]), (0, 100), "prompt tokens" if i == 0 else "tokens of context")
        panel.x_ticks([float(s) for s in SIZES])
        for name, colour in zip(names, COLOURS):
            panel.line([(x, 100 - y) for x, y in found[stage, name]], colour)
            panel.line(found[stage, name], colour, "5 4")
        parts += panel.parts
    write(folder / "figure3.svg", 860, 340, "Shares of products and attention over the length, LLaMA2-7B (Fig. 3)", parts)
    return worst


# ---- Figure 4 -------------------------------------------------------------------------------------------------------


def reached(study: Study, machine: str, peak: float, op: str, flops: float, moved: float, *sizes: str) -> tuple[float, float]:
    """FLOP per byte, and the share of the peak."""
    got = json.loads(study.run("hw", "predict", machine, f"--op={op}", *sizes, "-o", "json"))
    return flops / moved, flops / (got["time_us"] * 1e-6) / peak


def figure_4(study: Study, folder: Path) -> None:
    shapes = [(H, H), (F, H), (H, F), (V, H)]
    rows = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
    parts = legend([f"{n} x {k}" for n, k in shapes] + ["attention, prefill", "attention, decode"], 44, 120)
    parts.append('<text x="20" y="60">grey: the roofline; no V100S was measured: the V100 is another card, and its table has products only</text>')
    for i, machine in enumerate(["a100", "v100"]):
        figures = json.loads(study.run("hw", "show", machine, "-o", "json"))["machine"]["figures"]
        peak, bandwidth = (figures[key] for key in ("peak_f16_flops", "bandwidth_bytes_per_s"))
        panel = Panel(60 + 420 * i, 90, f"{machine}: share of the peak, f16", (0.5, 4000), (1e-4, 1), "FLOP per byte")
        panel.x_ticks([1, 10, 100, 1000])
        panel.line([(x, min(1, x * bandwidth / peak)) for x in (0.5, peak / bandwidth, 4000)], "#9aa0a6", "5 4")
        for colour, (n, k) in zip(COLOURS, shapes):
            panel.line([reached(study, machine, peak, "linear", 2 * m * n * k, 2 * (m * k + k * n + m * n), f"--m={m}", f"--n={n}", f"--k={k}") for m in rows], colour)
        if machine == "a100":
            heads = ["--heads=32", "--kv-heads=4", "--head-dim=128"]  # as in the table of this card
            for colour, sizes in zip(COLOURS[4:], ([(1, s, s) for s in SIZES], [(batch, 1, 1024) for batch in (1, 2, 4, 8, 16, 32, 64)])):
                points = []
                for batch, q, kv in sizes:
                    pairs = q * (2 * kv - q + 1) / 2  # causal
                    flops, moved = 4 * batch * pairs * H, 2 * batch * (2 * q * H + 2 * kv * 4 * 128)
                    points.append(reached(study, machine, peak, "attention", flops, moved, f"--batch={batch}", f"--q-len={q}", f"--kv-len={kv}", *heads))
                panel.line(sorted(points), colour)
        parts += panel.parts
    write(folder / "figure4.svg", 860, 340, "Utilisation over intensity (Fig. 4): curves of the fitted machine models", parts)


# ---- Figure 6 -------------------------------------------------------------------------------------------------------


def figure_6(study: Study, folder: Path) -> tuple[float, float]:
    """Returns the largest difference from the reproduction's times at 512 tokens, as a share: of one side alone, of Algorithm 1."""
    names = ["all on the device", "all in the cloud", "Algorithm 1"]
    parts = legend(names, 44) + ['<text x="420" y="44">dashed: devices at 0.73 and 0.39 of their peak; grey: the limit</text>']
    worst = [0.0, 0.0, 0.0]
    for row, group in enumerate(GROUPS):
        reports = {shares: [study.report(group, shares, size, 2) for size in SIZES] for shares in ("peak", "fitted")}
        for column, stage in enumerate(BOUND_MS):
            panel = Panel(60 + 420 * column, 80 + 270 * row, f"Group-{group}: {'TTFT' if stage == 'prefill' else 'TPOT'} in ms", (SIZES[0], SIZES[-1]),
                          (1, 1e5), "tokens")
            panel.x_ticks([float(s) for s in SIZES])
            panel.line([(SIZES[0], BOUND_MS[stage]), (SIZES[-1], BOUND_MS[stage])], "#9aa0a6")
            for shares, dashes in (("peak", ""), ("fitted", "4 3")):
                times = [algorithm_1(report, stage) for report in reports[shares]]
                for i in range(3):
                    panel.line([(size, t[i]) for size, t in zip(SIZES, times)], COLOURS[i], dashes)
                    if shares == "peak":
                        worst[i] = max(worst[i], abs(times[SIZES.index(512)][i] / REPRODUCED_MS[group, stage][i] - 1))
            parts += panel.parts
    write(folder / "figure6.svg", 860, 600, "Time to the first token and per further token (Fig. 6)", parts)
    return max(worst[:2]), worst[2]


# ---- Figure 7 and whole requests ------------------------------------------------------------------------------------


def figure_7(study: Study, folder: Path) -> None:
    """The cost of a prompt, and of a further token, over the length."""
    parts = legend(["all in the cloud", "Algorithm 1"], 44) + ['<text x="420" y="44">solid: devices at their peak; dashed: at 0.73 and 0.39 of it</text>']
    for row, (group, (_, _, price, _)) in enumerate(GROUPS.items()):
        reports = {shares: [study.report(group, shares, size, 2) for size in SIZES] for shares in ("peak", "fitted")}
        for column, stage in enumerate(BOUND_MS):
            panel = Panel(60 + 420 * column, 80 + 270 * row, f"Group-{group}, {stage}: USD", (SIZES[0], SIZES[-1]),
                          (1e-9, 1e-4) if stage == "prefill" else (1e-8, 1e-6), "prompt tokens" if stage == "prefill" else "tokens of context")
            panel.x_ticks([float(s) for s in SIZES])
            for shares, dashes in (("peak", ""), ("fitted", "4 3")):
                found = [algorithm_1(report, stage) for report in reports[shares]]
                panel.line([(size, whole * 1e-3 * price) for size, (_, whole, _, _) in zip(SIZES, found)], COLOURS[0], dashes)
                panel.line([(size, moved * 1e-3 * price) for size, (_, _, _, moved) in zip(SIZES, found)], COLOURS[1], dashes)
            parts += panel.parts
    write(folder / "figure7.svg", 860, 600, "Cost of each stage over the length (Fig. 7)", parts)


def saving(study: Study, group: str, shares: str) -> float:
    """The mean saving of end-to-end cost of Algorithm 1 over the cloud alone, of the 64 pairs of prompt and output."""
    saved = []
    for prompt in SIZES:
        for output in SIZES:
            report = study.report(group, shares, prompt, output)
            busy, whole = 0.0, 0.0
            for stage, steps in (("prefill", 1), ("decode", output - 1)):
                _, cloud, _, moved = algorithm_1(report, stage)
                busy += steps * moved
                whole += steps * cloud
            saved.append(1 - busy / whole)
    return sum(saved) / len(saved)


def main() -> None:
    study = Study(sys.argv[1], Path(sys.argv[2]))
    folder = Path(sys.argv[3]) if len(sys.argv) > 3 else study.out
    folder.mkdir(parents=True, exist_ok=True)
    ratios = figure_3(study, folder)
    figure_4(study, folder)
    side, algorithm = figure_6(study, folder)
    figure_7(study, folder)
    lines = ["<!-- table: counted -->", "| group | at peak | at the fitted utilisation | at the sheet's shares | published |", "| --- " * 5 + "|"]
    for group, (_, _, _, published) in GROUPS.items():
        saved = {shares: f"{100 * saving(study, group, shares):.1f} %" for shares in SHARES}
        lines.append(f"| {group} | {saved['peak']} | {saved['fitted']} ({SHARES['fitted'][group][0]}) | {saved['sheet']} "
                     f"({', '.join(f'{share:g}' for share in SHARES['sheet'][group])}) | {100 * published:.1f} % |")
    lines += ["<!-- end -->", "<!-- table: differences -->", f"The ratios of Table I {'are met' if ratios < 1e-8 else f'are {100 * ratios:.1g} % off'}. Of this project's own times at 512 tokens, those of one side "
              f"are within {100 * side:.2g} %, Algorithm 1's within {100 * algorithm:.2g} %.", "<!-- end -->"]
    (study.out / "figures.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
