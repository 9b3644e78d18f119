"""Tables I and II and Figure 3 of "CE-CoLLM: Efficient and Adaptive LLMs Through Cloud-Edge Collaboration" with a model that is at hand: 100 prompts
of each of two kinds, every row in one run on one machine, deviations over the prompts, and two task metrics.

Usage: hundred.py --llmpart PATH [--out DIR] [--prompts N] [--tokens N] [--threads N]

For each prompt all strategies run one after the other, in an order that rotates, so that a change of the machine's speed meets all of them alike.
Short prompts are the beginnings of held-out stories, long ones whole stories and the beginning of another: as many tokens as the paper's Alpaca and
XSum have in the mean. Writes DIR/hundred.md, DIR/hundred.json, DIR/hundred-seconds.svg and DIR/hundred-confidence.svg;
`examples/tables.py cloud-edge --from DIR/hundred.md` puts the tables into the page. Uses only the standard library.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import charts
import measure
import paper
from measure import Link, Worker

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/default-model"))
from corpus import make_story  # noqa: E402

EXITS, WIDTH, THETAS = "3,6", 128, (0.8, 0.9)
LINK = Link("wifi", 5, 50, 100)
KINDS = {"short": "Alpaca", "long": "XSum"}
PARTS = ("total", "device", "cloud", "comm", "connect")


@dataclass
class Made:
    """One generation."""

    seconds: dict[str, float]
    up: float
    requests: int
    text: str
    tokens: list[int]
    early: float  # share of tokens that the first exit gave
    prompt_tokens: int


class Study:
    def __init__(self, args: argparse.Namespace):
        self.args, self.out = args, args.out
        self.out.mkdir(parents=True, exist_ok=True)
        model = ROOT / "examples/default-model/model.onnx"
        self.early, self.whole = self.out / "exits.llmpart", self.out / "cloud.llmpart"
        for bundle, option in ((self.early, f"--exits={EXITS}"), (self.whole, "--scheduler=cloud-only")):
            measure.call([args.llmpart, "compile", model, "--device=host", "--cloud=host", "--link=wifi", option, "-o", bundle])

    def run(self, bundle: Path, prompt: str | list[int], worker: Worker | None, link: Link | None, *options: str, tokens: int | None = None) -> Made:
        given = f"--prompt={prompt}" if isinstance(prompt, str) else "--tokens=" + ",".join(map(str, prompt))
        command = [self.args.llmpart, "run", bundle, given, "-n", tokens or self.args.tokens, "--ignore-eos", f"--threads={self.args.threads}",
                   "--cloud-timeout=60s", "-o", "json", *options]
        command += [f"--cloud={worker.address}"] if worker else []
        command += [f"--link={link.text}"] if link else []
        for _ in range(3):  # on a busy machine the device may go on without the cloud's answer: that is no measurement
            got = json.loads(measure.call(command))
            if not got["fallbacks"]:
                break
        else:
            sys.exit(f"hundred: {got['fallbacks']} tokens without the cloud's answer")
        first = [step for step in got["steps"] if step["exit_layer"] == int(EXITS.split(",")[0])]
        return Made({part: got[f"{part}_ms"] / 1e3 for part in PARTS}, got["bytes_up"], got["cloud_requests"], got["text"] or "", got["tokens"],
                    len(first) / max(1, len(got["tokens"])), got["prompt_tokens"])

    # ---- Table I and Figure 3 ----------------------------------------------------------------------------------------

    def cloud_only(self, prompt: str, cloud: Worker) -> Made:
        """Computing is measured; the link is added by formula: a round trip, and 4 bytes a token."""
        got = self.run(self.whole, prompt, cloud, None, "--mode=full")
        link = LINK.rtt_ms / 1e3 + 32 * (got.prompt_tokens / LINK.up_mbit + 1 / LINK.down_mbit) / 1e6
        got.seconds = {"total": got.seconds["cloud"] + link, "device": 0, "cloud": got.seconds["cloud"], "comm": link, "connect": 0}
        got.requests = 1
        return got

    def generations(self, prompts: dict[str, list[str]]) -> dict[tuple[str, str], list[Made]]:
        found: dict[tuple[str, str], list[Made]] = defaultdict(list)
        with Worker(self.args.llmpart, self.early, self.args.threads) as worker, Worker(self.args.llmpart, self.whole, self.args.threads) as cloud:
            ways = {"cloud-only": lambda p: self.cloud_only(p, cloud),
                    "incremental": lambda p: self.run(self.early, p, worker, LINK, "--mode=full"),
                    "standalone": lambda p: self.run(self.early, p, None, None, "--mode=standalone"),
                    **{f"theta {theta}": lambda p, theta=theta: self.run(self.early, p, worker, LINK, "--mode=threshold", f"--theta={theta}") for theta in THETAS},
                    "exact": lambda p: self.run(self.early, p, worker, LINK, "--mode=exact")}
            ways["cloud-only"](prompts["short"][0])  # warms the workers
            ways["incremental"](prompts["short"][0])
            for n in range(self.args.prompts):
                for kind in KINDS:
                    prompt = prompts[kind][n]
                    order = list(ways)[n % len(ways):] + list(ways)[:n % len(ways)]
                    made = {name: ways[name](prompt) for name in order}
                    assert made["exact"].tokens == made["incremental"].tokens, "exact does not give the full model's tokens"
                    made["naive"] = self.naive_of(prompt, made["incremental"], worker)
                    for name, one in made.items():
                        found[kind, name].append(one)
                print(f"{n + 1} of {self.args.prompts}", end="\r", file=sys.stderr, flush=True)
        return found

    def naive_of(self, prompt: str, full: Made, worker: Worker) -> Made:
        """The text of a prompt and its answer is cut where the answer had i tokens; the cut text is what both halves run over."""
        n = self.args.tokens
        at = sorted({0, n // 2, n - 1})
        words = full.text
        runs = [self.run(self.early, prompt + words[: round(len(words) * i / n)], worker, LINK, "--mode=full", tokens=1) for i in at]
        weights = [0.0] * len(at)
        for i in range(n):
            right = next(j for j, position in enumerate(at) if position >= i)
            left = max(right - 1, 0)
            share = 1.0 if at[right] == i else (i - at[left]) / (at[right] - at[left])
            weights[right] += share
            weights[left] += 1 - share
        seconds = {part: sum(w * run.seconds[part] for w, run in zip(weights, runs)) for part in PARTS}
        return Made(seconds, paper.naive_bytes(WIDTH, full.prompt_tokens, n), n, full.text, full.tokens, 0, full.prompt_tokens)

    def confidence(self, prompts: list[str]) -> dict[str, dict[float, float]]:
        """For each exit the share of the full model's tokens for which its confidence is at least so high (Figure 3)."""
        data = self.out / "prompts.jsonl"
        data.write_text("".join(json.dumps({"text": prompt}) + "\n" for prompt in prompts))
        got = json.loads(measure.call([self.args.llmpart, "calibrate", self.early, f"--data={data}", f"--generate={self.args.tokens}", "--at=0.8",
                                       f"--threads={self.args.threads}", "-o", "json"]))
        return {f"layer {exit['layer']}": {at["theta"]: at["exit_rate"] for at in exit["alone"]} for exit in got["exits"]}

    # ---- Table II ----------------------------------------------------------------------------------------------------

    def recall(self, cases: list[tuple[str, str]]) -> dict[str, list[bool]]:
        """Whether the answer to a story that stops before a name is that name."""
        found: dict[str, list[bool]] = defaultdict(list)
        with Worker(self.args.llmpart, self.early, self.args.threads) as worker:
            ways = {"incremental": ("--mode=full",), "standalone": ("--mode=standalone",), **{f"theta {t}": ("--mode=threshold", f"--theta={t}") for t in THETAS}}
            for text, name in cases:
                for way, options in ways.items():
                    made = self.run(self.early, text, None if way == "standalone" else worker, None, *options, tokens=5)
                    found[way].append(re.match(rf" ?{name}\b", made.text) is not None)
        found["cloud-only"] = found["naive"] = found["exact"] = found["incremental"]  # the full model's tokens
        return found


