"""The command `llmpart`: found, given options, and run."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

log = logging.getLogger("llmpart")

Value = str | os.PathLike[str] | float | bool | None
Options = Mapping[str, Value | list[str]]


class Error(Exception):
    """What llmpart refused, in its own words.

    `status` is the command's exit status (2: a bad value, 3: the limits cannot be met, 4: a gate closed), or None when
    the library refused.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


PROGRAMS = Path(__file__).with_name("bin")  # a wheel has the command and its linker there


def command() -> str:
    """Return the path of the command: LLMPART, the package's own, or `llmpart` on PATH."""
    own = PROGRAMS / "llmpart"
    found = shutil.which(os.environ.get("LLMPART") or (own if own.exists() else "llmpart"))
    if found is None:
        raise Error("the command llmpart is neither on PATH nor where LLMPART says")
    return str(Path(found).resolve())


def environment() -> dict[str, str]:
    """Return the environment of the command, which finds the package's linker after those of PATH."""
    return {**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{PROGRAMS}"}


def main() -> None:
    """Become the package's command: the program `llmpart` that pip installs."""
    own = PROGRAMS / "llmpart"
    if not own.exists():
        sys.exit("llmpart: this package was built without the command: install the Debian package llmpart")
    os.execve(own, ["llmpart", *sys.argv[1:]], environment())


def words(options: Options) -> Iterator[str]:
    """Yield options as the command takes them.

    `device_memory="4GiB"` becomes --device-memory=4GiB, `check=True` becomes --check, a list repeats its option, a
    name of one letter becomes -O3, and None and False leave an option out.
    """
    for name, given in options.items():
        option = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}="
        for value in given if isinstance(given, list) else [given]:
            if value is True:
                yield option.removesuffix("=")
            elif value is not None and value is not False:
                yield option + os.fspath(value if isinstance(value, os.PathLike) else str(value))


def run(*arguments: str | os.PathLike[str]) -> str:
    """Run the command and return what it prints; raise Error with its diagnostic when it fails."""
    done = subprocess.run(
        [command(), *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    said = done.stderr.strip()
    if done.returncode != 0:
        raise Error(said or f"llmpart ended with exit status {done.returncode}", done.returncode)
    for line in said.splitlines():
        log.log(logging.WARNING if "warning: " in line or "note: " in line else logging.INFO, "%s", line)
    return done.stdout
