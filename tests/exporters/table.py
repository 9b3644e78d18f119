"""Exports small random models of many architectures with every exporter, and reports the result of llmpart for each.

Usage: table.py LLMPART FOLDER [CASE ...] [--python5 PYTHON] [--again STATE] [--markdown FILE] [--expect FILE]
                [--limit SECONDS] [--quick] [--pairs FOLDER]

A case is ARCHITECTURE.EXPORTER.PRECISION; CASE may be a pattern such as 'qwen*' or '*.genai.*'. FOLDER/CASE/ keeps make.py's
exports and ONNX Runtime's results; FOLDER/results.jsonl gets a line per case, and a case that has a line is skipped unless
--again names its state ("refused", "WRONG", "all"). The exporters of `genai`, `script` and `dynamo` run under --python5, which has
transformers 5, the others under this interpreter (requirements.txt and requirements5.txt). Exit status 1 when a case is WRONG, or with --expect
when its state is another.

--pairs: instead of these checks, halves for GPUs generate one sequence, for both pairs of the cloud-device study: code for a Jetson
Nano and a V100S, and for a Snapdragon 8s Gen 3 and an A100. FOLDER holds the stand-ins of NVIDIA's driver and compiler (BUILD/tests/gpu/fake);
OpenCL code runs on the device that there is. Results go to FOLDER/pairs.jsonl of the exports.

States: equal; rounding (an output of f16 is that of the same graph in f32, and not ONNX Runtime's in f16, or an output of int8 differs from
ONNX Runtime's by no more than its own optimisations change it); refused (the reason is llmpart's own); WRONG; `not exported`; `not
run` by ONNX Runtime.
"""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from architectures import ARCHITECTURES, PRECISIONS

HERE = Path(__file__).parent
MEMORY = 12 << 30
BLOCK, CHUNK = 22, 32
TRANSFORMERS_5 = {"genai", "script", "dynamo"}
# What rounding may change, as a share of the greatest value of an output. Integer activations round a value to another
# step where the floats of two runtimes differ in their last bits.
TOLERANCE = {"f32": 1e-4, "O2": 1e-4, "f16": 2e-2, "f16-gpu": 2e-2, "int4": 3e-2, "int4-gpu": 3e-2, "int8": 3e-2, "int4-asym": 3e-2,
             "int4-hqq": 3e-2, "int4-qdq": 3e-2, "bnb4": 3e-2}
PAIRS = {"nano-v100s": ["--device=jetson-nano", "--cloud=v100s"], "snapdragon-a100": ["--device=snapdragon-8s-gen3", "--cloud=a100"]}
# The stand-in for the driver is of one architecture for both processes; sm_53 and sm_70 launch the same kernels.
SM = {"nano-v100s": "70", "snapdragon-a100": "80"}
RANK = ("WRONG", "refused", "not run", "not exported", "rounding", "equal")
LETTERS = {"equal": "=", "rounding": "~", "refused": "R", "not run": "N", "not exported": "-", "nothing": ".", "WRONG": "W"}
CELL = 110  # characters of a cell of the table
IN_F32 = 2e-3  # the tolerance of an output of f16 against that of the graph in f32, rounded once


def cases(patterns: list[str]) -> Iterator[str]:
    """Those of users' needs first: of a block of architectures each exporter's plain precision, before its others."""
    names, levels = list(ARCHITECTURES), range(max(map(len, PRECISIONS.values())))
    for begin in range(0, len(names), BLOCK):
        for level, name in itertools.product(levels, names[begin : begin + BLOCK]):
            for exporter, precisions in PRECISIONS.items():
                case = f"{name}.{exporter}.{precisions[level]}" if level < len(precisions) else ""
                if case and (not patterns or any(fnmatch.fnmatch(case, p) for p in patterns)):
                    yield case


