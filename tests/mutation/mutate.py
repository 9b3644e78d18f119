"""Changes single operators of C files and counts the changes that the tests notice.

Usage: mutate.py BUILD [--count 40] [--seed 1] [--only FILE:LINE] [FILE or FOLDER ...]

BUILD is a configured build, for instance build/dev. Each mutant is built incrementally, and the tests that TESTS names for its
folder run until one fails. A row per mutant goes to stdout: place, change, and the test that caught it, or that it survived; at
the end stand the shares by folder. A mutant that does not compile is not counted. The sources are restored after each mutant; do not
work in the same tree meanwhile. Exit status 1: a mutant survived.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEFAULT = ["ir", "hwmodels", "passes"]
# The unit tests of a folder, as a regular expression of ctest; the longest prefix counts.
TESTS = {
    "base": "^base$",
    "ir": "^(ir_|frontend_(import|refuse)|lit$)",
    "hwmodels": "^(hwmodels|passes_plan)$",
    "frontend": "^frontend_",
    "passes": "^(passes_states|lit)$",
    "passes/plan": "^(passes_|lit$)",
    "backend": "^backend_",
    "runtime": "^runtime_(bundle|session|pool|sampler|plans)$",
    "runtime/engine": "^runtime_(engine|grammar)$",
    "runtime/gpu": "^runtime_gpu_",
    "runtime/exits": "^runtime_(collaborate|context|calibrate)",
    "runtime/link": "^runtime_(link|socket|transport|security|faults)$",
    "runtime/worker": "^runtime_(worker|together|store|fair|divided)$",
    "runtime/tokenizer": "^runtime_(tokenizer|chat_template|text_stream)",
    "runtime/radio": "^runtime_radio",
    "runtime/service": "^runtime_service",
    "runtime/simulate": "^runtime_simulate",
    "runtime/router": "^router_",
    "runtime/serve": "^serve_",
}
SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
    "return true": "return false", "return false": "return true",
}
# Binary operators stand between blanks (clang-format); -> and ++ do not.
OPERATOR = re.compile(r"(?<= )(<=|>=|==|!=|&&|\|\||<|>|\+|-)(?= )|\breturn (?:true|false)\b")
HIDDEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
LEFT_OUT = re.compile(r"\b(assert|static_assert|ck_assert\w*)\(")


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    start: int
    old: str

    @property
    def new(self) -> str:
        return SWAPS[self.old]


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


def tests_of(path: str) -> str:
    prefixes = [p for p in TESTS if path.startswith(p + "/")]
    return TESTS[max(prefixes, key=len)]


def run(*command: str, seconds: int = 1800) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)


def verdict(mutant: Mutant, build: str) -> str:
    """The name of the test that fails, "survived", or "does not compile"."""
    tests = tests_of(mutant.path)
    programs = [p for p in run("sh", "tests/programs.sh", build, tests).stdout.split() if p != "lit"]
    if "lit" in tests: # a script, which runs the command
        programs.append("tools/llmpart")
    if run("cmake", "--build", build, "--parallel", "2", "--target", *programs).returncode != 0:
        return "does not compile"
    done = run("ctest", "--test-dir", build, "-R", tests, "-LE", "^long$", "--stop-on-failure", "--timeout", "300")
    failed = re.search(r"Test +#\d+: (\S+) \.*\*\*\*", done.stdout)
    return failed.group(1) if failed else "survived"


def try_mutant(mutant: Mutant, build: str) -> str:
    path = ROOT / mutant.path
    text = path.read_text()
    try:
        path.write_text(text[:mutant.start] + mutant.new + text[mutant.start + len(mutant.old):])
        return verdict(mutant, build)
    finally:
        path.write_text(text)


def choose(args: argparse.Namespace) -> list[Mutant]:
    files = run("git", "ls-files", *(args.places or DEFAULT)).stdout.split()
    mutants = [m for f in files if f.endswith(".c") for m in mutants_of(f)]
    if args.only:
        return [m for m in mutants if f"{m.path}:{m.line}" == args.only]
    return random.Random(args.seed).sample(mutants, min(args.count, len(mutants)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("places", nargs="*")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    args = parser.parse_intermixed_args()
    if run("git", "diff", "--quiet").returncode != 0:
        sys.exit("mutate: there are uncommitted changes")
    caught, all_of = Counter(), Counter()
    for mutant in choose(args):
        result = try_mutant(mutant, args.build)
        print(f"{mutant.path}:{mutant.line}: '{mutant.old}' -> '{mutant.new}': {result}", flush=True)
        if result != "does not compile":
            folder = mutant.path.split("/")[0]
            all_of[folder] += 1
            caught[folder] += result != "survived"
    for folder in sorted(all_of):
        print(f"{folder}: {caught[folder]} of {all_of[folder]} caught")
    sys.exit(caught != all_of)


if __name__ == "__main__":
    main()
