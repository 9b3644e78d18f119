"""Changes single operators of C files and counts the changes that the unit tests notice.

Usage: mutate.py BUILD [--count 300] [--seed 1] [--covering FILE] [--journal FILE] [--most N] [--only FILE:LINE] [FILE or FOLDER ...]

BUILD is a build of the unit tests (units.py) and the command, for instance build/dev, and not older than the sources. The file
of a mutant is compiled and linked by itself, and unit tests run, the nearest first, until one fails: with --covering those
that run the line (covering.py), else those of the mutant's room; --most bounds their number. A row for each mutant goes to stdout: place, change, and
the test that caught it, or that it survived; the shares by folder follow. A mutant that does not compile is not counted. The journal keeps the verdicts: a later call with the same sample
goes on, and gives survivors only tests that have not run yet in a build of that name: those that dev lets live may fail in asan. The sources are not touched, but must not
change meanwhile. Exit status 1: a mutant survived."""

from __future__ import annotations

import argparse
import json
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from units import ROOT, Unit, list_units, run

DEFAULT = ["ir", "hwmodels", "passes", "runtime"]
SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
    "return true": "return false", "return false": "return true",
}
# Binary operators stand between blanks (clang-format); -> and ++ do not.
OPERATOR = re.compile(r"(?<= )(<=|>=|==|!=|&&|\|\||<|>|\+|-)(?= )|\breturn (?:true|false)\b")
HIDDEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
MACRO = re.compile(r"[A-Z_]+\(")
LEFT_OUT = re.compile(r"\b(assert|static_assert|ck_assert\w*)\(")
# Tests in other folders that are the nearest of a room.
ELSEWHERE = {
    "ir": ["frontend", "passes/recognise"], "runtime/exec": ["runtime/session"], "runtime/bundle": ["runtime/session"],
    "runtime/session": ["runtime/link"], "runtime/serve": ["runtime/router"], "runtime/link": ["runtime/worker"],
    "passes/plan": ["golden"], "passes/lower": ["passes", "passes/split"], "passes/recognise": ["passes", "passes/lower", "frontend"],
}


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    start: int
    old: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line}:{self.start}: '{self.old}' -> '{SWAPS[self.old]}'"


def blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", "~", match.group())


def mutants_of(path: str) -> list[Mutant]:
    text = HIDDEN.sub(blank, (ROOT / path).read_text())
    found = []
    for match in OPERATOR.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        begin = text.rfind("\n", 0, match.start()) + 1
        if not LEFT_OUT.search(text[begin:match.start()]):
            found.append(Mutant(path, line, match.start(), match.group()))
    return found


def choose(args: argparse.Namespace) -> list[Mutant]:
    listed = subprocess.run(["git", "ls-files", *(args.places or DEFAULT)], cwd=ROOT, capture_output=True, text=True, check=True)
    mutants = [m for f in listed.stdout.split() if f.endswith(".c") for m in mutants_of(f)]
    if args.only:
        return [m for m in mutants if f"{m.path}:{m.line}" == args.only]
    return random.Random(args.seed).sample(mutants, min(args.count, len(mutants)))


def nearness(unit: Unit, path: str) -> int:
    """How many folders a test and a file share."""
    folders = path.split("/")[:-1]
    shared = 0
    for a, b in zip(unit.folder.split("/"), folders):
        if a != b:
            break
        shared += 1
    return shared


class Build:
    """Compiles a mutant beside the tree, and links programs with it before the libraries, whose own copy the linker then
    leaves out. The file is not optimised, which takes a fraction of the time."""

    def __init__(self, path: Path):
        self.path = path
        self.made = path / "mutant"
        entries = json.loads((path / "compile_commands.json").read_text())
        self.commands = {str(Path(e["file"]).relative_to(ROOT)): e["command"] for e in entries if Path(e["file"]).is_relative_to(ROOT)}
        self.links: dict[str, list[str]] = {}

    def compile(self, mutant: Mutant) -> bool:
        text = (ROOT / mutant.path).read_text()
        source = self.made / Path(mutant.path).name
        shutil.rmtree(self.made, ignore_errors=True)
        self.made.mkdir()
        source.write_text(text[:mutant.start] + SWAPS[mutant.old] + text[mutant.start + len(mutant.old):])
        command = [part for part in shlex.split(self.commands[mutant.path]) if not part.startswith("-O")]
        command[command.index("-o") + 1] = str(self.made / "mutant.o")
        command[command.index("-c") + 1] = str(source)
        return subprocess.run([*command, "-O0", "-g0", "-w", "-iquote", ROOT / Path(mutant.path).parent], cwd=self.path, capture_output=True).returncode == 0

    def link(self, target: str, to: Path) -> bool:
        if target not in self.links:
            shown = subprocess.run(["ninja", "-C", self.path, "-t", "commands", target], capture_output=True, text=True, check=True)
            self.links[target] = shlex.split(shown.stdout.splitlines()[-1].removeprefix(": && ").removesuffix(" && :"))
        command = list(self.links[target])
        to.parent.mkdir(parents=True, exist_ok=True)
        command[command.index("-o") + 1] = str(to)
        command.insert(command.index("-o"), str(self.made / "mutant.o"))
        return subprocess.run(command, cwd=self.path, capture_output=True).returncode == 0


