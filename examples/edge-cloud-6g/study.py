"""Runs the study of "Generative AI as a Service in 6G Edge-Cloud" and what goes beyond it.

Usage: study.py --llmpart PATH [--out DIR] [--model lookup|embedded|BUNDLE|URL] [--runs N] [--only NAME ...] [--gsm8k CSV
                [--decide BUNDLE] [--gsm8k-only]]

Writes a figure (SVG), a table (CSV) and all numbers (JSON) per experiment, tables.md with all means, and study.md with the
tables of README.md. --model decides for `router`, `router-paper`, `latest` and `greedy`. The same arguments give the same
bytes.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
import sqlite3
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
LEARNERS = ["router", "router-paper", "q-table", "dqn", "oracle-explore", "latest", "greedy"]

# name of the figure -> scenario, what is drawn, policies instead of the scenario's
FIGURES = {
    "fig5a": ("learning", "learning-reward", ["router", "router-paper", "dqn", "oracle-explore"]),
    "fig5b": ("learning", "learning-quality", ["router", "router-paper", "dqn", "oracle-explore"]),
    "fig5c": ("learning", "learning-reward", ["router", "router-paper", "dqn", "latest", "greedy"]),
    "fig5d": ("users", "delay", None),
    "fig5e": ("length", "delay", None),
    "fig5f": ("share", "delay", None),
    "places": ("places", "delay", None),
    "loaded-users": ("loaded-users", "delay", None),
    "split": ("split", "delay", None),
    "regret": ("learning", "learning-regret", LEARNERS[:5]),
    "drift-up": ("drift-up", "learning-regret", LEARNERS[:5]),
    "drift-down": ("drift-down", "learning-regret", LEARNERS[:5]),
    "penalty": ("penalty", "regret", LEARNERS[:5]),
    "decision": ("decision", "delay", None),
    "loaded": ("loaded-learning", "delay", None),
}
TABLES = {"lookup": list(FIGURES), "embedded": ["fig5c", "regret", "drift-up", "drift-down"]}  # the figures that the tables of README.md need


class Study:
    def __init__(self, args: argparse.Namespace):
        self.args, self.out = args, args.out
        self.out.mkdir(parents=True, exist_ok=True)
        self.lines: list[str] = []

    def simulate(self, scenario: Path, name: str, figure: str, policies: list[str] | None) -> list[dict]:
        """Runs a scenario; returns its points."""
        if policies is not None:
            text = re.sub(r"^policies: .*$", f"policies: [{', '.join(policies)}]", scenario.read_text(), flags=re.M)
            scenario = self.out / f"{name}.yaml"
            scenario.write_text(text)
        to = [self.out / f"{name}.{form}" for form in ("json", "csv", "svg")]
        command = [self.args.llmpart, "simulate", scenario, f"--figure={figure}", f"--model={self.args.model}"]
        command += [part for path in to for part in ("-o", path)]
        if self.args.runs:
            command.append(f"--runs={self.args.runs}")
        subprocess.run([str(part) for part in command], check=True)
        if policies is not None:
            scenario.unlink()
        return json.loads(to[0].read_text())["points"]

    def table(self, title: str, head: list[str], rows: list[list[str]]) -> None:
        self.lines += [f"## {title}", "", "| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
        self.lines += ["| " + " | ".join(row) + " |" for row in rows] + [""]

    def figures(self) -> None:
        for name, (scenario, figure, policies) in FIGURES.items():
            if self.args.only and name not in self.args.only:
                continue
            points = self.simulate(HERE / f"{scenario}.yaml", name, figure, policies)
            if figure.startswith("learning"):
                self.learning(name, points)
            else:
                self.values(name, points, "delay_s" if figure == "delay" else figure)

    def learning(self, name: str, points: list[dict]) -> None:
        """Means over the first fifth (200 of 1000 requests), the last half, and under drift the part after it."""
        rows = []
        for point in points:
            parts = point["learning"]
            late = parts[10:]
            step = parts[1]["request"] - parts[0]["request"]
            early = parts[: max(1, 200 // step)]
            rows.append([
                point["policy"],
                f"{sum(p['reward'] for p in late) / len(late):.3f}",
                f"{late[-1]['reward']:.3f} ± {late[-1]['reward_half95']:.3f}",
                f"{sum(p['quality'] for p in late) / len(late):.3f}",
                f"{step * sum(p['regret'] for p in early):.0f}",
                f"{sum(p['regret'] for p in late) / len(late):.3f}",
            ])
        self.table(name, ["policy", "reward, second half", "reward, last 5 %", "quality, second half",
                          "regret of the first 200 requests, s", "regret per request, second half, s"], rows)

    def values(self, name: str, points: list[dict], key: str) -> None:
        """A row per policy and service, a column per value of the axis."""
        fixed = {"service", "policy", "requests", "rejected", "overflowed"}
        axis = next(k for k in points[0] if k not in fixed)
        if axis == "delay_s":  # nothing varies
            return self.places(name, points)
        values = sorted({p[axis] for p in points})
        half = key[:-2] + "_half95_s" if key.endswith("_s") else key + "_half95"
        several = len({p["service"] for p in points}) > 1
        rows: dict[str, list[str]] = {}
        for p in points:
            label = f"{p['service']}, {p['policy']}" if several else p["policy"]
            rows.setdefault(label, []).append(f"{p[key]:.3f} ± {p[half]:.3f}")
        self.table(f"{name}: {key} over {axis}", ["", *(f"{v:g}" for v in values)],
                   [[label, *cells] for label, cells in rows.items()])

    def places(self, name: str, points: list[dict]) -> None:
        """A row per policy, a column per place."""
        sites = [site for site in ("edge", "cloud", "split") if site in points[0]]
        rows = [[p["policy"], f"{p['delay_s']:.2f} ± {p['delay_half95_s']:.2f}", f"{p['delay_p95_s']:.2f}", f"{p['reward']:.2f}",
                 *(f"{100 * p[site]['share']:.1f} %, {p[site]['delay_s']:.2f} s" for site in sites)] for p in points]
        self.table(name, ["policy", "delay, s", "95 %", "reward", *sites], rows)

    def gsm8k(self, path: Path) -> None:
        """Real labels of when a weak model suffices: half of the questions to learn from, the others to judge by."""
        learned, judged = halves(path)
        questions, half = learned + judged, len(learned)
        trace, passes = self.out / "gsm8k-trace.csv", 8
        order = [q for n in range(passes) for q in random.Random(n).sample(learned, half)] + judged
        with trace.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["time_s", "class", "edge_success", "cloud_success"])
            rows.writerows([60 * i, kind_of(q["prompt"]), q["weak_correct"], q["strong_correct"]] for i, q in enumerate(order))
        classes = sorted({kind_of(q["prompt"]) for q in questions})
        tasks = "\n".join(f'  - {{ class: "{c}", quality: true, tokens: 100 }}' for c in classes)
        scenario = self.out / "gsm8k.yaml"
        scenario.write_text(
            f"simulate: gsm8k\ntitle: GSM8K, a weak and a strong model\nservice: llama3\narrivals: {{ trace: {trace.name} }}\n"
            f"warm_up: {passes * half}\ntasks:\n{tasks}\npolicies: [router, q-table, dqn, random, edge-only, cloud-only]\n"
            "vary: { penalty: [2, 4, 6, 8, 10, 12, 15, 20, 40] }\n")
        points = self.simulate(scenario, "gsm8k", "quality", None)
        rows = [[p["policy"], f"{p['penalty']:g}", f"{100 * p['cloud']['share']:.1f}", f"{100 * p['quality']:.1f}"]
                for p in points if p["policy"] in LEARNERS or p["penalty"] == 40]
        rows += [["both labels of the learned half known", "-", f"{100 * share:.1f}", f"{100 * accuracy:.1f}"]
                 for share, accuracy in informed(learned, judged)]
        best = sum(q["weak_correct"] == "1" or q["strong_correct"] == "1" for q in judged)
        rows.append(["the right one of both, if one could know", "-", "", f"{100 * best / len(judged):.1f}"])
        for name, feature in (("words", lambda t: len(t.split())), ("numbers", lambda t: len(re.findall(r"\d+", t)))):
            self.lines += [f"AUC of the count of {name} for 'only the strong model is right': {auc(questions, feature):.3f}", ""]
        self.table("gsm8k", ["policy", "penalty", "strong calls, %", "accuracy, %"], rows)

    def decided(self, path: Path, bundle: str) -> None:
        """A language model decides where each kind of question goes, from the mean rewards of the learned half at both places."""
        learned, judged = halves(path)
        kinds = sorted({kind_of(q["prompt"]) for q in judged})
        rows = []
        for penalty in (8, 20):
            pool = self.out / f"decided-{penalty}.db"
            pool.unlink(missing_ok=True)
            for kind in kinds:
                asked = [q for q in learned if kind_of(q["prompt"]) == kind]
                for route, column, delay in (("edge", "weak_correct", 1.55), ("cloud", "strong_correct", 3.61)):
                    right = sum(q[column] == "1" for q in asked) / max(1, len(asked))
                    number = self.route(kind, pool, f"--policy={route}", "--epsilon=0")["id"]
                    subprocess.run([self.args.llmpart, "route", f"--pool={pool}", f"--outcome={number}", f"--reward={60 - delay - penalty * (1 - right):.3f}",
                                    *(["--bad"] if right < 0.5 else [])], check=True, capture_output=True)
            for name, model in (("lookup, the better mean reward", "lookup"), (Path(bundle).stem, bundle)):
                chosen = {kind: self.route(kind, pool, f"--model={model}", "--epsilon=0") for kind in kinds}
                rows.append([name, str(penalty), *judge(judged, {kind: found["route"] for kind, found in chosen.items()}),
                             f"{sum(found['route'] == 'cloud' for found in chosen.values())} of {len(kinds)}"])
                pool_rows = sqlite3.connect(pool)  # decisions without an outcome teach nothing; they go, so that all models see one pool
                pool_rows.execute("DELETE FROM decision WHERE id NOT IN (SELECT decision FROM outcome)")
                pool_rows.commit()
                pool_rows.close()
        weak = sum(q["weak_correct"] == "1" for q in learned) / len(learned)
        rows.append([f"majority of the learned half: the weak model suffices for {100 * weak:.0f} %", "-", *judge(judged, dict.fromkeys(kinds, "edge")), "0"])
        rows.append(["always the strong model", "-", *judge(judged, dict.fromkeys(kinds, "cloud")), f"{len(kinds)} of {len(kinds)}"])
        self.table("decided", ["decider", "penalty", "strong calls, %", "accuracy, %", "kinds to the cloud"], rows)

    def route(self, kind: str, pool: Path, *options: str) -> dict:
        command = [self.args.llmpart, "route", f"--keywords={kind}, asks for quality, about 128 tokens", "--rule=edge", f"--pool={pool}", *options, "-o", "json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


# ---- the tables of README.md -----------------------------------------------------------------------------------------


def row(name: str, cells: list[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


class Results:
    """The points of the experiments in a folder."""

    def __init__(self, folder: Path):
        self.folder = folder

    def points(self, name: str, **wanted: object) -> list[dict]:
        points = json.loads((self.folder / f"{name}.json").read_text())["points"]
        return [p for p in points if all(p[key] == value for key, value in wanted.items())]

    def late(self, name: str, policy: str, key: str) -> float:
        """The mean over the second half of the requests."""
        parts = self.points(name, policy=policy)[0]["learning"][10:]
        return sum(part[key] for part in parts) / len(parts)

    def early_regret(self, policy: str) -> float:
        """Of the first 200 requests."""
        parts = self.points("regret", policy=policy)[0]["learning"]
        step = parts[1]["request"] - parts[0]["request"]
        return step * sum(part["regret"] for part in parts[: max(1, 200 // step)])

    def over(self, name: str, key: str, digits: int, **wanted: object) -> str:
        """The first and the last value over the figure's axis, by service."""
        services: dict[str, list[float]] = {}
        for p in self.points(name, **wanted):
            services.setdefault(p["service"], []).append(p[key])
        return "; ".join(f"{service} {values[0]:.{digits}f} to {values[-1]:.{digits}f}" for service, values in services.items())

    def panels(self) -> list[str]:
        def late(name: str, key: str, *policies: str) -> str:
            return ", ".join(f"{policy} {self.late(name, policy, key):.3f}" for policy in policies)
        backhaul = 0.5 * 100  # ms: half of the requests take the cloud's
        radio = [1000 * p["link_s"] - backhaul for p in self.points("fig5d", service="llama3")]
        slopes = "; ".join(f"{name} {both[-1] - both[0]:.2f}" for name in ("gemma-gemini", "llama2", "llama3")
                           for both in [[p["delay_s"] for p in self.points("fig5f", service=name)]])
        at = "; ".join(f"{p['service']} {p['delay_s']:.2f}" for p in self.points("fig5e", tokens=1000.0))
        return ["| figure | its values here |", "| --- | --- |",
                f"| fig5a: reward of the second half, s | {late('fig5a', 'reward', 'router', 'router-paper', 'dqn', 'oracle-explore')} |",
                f"| fig5b: quality in the second half | {late('fig5b', 'quality', 'router', 'router-paper', 'dqn', 'oracle-explore')} |",
                f"| fig5c: reward of the second half, s | {late('fig5c', 'reward', 'router', 'dqn', 'latest', 'greedy')} |",
                f"| fig5d: delay of 285 to 1710 users, s | {self.over('fig5d', 'delay_s', 3)} |",
                f"| of it the radio link, ms | {radio[0]:.1f} to {radio[-1]:.1f}; the backhaul {backhaul:.0f} |",
                f"| fig5e: delay of 1000 tokens at half quality, s | {at} |",
                f"| fig5f: delay without and with quality, s | {self.over('fig5f', 'delay_s', 2)} |",
                f"| its slope over the share of quality, s | {slopes} |"]

    def loads(self) -> list[str]:
        def delay(policy: str, users: int) -> str:
            p = self.points("loaded-users", policy=policy, users=float(users))[0]
            return f"{p['delay_s']:.2f} ± {p['delay_half95_s']:.2f}"
        users = (10, 20, 30, 40, 46)
        lines = ["| delay, s, by users | " + " | ".join(map(str, users)) + " |", "| --- " * (len(users) + 1) + "|"]
        return lines + [f"| {policy} | " + " | ".join(delay(policy, n) for n in users) + " |" for policy in ("class", "queue-aware", "router")]

    def place(self) -> list[str]:
        lines = ["| policy | delay, s | 95 % | reward | edge | cloud | split |", "| --- " * 7 + "|"]
        for p in self.points("split"):
            shares = [f"{100 * p[site]['share']:.1f} %, {p[site]['delay_s']:.1f} s" if p[site]["share"] else "-" for site in ("edge", "cloud", "split")]
            lines.append(f"| {p['policy']} | {p['delay_s']:.2f} ± {p['delay_half95_s']:.2f} | {p['delay_p95_s']:.1f} | {p['reward']:.2f} | " + " | ".join(shares) + " |")
        return lines

    def learners(self) -> list[str]:
        lines = ["| | router | literal rules | tabular Q | DQN | oracle, exploring |", "| --- " * 6 + "|",
                 row("reward, second half, s", [f"{self.late('regret', p, 'reward'):.3f}" for p in LEARNERS[:5]]),
                 row("latest experience, no exploration: reward, s", [f"{self.late('fig5c', 'latest', 'reward'):.1f}, {self.late('fig5c', 'greedy', 'reward'):.1f}", *["-"] * 4]),
                 row("regret of the first 200 requests, s ([figure](figures/regret.svg))", [f"{self.early_regret(p):.0f}" for p in LEARNERS[:5]])]
        for title, name in (("after the penalty rose from 5 to 40", "drift-up"), ("after it fell from 40 to 5", "drift-down")):
            lines.append(row(f"{title} ([figure](figures/{name}.svg))", [f"{self.late(name, p, 'regret'):.3f}" for p in LEARNERS[:5]]))
        return lines

    def penalties(self) -> list[str]:
        lines = [row(f"penalty {penalty}" + (" ([figure](figures/penalty.svg))" if penalty == 5 else ""),
                     [f"{self.points('penalty', policy=p, penalty=float(penalty))[0]['regret']:.3f}" for p in LEARNERS[:5]]) for penalty in (5, 10, 15)]
        loaded = {p["policy"]: f"{p['delay_s']:.2f} ± {p['delay_half95_s']:.2f}" for p in self.points("loaded", rate=1.16)}
        lines.append(row("loaded edge, 1.16 requests/s: mean delay, s ([figure](figures/loaded.svg))", [loaded.get(p, "-") for p in LEARNERS[:5]]))
        return [*lines, "", f"On the loaded edge the class rule takes {loaded['class']} s, the rule that knows the queue {loaded['queue-aware']} s."]

    def write(self, model: str) -> None:
        blocks = {"beyond": self.learners()}
        if model == "lookup":
            blocks = {"panels": self.panels(), "loads": self.loads(), "beyond": self.learners() + self.penalties(), "place": self.place()}
        (self.folder / "study.md").write_text("".join(f"<!-- table: {model}-{name} -->\n" + "\n".join(lines) + "\n<!-- end -->\n" for name, lines in blocks.items()))


