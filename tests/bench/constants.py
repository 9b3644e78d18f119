"""What half and twice of each constant of a folder of the planner changes, on some cases of tests/oracle/grid.py.

    python tests/bench/constants.py GRID.json [--folder passes/plan/exact] [--cases 15,36] [--models DIR]

GRID.json is what `grid.py --results` wrote with this tree; its SLAs hold. A constant is a number that an enumerator or a `static
const` names. Each variant is built in release from a copy of the last commit. Its row lists the cases in which the plan's cost
changes by more than 0.02 %, or the gap by more than half a percent, and gives the CPU seconds of all cases; the first row is the
tree as it is. The row of a value with which the tree does not compile says so.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NUMBER = r"(\d+(?:\.\d+)?(?:e-?\d+)?)"
CONSTANT = re.compile(r"\b([A-Z][A-Z_]+|[a-z_]+) = " + NUMBER + r"(?=\s*[,;}])")
DECLARATION = re.compile(r"enum \{.*?\}|static const (?:double|size_t) .*?;", re.DOTALL)
SAMPLE = "15,36,60,105,130,136,141,156,192"
COST_SHARE, GAP_SHARE = 2e-4, 5e-3


def constants(text: str) -> list[tuple[str, str, int]]:
    """Name, number and position of each constant greater than 1, or no whole number."""
    found = [(m[1], m[2], d.start() + m.start(2)) for d in DECLARATION.finditer(text) for m in CONSTANT.finditer(d[0])]
    return [(name, number, at) for name, number, at in found if not number.isdigit() or int(number) > 1]


def scaled(number: str, factor: float) -> str:
    return str(max(1, int(int(number) * factor))) if number.isdigit() else f"{float(number) * factor:g}"


class Variant:
    """Plans the cases with a copy of the tree."""

    def __init__(self, tree: Path, args: argparse.Namespace):
        self.tree, self.args = tree, args
        self.known = {result["case"]: result for result in json.loads(args.grid.read_text())}
        self.build("cmake", "--preset", "release", "-DBUILD_TESTING=OFF")

    def build(self, *command: str) -> bool:
        return subprocess.run(command, cwd=self.tree, capture_output=True, check=False).returncode == 0

    def differences(self) -> tuple[str, float]:
        """What the tree as it is now changes, and CPU seconds."""
        if not self.build("cmake", "--build", "--preset", "release", "--target", "llmpart"):
            return "does not compile", 0
        results = self.tree / "build/constants.json"
        subprocess.run([sys.executable, ROOT / "tests/oracle/grid.py", self.tree / "build/release/tools/llmpart", self.tree / "build/constants.md",
                        "--cases", self.args.cases, "--against", self.args.grid, "--results", results, "--models", self.args.models],
                       check=False, stdout=subprocess.DEVNULL)
        own, text = json.loads(results.read_text()), []
        for result in own:
            before = self.known[result["case"]]
            if result["feasible"] != before["feasible"]:
                text.append(f"{result['case']}: {'a plan' if result['feasible'] else 'no plan'}")
            elif result["feasible"] and abs(result["value"] - before["value"]) > COST_SHARE * before["value"]:
                text.append(f"{result['case']}: {100 * (result['value'] / before['value'] - 1):+.2f} %")
            elif result["feasible"] and abs(result["gap"] - before["gap"]) > GAP_SHARE:
                text.append(f"{result['case']}: gap {100 * before['gap']:.1f} to {100 * result['gap']:.1f} %")
        return ", ".join(text), sum(result["seconds"] for result in own)


def main() -> None:
    """Prints a row for each constant and factor."""
    parser = argparse.ArgumentParser()
    parser.add_argument("grid", type=Path)
    parser.add_argument("--folder", default="passes/plan/exact")
    parser.add_argument("--cases", default=SAMPLE)
    parser.add_argument("--models", type=Path, default=ROOT / "build/grid")
    args = parser.parse_args()
    args.grid, args.models = args.grid.resolve(), args.models.resolve()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "-q", ROOT, folder], check=True)
        variant = Variant(Path(folder), args)
        print("| constant | value | changes | CPU s |\n| --- | --- | --- | --- |")
        print(f"| as it is | | {' | '.join(map(str, variant.differences()))} |", flush=True)
        for path in sorted(Path(folder, args.folder).glob("*.[ch]")):
            text = path.read_text()
            for name, number, at in constants(text):
                for factor in (0.5, 2):
                    value = scaled(number, factor)
                    path.write_text(text[:at] + value + text[at + len(number):])
                    changes, seconds = variant.differences()
                    print(f"| {path.name}: {name} | {value} for {number} | {changes} | {seconds:.1f} |", flush=True)
            path.write_text(text)


if __name__ == "__main__":
    main()