def rouge_l(made: str, wanted: str) -> float:
    """F1 of the longest common subsequence of words (Lin, 2004)."""
    a, b = re.findall(r"\w+", made.lower()), re.findall(r"\w+", wanted.lower())
    row = [0] * (len(b) + 1)
    for x in a:
        before = row[:]
        for j, y in enumerate(b):
            row[j + 1] = before[j] + 1 if x == y else max(row[j], before[j + 1])
    return 2 * row[-1] / (len(a) + len(b)) if a and b else 0.0


def held_out(number: int) -> str:
    return make_story(1, 100 * number + 99)


def prompts_of(count: int) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Prompts by kind, and how the story goes on after each."""
    prompts: dict[str, list[str]] = {kind: [] for kind in KINDS}
    rest: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for n in range(count):
        story, words = held_out(n), 14  # about 20 tokens
        cut = [m.end() for m in re.finditer(r"\S+", story)][words - 1]
        prompts["short"].append(story[:cut])
        rest["short"].append(story[cut:])
        before = "\n".join(held_out(count + 3 * n + k) for k in range(3))
        ends = [m.end() for m in re.finditer(r"\S+", before)]
        prompts["long"].append(before[: ends[min(len(ends), 212) - 1]] + "\n" + story[:cut])
        rest["long"].append(story[cut:])
    return prompts, rest


def recall_cases(count: int) -> list[tuple[str, str]]:
    """Held-out stories cut before the last name that stands within a sentence and occurred at least twice before."""
    cases, number = [], 0
    while len(cases) < count:
        story = held_out(number)
        number += 1
        names = [m for m in re.finditer(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b", story) if story[: m.start()].count(m[0]) >= 2]
        if names:
            cases.append((story[: names[-1].start()].rstrip(), names[-1][0]))
    return cases


# ---- what is written -------------------------------------------------------------------------------------------------


def pm(values: list[float], digits: int = 3) -> str:
    """Mean and standard deviation over prompts."""
    return f"{statistics.mean(values):.{digits}f} ± {statistics.pstdev(values):.{digits}f}"


ORDER = ["cloud-only", "naive", "incremental", "standalone", *(f"theta {t}" for t in THETAS), "exact"]
PAPER = {"cloud-only": lambda p: f"{p.cloud_only / 100:.2f}", "naive": lambda p: f"{p.naive / 100:.2f}", "standalone": lambda p: f"{p.standalone / 100:.2f}",
         "theta 0.8": lambda p: "{:.2f} ({:.2f} / {:.2f} / {:.2f})".format(*(x / 100 for x in p.collaborative))}
ACCURACY = {"cloud-only": "0.646, 0.291, 0.724, 0.2275", "standalone": "0.490, 0.274, 0.684, 0.1917", "theta 0.8": "0.658, 0.289, 0.724, 0.225"}


def table_one(found: dict[tuple[str, str], list[Made]], tokens: int) -> list[str]:
    """`offloaded`: the share of the cloud-only computing that the cloud no longer does."""
    lines = []
    for kind, name in KINDS.items():
        made = found[kind, "incremental"]
        lines += [f"**{kind}**: {statistics.mean(m.prompt_tokens for m in made):.1f} tokens a prompt; the paper's {name} has {paper.DATA[name].prompt}.", "",
                  "| strategy | total, s | edge | cloud | link | connecting | KiB up | asks the cloud, % | by the first exit, % | offloaded, % | the paper's, s: total (cloud / edge / comm) |",
                  "| --- " * 11 + "|"]
        whole = statistics.mean(m.seconds["cloud"] for m in found[kind, "cloud-only"])
        for way in ORDER:
            rows = found[kind, way]
            link = [m.seconds["comm"] - m.seconds["connect"] for m in rows]
            lines.append(f"| {way} | {pm([m.seconds['total'] for m in rows])} | {pm([m.seconds['device'] for m in rows], 4)} | {pm([m.seconds['cloud'] for m in rows], 4)} | {pm(link)} | "
                         f"{statistics.mean(m.seconds['connect'] for m in rows):.3f} | {statistics.mean(m.up for m in rows) / 1024:.1f} | "
                         f"{pm([100 * m.requests / tokens for m in rows], 1)} | {100 * statistics.mean(m.early for m in rows):.1f} | "
                         f"{100 * (1 - statistics.mean(m.seconds['cloud'] for m in rows) / whole):.0f} | "
                         f"{PAPER.get(way, lambda p: '')(paper.DATA[name])} |")
        lines.append("")
    return lines


def figure_three(shares: dict[str, dict[str, dict[float, float]]]) -> list[str]:
    """The distribution of each exit's confidence: the share of tokens in each range."""
    edges = sorted(next(iter(next(iter(shares.values())).values())))
    ranges = list(zip(edges, [*edges[1:], None]))
    lines = ["| tokens, % | " + " | ".join(f"{low:g} to {high or 1:g}" for low, high in ranges) + " |", "| --- " * (len(ranges) + 1) + "|"]
    for kind, exits in shares.items():
        lines += [f"| {kind}, {layer} | " + " | ".join(f"{100 * (rate[low] - (rate[high] if high else 0)):.1f}" for low, high in ranges) + " |" for layer, rate in exits.items()]
    return lines + [""]