def halves(path: Path) -> tuple[list[dict], list[dict]]:
    """Questions to learn from, and others to judge by."""
    questions = list(csv.DictReader(path.open(encoding="utf-8")))
    random.Random(1).shuffle(questions)
    half = len(questions) // 2
    return questions[:half], questions[half:]


def judge(judged: list[dict], route: dict[str, str]) -> list[str]:
    """Strong calls and accuracy, when each kind goes to its route."""
    strong = [route[kind_of(q["prompt"])] == "cloud" for q in judged]
    right = [int(q["strong_correct" if s else "weak_correct"]) for q, s in zip(judged, strong)]
    return [f"{100 * sum(strong) / len(judged):.1f}", f"{100 * sum(right) / len(judged):.1f}"]


def auc(questions: list[dict], feature) -> float:
    """The probability that a question which only the strong model answers has a greater feature than another question."""
    needs = [feature(q["prompt"]) for q in questions if (q["weak_correct"], q["strong_correct"]) == ("0", "1")]
    other = [feature(q["prompt"]) for q in questions if (q["weak_correct"], q["strong_correct"]) != ("0", "1")]
    above = sum((a > b) + 0.5 * (a == b) for a in needs for b in other)
    return above / (len(needs) * len(other))


def kind_of(question: str) -> str:
    """Keywords of a question, by what a router can see of it without a model."""
    words, numbers = len(question.split()), len(re.findall(r"\d+", question))
    length = "short" if words < 30 else "medium" if words < 45 else "long" if words < 65 else "very long"
    count = "few numbers" if numbers < 4 else "some numbers" if numbers < 6 else "many numbers"
    return f"{length} {count}"


