"""Checks that clang compiles each C file of a build without warnings, as gcc does when it builds: clang.py BUILD [FILE ...]

Clang parses the files with the flags of BUILD/compile_commands.json and emits nothing, which takes a twentieth of a second for each.
Exit status 1: a file has a warning; 77: there is no clang 19."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CLANG = "clang-19"
WITH_VALUE = {"-o", "-MT", "-MF"}


def flags_of(command: list[str]) -> list[str]:
    """The flags of a compilation without its launcher, its compiler and its outputs."""
    begin = next(i for i, part in enumerate(command) if part.startswith("-"))
    flags = []
    parts = iter(command[begin:])
    for part in parts:
        if part in WITH_VALUE:
            next(parts)
        elif part not in {"-MD", "-c"}:
            flags.append(part)
    return flags


def warnings_of(entry: dict[str, str]) -> str:
    command = [CLANG, "-fsyntax-only", "-Werror", *flags_of(shlex.split(entry["command"])), "-Wno-unknown-warning-option"]  # of gcc
    done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
    return done.stderr if done.returncode != 0 else ""


def main() -> None:
    if not shutil.which(CLANG):
        print(f"skipped: there is no {CLANG}")
        sys.exit(77)
    build, wanted = Path(sys.argv[1]), {str(Path(path).resolve()) for path in sys.argv[2:]}
    entries = json.loads((build / "compile_commands.json").read_text())
    once = {entry["file"]: entry for entry in entries if entry["file"].endswith(".c") and (not wanted or entry["file"] in wanted)}
    if not once:
        sys.exit(f"clang: {build} compiles none of the files")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = [text for text in pool.map(warnings_of, once.values()) if text]
    sys.stderr.writelines(found)
    print(f"clang: {len(once)} files, {len(found)} with warnings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