def run(command: list[object], limit: float, more: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """With a bound of time and memory, and with one thread. `more`: variables of its environment."""
    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    text = [str(c) for c in command]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"} | (more or {})
    process = subprocess.Popen(text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", preexec_fn=bound,
                               env=environment, start_new_session=True)
    try:
        out, errors = process.communicate(timeout=limit)
        return subprocess.CompletedProcess(text, process.returncode, out, errors)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the workers that it started, which hold its pipes
        process.communicate()
        return subprocess.CompletedProcess(text, 124, "", f"error: no end after {limit:.0f} s")


def first_error(done: subprocess.CompletedProcess[str]) -> str:
    """The diagnostic without the path of its file."""
    line = next((line for line in done.stderr.splitlines() if "error:" in line), f"exit status {done.returncode}")
    return re.sub(r"^\S*/", "", line)[:400]


class Check:
    """One ONNX file: the checks in turn, each a (state, text)."""

    def __init__(self, path: Path, precision: str, options: argparse.Namespace, work: Path):
        self.llmpart, self.limit, self.quick = options.llmpart, options.limit, options.quick
        self.path, self.work = path, work
        self.data = path.with_suffix(".d")
        self.expected = json.loads((self.data / "expected.json").read_text())
        self.tolerance = TOLERANCE[precision]

    def sets(self) -> dict[str, tuple[str, str]]:
        """`verify` on each set of inputs that ONNX Runtime answered."""
        found = self.verified(self.data, self.tolerance)
        if worst([state for state, _ in found.values()]) != "WRONG":
            return found
        wide, own = self.path.with_suffix(".w"), self.expected.get("own", 0)
        again, why = {}, ""
        if wide.exists():
            again, why = self.verified(wide, IN_F32), "equal to the graph in f32"
        elif own > self.tolerance:
            again, why = self.verified(self.data, own), f"ONNX Runtime's optimisations change its results by {own:.0%} of the greatest"
        return found | {name: ("rounding", f"{text}; {why}") for name, (state, text) in found.items()
                        if state == "WRONG" and again.get(name, ("", ""))[0] == "equal"}

    def verified(self, data: Path, tolerance: float) -> dict[str, tuple[str, str]]:
        scale = max(self.expected["scale"], default=1.0)
        command = [self.llmpart, "verify", self.path, f"--test-data={data}", "--threads=1", "-o", "json",
                   f"--rtol={tolerance}", f"--atol={tolerance * max(scale, 1.0)}"]
        done = run(command, self.limit)
        if done.returncode not in (0, 4):
            return {"verify": self.failed(done)}
        found = {}
        for name, test in zip(self.expected["sets"], json.loads(done.stdout)["tests"]):
            state = {"passed": "equal", "failed": "WRONG"}.get(test["status"], "refused")
            found[name] = (state, test["reason"] or f"{test['max_error'] / max(scale, 1.0):.1e}")
        return found

    def failed(self, done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
        ended_well = done.returncode in (1, 2, 3)
        return ("refused" if ended_well and "error:" in done.stderr else "WRONG", first_error(done))

    def pairs(self, fake: Path) -> dict[str, tuple[str, str]]:
        """Greedy tokens of halves for the GPUs of both pairs."""
        found = {}
        for kind, machines in PAIRS.items():
            path = f"{fake}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
            environment = {"LD_LIBRARY_PATH": path, "LP_FAKE_CUDA_SM": SM[kind]}
            options = [*machines, "--link=lan", "--scheduler=cut", "--cut=1"]
            found |= self.tokens(kind, options, self.expected["runs"][:1], ["--in-process"], environment)
        return found

    def tokens(self, kind: str, options: list[str], runs: list[dict[str, Any]], how: list[str] | None = None,
               environment: dict[str, str] | None = None) -> dict[str, tuple[str, str]]:
        """A bundle's greedy tokens in each of the runs."""
        bundle = self.work / f"{kind}.llmpart"
        done = run([self.llmpart, "compile", self.path, "-O0", "--encoder=none", *options, "-o", bundle], self.limit)
        if done.returncode:
            return {kind: self.failed(done)}
        found = {}
        for wanted in runs:
            rows = ";".join(",".join(map(str, row)) for row in wanted["prompt"])
            count = len(wanted["tokens"][0])
            done = run([self.llmpart, "run", bundle, f"--tokens={rows}", "-n", count, "--ignore-eos", "--threads=1", "-o", "json",
                        *(how or [])], self.limit, environment)
            name = f"{kind}-{len(wanted['prompt'])}"
            found[name] = self.compare(wanted, json.loads(done.stdout)) if done.returncode == 0 else self.failed(done)
        return found

    def compare(self, wanted: dict[str, Any], made: dict[str, Any]) -> tuple[str, str]:
        """Tokens after the two best logits were closer than rounding may move them prove nothing."""
        for row, (tokens, margins) in enumerate(zip(wanted["tokens"], wanted["margins"])):
            got = made["sequences"][row]["tokens"] if "sequences" in made else made["tokens"]
            for i, (a, b, margin) in enumerate(zip(tokens, got, margins)):
                if a == b:
                    continue
                if margin > 2 * self.tolerance * wanted["greatest"]:
                    return "WRONG", f"token {i} of sequence {row} is {b}, not {a}"
                return "equal", f"a near tie at token {i}"
            if len(got) != len(tokens):
                return "WRONG", f"{len(got)} tokens, not {len(tokens)}"
        return "equal", ""

    def support(self) -> dict[str, tuple[str, str]]:
        """A decoder that `support` says is refused; the rest need not be tried."""
        done = run([self.llmpart, "support", self.path, "-o", "json"], self.limit)
        if done.returncode:
            return {"support": self.failed(done)}
        told = json.loads(done.stdout)
        refused = [f"{o['name']}: {o['reason']}" for o in told["operators"] if o["status"] == "refused"]
        return {} if told["runs"] else {"support": ("refused", told["reason"] or refused[0])}

    def all(self) -> dict[str, tuple[str, str]]:
        found = self.support() if "runs" in self.expected else {}
        if found:
            return found
        found = self.sets()
        if "runs" in self.expected:
            here, runs = ["--device=jetson-nano", "--march=native"], self.expected["runs"]
            found |= self.tokens("split", [*here, "--cloud=v100s", "--link=lan", "--scheduler=cut", "--cut=1"], runs)
            if not self.quick or worst([s for s, _ in found.values()]) != "equal":
                found |= self.tokens("device", here, runs)
        return found


def worst(states: list[str]) -> str:
    return min(states, key=RANK.index)


def check(case: str, options: argparse.Namespace) -> dict[str, Any]:
    """A line of the results."""
    began = time.monotonic()
    exported = json.loads((options.folder / case / "exported.json").read_text())
    line: dict[str, Any] = {"case": case, "files": {}}
    if exported["export"] != "ok":
        return line | {"state": "not exported", "reason": exported["export"]}
    states = []
    for name, ran in exported["files"].items():
        if ran != "ok":
            line["files"][name] = {"onnxruntime": ("not run", ran)}
        else:
            with tempfile.TemporaryDirectory() as work:
                one = Check(options.folder / case / name, case.split(".")[2], options, Path(work))
                line["files"][name] = one.all() if not options.pairs else one.pairs(options.pairs) if "runs" in one.expected else {
                    "pairs": ("not run", "it generates no tokens")}
        states.append(worst([s for s, _ in line["files"][name].values()]))
    line["state"] = worst(states)
    line["reason"] = next(f"{name}: {kind}: {text}" for name, found in line["files"].items() for kind, (state, text) in found.items()
                          if state == line["state"]) if line["state"] != "equal" else ""
    line["seconds"] = round(time.monotonic() - began, 1)
    return line


def export(cases: list[str], options: argparse.Namespace) -> None:
    """Those that are not there yet, in one process per interpreter, which keeps the limits of each case itself."""
    for newer in (False, True):
        chosen = [c for c in cases if (c.split(".")[1] in TRANSFORMERS_5) == newer and not (options.folder / c / "exported.json").exists()]
        if chosen:
            run([options.python5 if newer else sys.executable, HERE / "make.py", options.folder, *chosen], 3600)


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The last line of a case stands."""
    lines = [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
    known = set(cases([]))
    return {line["case"]: line for line in lines if line["case"] in known}


def columns() -> list[tuple[str, tuple[str, ...]]]:
    """The exporters, each with its precisions."""
    return [(exporter, tuple(precisions)) for exporter, precisions in PRECISIONS.items()]


def cells(results: dict[str, dict[str, Any]]) -> list[str]:
    """A letter of LETTERS for each exporter and precision. Architectures with the same results share a row."""
    rows: dict[str, list[str]] = {}
    for name in ARCHITECTURES:
        row = [[results.get(f"{name}.{exporter}.{p}", {}).get("state", "nothing") for p in precisions] for exporter, precisions in columns()]
        if any(state != "nothing" for cell in row for state in cell):
            rows.setdefault("/".join("".join(LETTERS[state] for state in cell) for cell in row), []).append(name)
    heads = "; ".join(f"{exporter}: {' '.join(precisions)}" for exporter, precisions in columns())
    text = [f"The letters stand for, in this order, {heads}.", "", "| architectures | results |", "| --- | --- |"]
    for letters, names in rows.items():
        text += [f"| {part} | `{letters}` |" for part in textwrap.wrap(", ".join(names), CELL, break_on_hyphens=False)]
    return text


def common(reason: str) -> str:
    """The part of a reason that several cases share: without the file, the check, the layer and the architecture."""
    text = re.sub(r"^\S+\.onnx: (\S+: )?(\S+\.onnx: )?", "", reason)
    text = re.sub(r"^\S*manifest.json: error: |\[ONNXRuntimeError\].*Status Message: |, but no custom onnx configuration.*$", "", text)
    text = re.sub(r"(layers|block|h|blocks)\.\d+", r"\1.N", re.sub(r"export an? \S+ model", "export the model", text))
    return textwrap.shorten(text.replace("|", "\\|"), CELL, placeholder=" ...")


def reasons(results: dict[str, dict[str, Any]], state: str) -> list[str]:
    """The most frequent first, each with its cases."""
    found: dict[str, list[str]] = {}
    for line in results.values():
        if line["state"] == state:
            found.setdefault(common(line["reason"]), []).append(line["case"])
    if not found:
        return []
    rows = [f"| {reason} | {part} |" for reason, names in sorted(found.items(), key=lambda r: (-len(r[1]), r[0]))
            for part in textwrap.wrap(" ".join(names), CELL, break_on_hyphens=False)]
    return ["", f"{state}:", "", "| reason | cases |", "| --- | --- |", *rows]


def markdown(results: dict[str, dict[str, Any]]) -> str:
    counts = {state: sum(line["state"] == state for line in results.values()) for state in RANK}
    text = [", ".join(f"{n} {state}" for state, n in counts.items() if n) + ".", "", *cells(results)]
    for state in ("WRONG", "refused"):
        text += reasons(results, state)
    return "\n".join(text) + "\n"


BEGIN, END = "<!-- table.py writes what follows -->\n", "<!-- table.py wrote what precedes -->\n"


def write_marked(path: Path, begin: str, end: str, text: str) -> None:
    """The whole file, or what stands between its marks."""
    old = path.read_text() if path.exists() else ""
    if begin in old:
        head, rest = old.split(begin)
        text = f"{head}{begin}\n{text}\n{end}{rest.split(end)[1]}"
    path.write_text(text)


def write(path: Path, text: str) -> None:
    write_marked(path, BEGIN, END, text)


def expected(path: Path) -> dict[str, str]:
    """The state of each case in a file's table."""
    rows = [[c.strip() for c in line.strip().strip("|").split("|")] for line in path.read_text().splitlines() if line.startswith("|")]
    begin = next(i for i, row in enumerate(rows) if row[0] == "architectures")
    states = {letter: state for state, letter in LETTERS.items()}
    found = {f"{name}.{exporter}.{precision}": states[letter] for row in rows[begin + 2:] if re.fullmatch("`[=~RNW./-]+`", row[1])
             for name in row[0].rstrip(",").split(", ") for cell, (exporter, precisions) in zip(row[1].strip("`").split("/"), columns())
             for letter, precision in zip(cell, precisions)}
    return {case: state for case, state in found.items() if state != "nothing"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llmpart")
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--python5", default=sys.executable)
    parser.add_argument("--again", default="")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--expect", type=Path, help="a file with the table that --markdown writes: states should be as there")
    parser.add_argument("--quick", action="store_true", help="one side is run only where the split is not equal")
    parser.add_argument("--pairs", type=Path, metavar="FOLDER", help="run halves for GPUs, with the stand-ins in this folder")
    parser.add_argument("--limit", type=float, default=180)
    args = parser.parse_intermixed_args()
    path = args.folder / ("pairs.jsonl" if args.pairs else "results.jsonl")
    args.folder.mkdir(parents=True, exist_ok=True)
    done = read(path)
    todo = [c for c in cases(args.cases) if c not in done or args.again in (done[c]["state"], "all")]
    for number, case in enumerate(todo):
        if number % CHUNK == 0:
            export(todo[number : number + CHUNK], args)
        line = check(case, args)
        print(f"{case:32} {line['state']:12} {line['reason'][:160]}", flush=True)
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        if args.markdown:
            write(args.markdown, markdown(read(path)))
    if args.markdown:
        write(args.markdown, markdown(read(path)))
    chosen = set(cases(args.cases))
    results = {case: line["state"] for case, line in read(path).items() if case in chosen}
    if args.expect:
        wanted = expected(args.expect)
        others = [case for case, state in results.items() if wanted.get(case) != state]
        print(*(f"{case} is {results[case]}; {args.expect} says {wanted.get(case) or 'nothing'}" for case in others), sep="\n")
        return 1 if others else 0
    return 1 if "WRONG" in results.values() else 0


if __name__ == "__main__":
    sys.exit(main())
