"""Which unit tests run which lines: covering.py BUILD OUT.json

BUILD is a build of the preset coverage that has the unit tests and the command. Each test runs by itself. OUT.json has for each
test its seconds of processor time and, by file, the lines that it runs; mutate.py --covering reads it. Tests that OUT.json
has already do not run again."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from units import ROOT, Unit, list_units, run

LLVM = Path("/usr/lib/llvm-19/bin")


def lines_of(unit: Unit, build: Path) -> tuple[float, dict[str, list[int]]]:
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(unit, 1000, LLVM_PROFILE_FILE=f"{folder}/%2m.profraw", CK_TIMEOUT_MULTIPLIER="4")
        if not outcome.passed:
            print(f"covering: note: {unit.name} fails and is left out\n{outcome.text[-500:]}", file=sys.stderr)
            return outcome.seconds, {}
        raw = list(map(str, Path(folder).glob("*.profraw")))
        if not raw:
            return outcome.seconds, {}
        subprocess.run([LLVM / "llvm-profdata", "merge", "--failure-mode=all", "-o", f"{folder}/data", *raw], check=True)
        shown = subprocess.run([LLVM / "llvm-cov", "export", "--format=lcov", build / unit.target, f"--instr-profile={folder}/data"], capture_output=True, text=True, check=True)
    lines: dict[str, list[int]] = {}
    for record in shown.stdout.splitlines():
        if record.startswith("SF:"):
            path = Path(record[3:])
            name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else ""
        elif record.startswith("DA:") and name and not name.startswith(("tests/", "build/")):
            line, count = record[3:].split(",")[:2]
            if int(count) > 0:
                lines.setdefault(name, []).append(int(line))
    return outcome.seconds, lines


def main() -> None:
    build, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    known = json.loads(out.read_text()) if out.exists() else {}
    for unit in list_units(build):
        if unit.name not in known and (build / unit.target).exists():
            seconds, lines = lines_of(unit, build)
            known[unit.name] = {"seconds": round(seconds, 2), "lines": lines}
            out.write_text(json.dumps(known))


if __name__ == "__main__":
    main()
