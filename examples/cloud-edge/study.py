"""The study of "CE-CoLLM: Efficient and Adaptive LLMs Through Cloud-Edge Collaboration" on models that are at hand.

Usage: study.py --llmpart PATH [--out DIR] [--smollm2 MODEL.onnx] [--only default|smollm2] [--tokens N] [--prompts N] [--links NAME,...]
                [--threads N]

For each model and each emulated link: seconds by part, bytes, and the shares of tokens that ask the cloud and that equal the full model's, of
cloud-only, the naive and the incremental split, standalone, threshold over theta, and exact. Writes DIR/tables.md, DIR/study.json and the
figures. With --only and --links the other rows are taken from DIR/study.json, from an earlier run with as many tokens and prompts. `examples/tables.py
cloud-edge --from DIR/tables.md` puts the tables into the page. Uses only the standard library.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import charts
import measure
import paper
from measure import Figures, Link, Runner, Worker

ROOT = Path(__file__).resolve().parents[2]
LINKS = [Link(*link) for link in paper.LINKS]
THETAS = [0.5, 0.7, 0.8, 0.9, 0.95]


@dataclass(frozen=True)
class Model:
    name: str
    path: Path
    exits: str
    width: int  # floats of a row
    prompts: list[list[int]]
    tokens: int
    title: str
    runs: bool  # else only what is known from before is shown


@dataclass
class Row:
    link: str
    strategy: str
    figures: Figures
    agreement: float
    way: str  # run, sampled or computed
    tokens: int
    prompts: int


class Study:
    def __init__(self, args: argparse.Namespace):
        self.args, self.out = args, args.out
        self.out.mkdir(parents=True, exist_ok=True)
        self.links = [link for link in LINKS if not args.links or link.name in args.links.split(",")]
        self.runner = Runner(args.llmpart, 0, args.threads)

    def compile(self, model: Model, name: str, *options: str) -> Path:
        bundle = self.out / f"{model.name}-{name}.llmpart"
        measure.call([self.args.llmpart, "compile", model.path, "--device=host", "--cloud=host", "--link=wifi", *options, "-o", bundle])
        # Each run is a process of its own here, and would compare all weights with their checksums beside its first
        # pass; a device that stays does so once.
        manifest = bundle / "manifest.json"
        lines = re.sub(r' *"crc32c": "[0-9a-f]*",\n', "", manifest.read_text()).split(' "seal": ')[0]
        manifest.write_text(f'{lines} "seal": "{hashlib.sha256(lines.encode()).hexdigest()}"\n}}\n')
        return bundle

    def over(self, prompts: list[list[int]], strategy: str, agreement: float, link: Link, way: str, run) -> Row:
        return Row(link.name, strategy, measure.mean([run(prompt) for prompt in prompts]), agreement, way, self.runner.tokens, len(prompts))

    def model(self, model: Model) -> list[Row]:
        runner = self.runner = Runner(self.args.llmpart, self.args.tokens or model.tokens, self.args.threads)
        prompts = model.prompts[: self.args.prompts or None]
        early, whole = self.compile(model, "exits", f"--exits={model.exits}"), self.compile(model, "cloud", "--scheduler=cloud-only")
        full = [runner.run(early, prompt, None, None, "--mode=full", "--in-process").tokens for prompt in prompts]
        rows: list[Row] = []
        with Worker(self.args.llmpart, early, self.args.threads) as worker, Worker(self.args.llmpart, whole, self.args.threads) as cloud:
            agreement = self.agreements(model, early, prompts, worker)
            for link in self.links:
                print(f"{model.name}, {link.name}: {link.text}", flush=True)
                rows += self.link(link, prompts, full, early, whole, worker, cloud, agreement)
        self.check_bytes(model, prompts, rows)
        return rows

    def agreements(self, model: Model, bundle: Path, prompts: list[list[int]], worker: Worker) -> dict[float | None, float]:
        """Does not depend on the link: by theta, None is standalone."""
        found: dict[float | None, float] = {}
        for theta in [None, *THETAS]:
            how = ["--mode=standalone"] if theta is None else ["--mode=threshold", f"--theta={theta}"]
            texts = [(prompt, self.runner.run(bundle, prompt, None if theta is None else worker, None, *how).tokens) for prompt in prompts]
            found[theta] = self.runner.agreement(bundle, self.out, texts, theta)
        return found

    def link(self, link: Link, prompts: list[list[int]], full: list[list[int]], early: Path, whole: Path, worker: Worker, cloud: Worker,
             agreement: dict[float | None, float]) -> list[Row]:
        runner, made = self.runner, dict(zip(map(tuple, prompts), full))

        def exact(prompt: list[int], *how: str) -> Figures:
            figures = runner.run(early, prompt, worker, link, *how)
            assert figures.tokens == made[tuple(prompt)], f"{how} does not give the full model's tokens"
            return figures

        rows = [
            self.over(prompts, "cloud-only", 1, link, "computed", lambda p: runner.cloud_only(whole, p, cloud, link)),
            self.over(prompts, "naive", 1, link, "sampled", lambda p: runner.naive(early, p, made[tuple(p)], worker, link)),
            self.over(prompts, "incremental", 1, link, "run", lambda p: exact(p, "--mode=full")),
            self.over(prompts, "standalone", agreement[None], link, "run", lambda p: runner.run(early, p, None, None, "--mode=standalone")),
        ]
        for theta in THETAS:
            rows.append(self.over(prompts, f"theta {theta:g}", agreement[theta], link, "run",
                                  lambda p, theta=theta: runner.run(early, p, worker, link, "--mode=threshold", f"--theta={theta}")))
        rows.append(self.over(prompts, "exact", 1, link, "run", lambda p: exact(p, "--mode=exact")))
        return rows

    def check_bytes(self, model: Model, prompts: list[list[int]], rows: list[Row]) -> None:
        """Checks that the bytes sent up are the rows by formula, and framing: the same for every theta."""
        length = sum(map(len, prompts)) / len(prompts)
        rows_f16 = paper.incremental_bytes(model.width, length, self.runner.tokens, 2)
        for row in rows:
            if row.strategy.startswith("theta"):
                assert rows_f16 <= row.figures.up <= 1.5 * rows_f16 + 20000, (row.strategy, row.figures.up, rows_f16)
            if row.strategy == "standalone":
                assert row.figures.up == row.figures.requests == 0

    # ---- what is written ---------------------------------------------------------------------------------------------

    def tables(self, model: Model, rows: list[Row]) -> list[str]:
        tokens = rows[0].tokens
        lines = [f"### {model.title}", "", f"{rows[0].prompts} prompts, {tokens} tokens each, exits after layers {model.exits}; means of a generation.", ""]
        for link in links_of(rows):
            chosen = [row for row in rows if row.link == link.name]
            lines += [f"**{link.name}**: {link.rtt_ms:g} ms, {link.up_mbit:g} Mbit/s up, {link.down_mbit:g} Mbit/s down. {self.verdict(chosen)}", "",
                      "| strategy | total, s | edge | cloud | link | connecting | KiB up | KiB down | asks the cloud | tokens a request | the full model's | |",
                      "| --- " * 12 + "|"]
            for row in chosen:
                f = row.figures
                lines.append(f"| {row.strategy} | {f.total_s:.3f} | {f.edge_s:.3f} | {f.cloud_s:.3f} | {f.comm_s:.3f} | {f.connect_s:.3f} | {f.up / 1024:.1f} | {f.down / 1024:.1f} | "
                             f"{100 * f.requests / tokens:.1f} % | {f'{tokens / f.requests:.1f}' if f.requests else '-'} | {100 * row.agreement:.2f} % | {row.way} |")
            lines.append("")
        return lines

    def verdict(self, rows: list[Row]) -> str:
        by = {row.strategy: row.figures for row in rows}
        tokens, middle = rows[0].tokens, by["theta 0.8"]
        exact, ratio = by["exact"], middle.total_s / by["exact"].total_s
        words = (f"Exact is {by['incremental'].total_s / exact.total_s:.1f} times as fast as the incremental split, "
                 f"{by['incremental'].total_s / (exact.total_s - exact.connect_s):.1f} times once connected. "
                 f"It takes {exact.total_s:.3g} s, theta 0.8 {middle.total_s:.3g} s: {'exact' if ratio > 1 else 'theta 0.8'} is the faster.")
        if middle.requests == 0:
            return words
        even = paper.break_even(by["cloud-only"].total_s / tokens, middle.edge_s / tokens, (middle.cloud_s + middle.comm_s + middle.connect_s) / middle.requests)
        return words + f" At theta 0.8 {100 * middle.requests / tokens:.0f} % of tokens ask; cloud-only would be as fast at {100 * max(even, 0):.0f} %."

    def figures(self, model: Model, rows: list[Row]) -> None:
        panels = {f"{link.name}: {link.text}": {row.strategy: (row.figures.edge_s, row.figures.cloud_s, row.figures.comm_s, row.figures.connect_s)
                                               for row in rows if row.link == link.name} for link in links_of(rows)}
        charts.bars(self.out / f"{model.name}-seconds.svg", f"{model.title}: seconds for {rows[0].tokens} tokens", panels)
        first = [row for row in rows if row.link == links_of(rows)[0].name and row.strategy.startswith("theta")]
        charts.lines(self.out / f"{model.name}-theta.svg", f"{model.title}: what theta buys", {
            "asks the cloud": [(float(row.strategy.split()[1]), 100 * row.figures.requests / row.tokens) for row in first],
            "tokens that are the full model's": [(float(row.strategy.split()[1]), 100 * row.agreement) for row in first]}, "theta")


def links_of(rows: list[Row]) -> list[Link]:
    return [link for link in LINKS if any(row.link == link.name for row in rows)]


def earlier(path: Path) -> dict[str, list[Row]]:
    if not path.exists():
        return {}
    found = json.loads(path.read_text())
    return {name: [Row(**(row | {"figures": Figures(**row["figures"])})) for row in rows] for name, rows in found.items()}


def merged(before: list[Row], now: list[Row]) -> list[Row]:
    links = {row.link for row in now}
    return [row for row in before if row.link not in links and (row.tokens, row.prompts) == (now[0].tokens, now[0].prompts)] + now


def models(args: argparse.Namespace) -> list[Model]:
    stories = json.loads((ROOT / "tests/models/default/tokens.json").read_text())["prompts"]
    questions = [question["prompt_ids"] for question in json.loads((ROOT / "examples/smollm2/tokens.json").read_text())]
    return [Model("default", ROOT / "examples/default-model/model.onnx", "3,6", 128, stories, 100, "The default model", args.only != "smollm2"),
            Model("smollm2", args.smollm2, "10,20", 576, questions, 40, "SmolLM2-135M-Instruct", bool(args.smollm2) and args.only != "default")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmpart", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("build/cloud-edge"))
    parser.add_argument("--smollm2", type=Path, help="model.onnx with exits after layers 10 and 20, as examples/train-exits makes it")
    parser.add_argument("--only", choices=("default", "smollm2"))
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--prompts", type=int)
    parser.add_argument("--links")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    study = Study(args)
    lines = ["<!-- table: links -->"]
    found = earlier(study.out / "study.json")
    for model in models(args):
        if model.runs:
            found[model.name] = merged(found.get(model.name, []), study.model(model))
        rows = found.get(model.name)
        if rows:
            lines += study.tables(model, rows)
            study.figures(model, rows)
    lines.append("<!-- end -->")
    (study.out / "tables.md").write_text("\n".join(lines) + "\n")
    (study.out / "study.json").write_text(json.dumps({name: [asdict(row) for row in rows] for name, rows in found.items()}, indent=1) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