def informed(learned: list[dict], judged: list[dict]) -> list[tuple[float, float]]:
    """Share of strong calls and accuracy when the kinds go to the weak model in order of what that loses, by full labels."""
    lost: dict[str, list[int]] = {}
    for q in learned:
        lost.setdefault(kind_of(q["prompt"]), []).append(int(q["strong_correct"]) - int(q["weak_correct"]))
    order = sorted(lost, key=lambda kind: sum(lost[kind]) / len(lost[kind]))
    found = []
    for most in (0.3, 0.5):
        weak: set[str] = set()
        for kind in order:
            if sum(kind_of(q["prompt"]) in weak | {kind} for q in learned) <= most * len(learned):
                weak.add(kind)
        right = sum(int(q["weak_correct" if kind_of(q["prompt"]) in weak else "strong_correct"]) for q in judged)
        strong = sum(kind_of(q["prompt"]) not in weak for q in judged)
        found.append((strong / len(judged), right / len(judged)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmpart", required=True)
    parser.add_argument("--out", type=Path, default=Path("study"))
    parser.add_argument("--model", default="lookup")
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--gsm8k", type=Path)
    parser.add_argument("--decide", help="a compiled language model that decides about the questions of --gsm8k")
    parser.add_argument("--gsm8k-only", action="store_true", help="no figures")
    args = parser.parse_args()
    study = Study(args)
    if not args.gsm8k_only:
        study.figures()
    if not args.gsm8k_only and args.model in TABLES and set(TABLES[args.model]) <= set(args.only or FIGURES):
        Results(study.out).write(args.model)
    if args.gsm8k is not None and not args.decide:
        study.gsm8k(args.gsm8k)
    if args.gsm8k is not None and args.decide:
        study.decided(args.gsm8k, args.decide)
    (study.out / "tables.md").write_text("\n".join(study.lines))


if __name__ == "__main__":
    main()
