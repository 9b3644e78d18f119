"""The unit tests of a configured build: Check programs, the folders of lit tests, and the golden reports."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_MEMORY = 12 << 30
MOST_SECONDS = 600


@dataclass(frozen=True)
class Unit:
    name: str
    folder: str  # of the test's source, without tests/
    target: str  # what the build must make for it
    command: tuple[str, ...]
    environment: dict[str, str] = field(hash=False)
    sanitized: bool = False  # AddressSanitizer reserves terabytes, so its tests have no limit of memory


def _programs(build: Path) -> list[Unit]:
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    units = []
    for test in json.loads(shown.stdout)["tests"]:
        command = test.get("command", [])
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        environment = dict(entry.split("=", 1) for entry in properties.get("ENVIRONMENT", []))
        if test["name"] == "golden":
            units.append(Unit("golden", "golden", "tools/llmpart", tuple(command), environment))
        elif len(command) == 1 and Path(command[0]).name.startswith("test_") and "long" not in properties.get("LABELS", []):
            target = str(Path(command[0]).relative_to(build))
            units.append(Unit(test["name"], str(Path(target).parent).removeprefix("tests/"), target, tuple(command), environment))
    return units


def _lit_folders(build: Path) -> list[Unit]:
    tracked = subprocess.run(["git", "ls-files", "tests/passes/*.mlir", "tests/passes/*.test"], cwd=ROOT, capture_output=True, text=True, check=True)
    folders = sorted({"/".join(path.split("/")[1:-1][:2]) for path in tracked.stdout.split() if "Inputs" not in path})
    return [Unit(f"lit {folder}", folder, "tools/llmpart", (str(build / "lit"), "-j1", "--param", "part=quick", f"tests/{folder}"), {})
            for folder in folders]


def list_units(build: Path) -> list[Unit]:
    sanitized = re.search(r"^LP_SANITIZE:\w+=ON$", (build / "CMakeCache.txt").read_text(), re.M) is not None
    return [replace(unit, sanitized=sanitized) for unit in _programs(build) + _lit_folders(build)]


@dataclass(frozen=True)
class Outcome:
    passed: bool
    seconds: float  # of the processor
    text: str


def run(unit: Unit, cpu_seconds: int, **environment: str) -> Outcome:
    """Runs a test. One that takes more processor time or memory than it may, or hangs, fails."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        if not unit.sanitized:
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(unit.command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               env={**os.environ, **unit.environment, **environment}, preexec_fn=limit, start_new_session=True)
    try:
        text, _ = process.communicate(timeout=min(MOST_SECONDS, 3 * cpu_seconds))
    except subprocess.TimeoutExpired:
        text = "it hangs"
    try:
        os.killpg(process.pid, signal.SIGKILL)  # also what the test left behind
    except ProcessLookupError:
        pass
    status = process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Outcome(status in (0, 77), seconds, text)
