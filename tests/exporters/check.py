"""Compares bundles of exported decoders with ONNX Runtime and with the interpreter of their graph.

Usage: check.py LLMPART FOLDER [CASE ...] [--again] [--markdown FILE] [--limit SECONDS]

FOLDER holds what table.py exported; CASE may be a pattern. Each decoder runs 5, 1, 3 and 1 tokens in a batch of one and in a batch of
two, on its own past, by `llmpart verify --against=onnxruntime` (python3, or LLMPART_PYTHON, has onnxruntime) and by `llmpart compile
--check`. FOLDER/check.jsonl gets a line per case, and a case that has a line is skipped unless --again. Exit status 1 when a
bundle is WRONG.

ONNX Runtime's GroupQueryAttention takes several tokens after a past only in a batch of one; its step of 3 tokens in a batch of two is
"unsupported" then, and compared with the interpreter only.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

from table import first_error, run, write_marked

BEGIN, END = "<!-- check.py writes what follows -->\n", "<!-- check.py wrote what precedes -->\n"


def decoders(folder: Path, patterns: list[str]) -> list[Path]:
    """The models that generate tokens and that ONNX Runtime runs."""
    found = []
    for expected in sorted(folder.glob("*/*.d/expected.json")):
        model = expected.parent.with_suffix(".onnx")
        chosen = not patterns or any(fnmatch.fnmatch(model.parent.name, p) for p in patterns)
        if chosen and "runs" in json.loads(expected.read_text()):
            found.append(model)
    return found


def against(args: argparse.Namespace, model: Path) -> str:
    done = run([args.llmpart, "verify", model, "--against=onnxruntime", "--threads=1"], args.limit)
    lines = done.stdout.splitlines()
    if done.returncode in (0, 4) and lines:
        return ("WRONG: " if done.returncode else "") + lines[-1]
    return "refused: " + first_error(done)


def checked(args: argparse.Namespace, model: Path) -> str:
    with tempfile.TemporaryDirectory() as work:
        done = run([args.llmpart, "compile", model, "--device=jetson-nano", "--march=native", "-O0", "--check", "--encoder=none", "-o",
                    Path(work) / "checked"], args.limit)
    return {0: "equal", 4: "WRONG: " + first_error(done)}.get(done.returncode, "refused: " + first_error(done))


def markdown(lines: dict[str, dict[str, str]]) -> str:
    """A row for each pair of results, with its cases."""
    rows = Counter((line["onnxruntime"], line["check"]) for line in lines.values())
    text = [f"{len(lines)} decoders.", "", "| against ONNX Runtime | `compile --check` | decoders |", "| --- | --- | --- |"]
    for (runtime, check), count in rows.most_common():
        cases = [case for case, line in lines.items() if (line["onnxruntime"], line["check"]) == (runtime, check)]
        text.append(f"| {runtime} | {check} | {count}: {' '.join(cases)} |".replace("\n", " "))
    return "\n".join(text) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llmpart")
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--limit", type=float, default=600)
    args = parser.parse_intermixed_args()
    path = args.folder / "check.jsonl"
    known = [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
    lines = {line["case"]: line for line in known}
    for model in decoders(args.folder, args.cases):
        case = model.parent.name
        if case in lines and not args.again:
            continue
        lines[case] = {"case": case, "onnxruntime": against(args, model), "check": checked(args, model)}
        print(f"{case:32} {lines[case]['onnxruntime']:44} {lines[case]['check'][:80]}", flush=True)
        with path.open("a") as file:
            file.write(json.dumps(lines[case]) + "\n")
    if args.markdown:
        write_marked(args.markdown, BEGIN, END, markdown(dict(sorted(lines.items()))))
    return 1 if any("WRONG" in f"{line['onnxruntime']}{line['check']}" for line in lines.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