def table_two(found: dict[tuple[str, str], list[Made]], rest: dict[str, list[str]], recall: dict[str, list[bool]]) -> list[str]:
    lines = ["| strategy | names recalled, % | ROUGE-L, short | ROUGE-L, long | positions with the full model's token, short / long, % | the paper's BoolQ, QuAC, IMDB, XSum |", "| --- " * 6 + "|"]
    for way in ORDER:
        if way in ("naive",):
            continue
        right = recall[way]
        share = statistics.mean(right)
        scores = [[rouge_l(m.text, wanted[: len(m.text)]) for m, wanted in zip(found[kind, way], rest[kind])] for kind in KINDS]
        same = [100 * statistics.mean(sum(a == b for a, b in zip(m.tokens, full.tokens)) / len(full.tokens) for m, full in zip(found[kind, way], found[kind, "incremental"]))
                for kind in KINDS]
        lines.append(f"| {way} | {100 * share:.0f} ± {100 * (share * (1 - share) / len(right)) ** 0.5:.0f} | {pm(scores[0])} | {pm(scores[1])} | {same[0]:.1f} / {same[1]:.1f} | {ACCURACY.get(way, '')} |")
    return lines + [""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmpart", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("build/hundred"))
    parser.add_argument("--prompts", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    study = Study(args)
    prompts, rest = prompts_of(args.prompts)
    found = study.generations(prompts)
    recall = study.recall(recall_cases(args.prompts))
    shares = {kind: study.confidence(prompts[kind]) for kind in KINDS}
    lines = ["<!-- table: hundred -->", f"{args.prompts} prompts of each kind, {args.tokens} tokens each; mean ± standard deviation over prompts.", "", *table_one(found, args.tokens),
             *figure_three(shares), *table_two(found, rest, recall), "<!-- end -->"]
    (args.out / "hundred.md").write_text("\n".join(lines) + "\n")
    (args.out / "hundred.json").write_text(json.dumps({f"{kind}, {way}": [vars(m) | {"text": None, "tokens": None} for m in rows] for (kind, way), rows in found.items()}, indent=1) + "\n")
    panels = {f"{kind} prompts": {way: tuple(statistics.mean(m.seconds[part] - (m.seconds["connect"] if part == "comm" else 0) for m in found[kind, way])
                                             for part in PARTS[1:]) for way in ORDER} for kind in KINDS}
    charts.bars(args.out / "hundred-seconds.svg", f"Seconds for {args.tokens} tokens, means of {args.prompts} prompts", panels)
    charts.lines(args.out / "hundred-confidence.svg", "Share of tokens of which an exit is at least so sure (Fig. 3)",
                 {f"{kind}, {layer}": [(theta, 100 * rate) for theta, rate in sorted(rates.items())] for kind, exits in shares.items() for layer, rates in exits.items()},
                 "confidence")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
