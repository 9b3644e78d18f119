"""Checks that clang compiles each C file of a build without warnings, as gcc does when it builds: clang.py BUILD [FILE ...]

Clang parses the files with the flags of BUILD/compile_commands.json and emits nothing, which takes a fortieth of a second for each.
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
MOST = 24  # files of a process


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


def groups_of(entries: list[dict[str, str]]) -> list[tuple[str, list[str], list[str]]]:
    """Folder, flags and files: files that are compiled alike, at most MOST at a time."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for entry in entries:
        flags = [flag for flag in flags_of(shlex.split(entry["command"])) if flag != entry["file"]]
        alike.setdefault((entry["directory"], *flags), []).append(entry["file"])
    return [(key[0], list(key[1:]), files[at : at + MOST]) for key, files in alike.items() for at in range(0, len(files), MOST)]


def parse(folder: str, flags: list[str], files: list[str]) -> str:
    """The warnings in the files. One process parses them all: to start clang takes as long as to parse a file. The driver
    would start one for each, so that its command for one file (-###) is run with all."""
    driver = [CLANG, "-fsyntax-only", "-Werror", *flags, "-Wno-unknown-warning-option"]  # of gcc
    shown = subprocess.run([*driver, "-###", files[0]], cwd=folder, capture_output=True, text=True, check=True).stderr
    command = next(shlex.split(line) for line in shown.splitlines() if '"-cc1"' in line)
    command.remove(files[0])
    done = subprocess.run([*command, *files], cwd=folder, capture_output=True, text=True)
    return done.stderr if done.returncode != 0 else ""


def warnings_of(group: tuple[str, list[str], list[str]]) -> list[str]:
    """The warnings of each file that has some. After errors clang may say nothing of the files that follow."""
    folder, flags, files = group
    if not parse(folder, flags, files):
        return []
    return [text for file in files if (text := parse(folder, flags, [file]))]


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
        found = [text for texts in pool.map(warnings_of, groups_of(list(once.values()))) for text in texts]
    sys.stderr.writelines(found)
    print(f"clang: {len(once)} files, {len(found)} with warnings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