class Tests:
    def __init__(self, args: argparse.Namespace):
        path = Path(args.build).resolve()
        self.most = args.most
        self.build = Build(path)
        self.units = list_units(path)
        self.worker = path / "tests/runtime/toy/toy_worker"  # tests of the runtime start it as another process
        self.covering = json.loads(Path(args.covering).read_text()) if args.covering else None
        # What a test takes on unchanged sources.
        self.seconds: dict[str, float] = {name: known["seconds"] for name, known in (self.covering or {}).items()}

    def label(self, unit: Unit) -> str:
        return f"{self.build.path.name}: {unit.name}"

    def of(self, mutant: Mutant) -> list[Unit]:
        if self.covering is not None:
            lines = {u.name: self.covering.get(u.name, {}).get("lines", {}).get(mutant.path, []) for u in self.units}
            macro = MACRO.match((ROOT / mutant.path).read_text().splitlines()[mutant.line - 1])  # has no count of its own
            found = [u for u in self.units if mutant.line in lines[u.name] or (macro and lines[u.name])]
            return sorted(found, key=lambda u: (-nearness(u, mutant.path), self.covering[u.name]["seconds"]))
        room = "/".join(mutant.path.split("/")[:-1])
        nearest = max(nearness(u, mutant.path) for u in self.units)
        named = Path(mutant.path).stem.split("_")[0]  # tools.c: serve_tools before the others of the room
        found = sorted((u for u in self.units if nearness(u, mutant.path) == nearest), key=lambda u: named not in u.name)
        for prefix, folders in ELSEWHERE.items():
            if (room + "/").startswith(prefix + "/"):
                found += [u for folder in folders for u in self.units if u.folder == folder and u not in found]
        return found

    def linked(self, unit: Unit) -> Unit | None:
        """The unit with the program that has the mutant; None: the program does not use this file."""
        program = self.build.made / unit.target
        if not program.exists() and not self.build.link(unit.target, program):
            return None
        if unit.command[0] == str(self.build.path / unit.target):
            return replace(unit, command=(str(program), *unit.command[1:]))
        if unit.name.startswith("lit "):
            return replace(unit, command=(*unit.command[:-1], "--param", f"llmpart={program}", unit.command[-1]))
        return replace(unit, environment={**unit.environment, "LLMPART": str(program)})

    def fails(self, unit: Unit) -> bool:
        """Tests with sockets and timers must fail twice, because the machine may be busy."""
        limit = int(3 * self.seconds[unit.name]) + 20
        again = 2 if unit.folder.startswith("runtime") else 1
        return all(not run(unit, limit).passed for _ in range(again))

    def measure(self, unit: Unit) -> None:
        """Before the first mutant that needs it: the test must pass on unchanged sources."""
        if unit.name in self.seconds:
            return
        for _ in range(3):
            outcome = run(unit, 1000)
            if outcome.passed:
                self.seconds[unit.name] = outcome.seconds
                return
        print(f"mutate: note: {unit.name} fails on unchanged sources and is left out:\n{outcome.text[-600:]}", file=sys.stderr, flush=True)
        self.units.remove(unit)


def verdict(mutant: Mutant, units: list[Unit], tests: Tests) -> str:
    if not tests.build.compile(mutant):
        return "does not compile"
    for unit in units:
        linked = tests.linked(unit)
        if linked and tests.fails(linked):
            return unit.name
    return "survived"


def try_mutant(mutant: Mutant, tests: Tests, ran: list[str]) -> str:
    wanted = [u for u in tests.of(mutant)[:tests.most] if tests.label(u) not in ran]
    for unit in wanted:
        tests.measure(unit)
    wanted = [u for u in wanted if u in tests.units]
    in_worker = mutant.path.startswith(("runtime/", "base/")) and tests.worker.exists()
    kept = tests.worker.with_suffix(".kept")
    try:
        if in_worker:
            shutil.copy2(tests.worker, kept)
            if tests.build.compile(mutant):
                tests.worker.unlink()
                if not tests.build.link("tests/runtime/toy/toy_worker", tests.worker):
                    shutil.copy2(kept, tests.worker)  # it has no use for the file
        result = verdict(mutant, wanted, tests)
    finally:
        if in_worker:
            kept.replace(tests.worker)
    ran += [tests.label(u) for u in wanted]
    return result


def read_journal(path: Path) -> dict[str, dict]:
    records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {record["name"]: record for record in records}  # the last one counts


def report(mutants: list[Mutant], known: dict[str, dict]) -> bool:
    caught, all_of = Counter(), Counter()
    for mutant in mutants:
        result = known.get(mutant.name, {}).get("verdict", "does not compile")
        if result == "does not compile":
            continue
        parts = mutant.path.split("/")
        folder = "/".join(parts[:min(2, len(parts) - 1)])
        for name in (folder, "total"):
            all_of[name] += 1
            caught[name] += result != "survived"
    for folder in sorted(all_of):
        print(f"{folder}: {caught[folder]} of {all_of[folder]} caught")
    return caught == all_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("places", nargs="*")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--covering")
    parser.add_argument("--journal", default="build/mutants.jsonl")
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--only")
    args = parser.parse_intermixed_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # restores the worker
    tests, mutants, known = Tests(args), choose(args), read_journal(Path(args.journal))
    for mutant in mutants:
        before = known.get(mutant.name, {"verdict": "", "ran": []})
        if before["verdict"] in ("", "survived"):
            ran = list(before["ran"])
            result = try_mutant(mutant, tests, ran)
            known[mutant.name] = {"name": mutant.name, **asdict(mutant), "verdict": result, "ran": ran}
            with open(args.journal, "a") as journal:
                journal.write(json.dumps(known[mutant.name]) + "\n")
        print(f"{mutant.name}: {known[mutant.name]['verdict']}", flush=True)
    sys.exit(not report(mutants, known))


if __name__ == "__main__":
    main()
