"""Runs llmpart on the models that families.py wrote and prints what came out, a line each.

Usage: check_families.py LLMPART FOLDER [CASE ...]      a line each
       check_families.py --table FILE                   those lines, collected in FILE, as a table; docs/measurements/models.md has its extremes

Columns: the case; its opset; whether it compiles; whether `verify` finds ONNX Runtime's results within 1e-3, and the greatest
difference; the share of FLOPs in recognised layers (at 8 new tokens after 8); attentions that are recognised; whether the
greedy tokens are equal. A result that falls short begins with '-': the share must be 99 %. Exit status 1 when anything does.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

LAYERS = {"embedding", "norm", "attention", "mlp", "lm_head", "exit_head"}
SIZES = {"b": 1, "s": 8, "p": 8, "r": 8, "c": 16, "t": 16}


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600)


def first_error(text: str) -> str:
    return next((line for line in text.splitlines() if "error:" in line), text.strip()[:100])


def share(ir: str) -> tuple[float, int]:
    """Of FLOPs in layers that have a name; how many attentions are operators."""
    total = inside = 0
    for line in ir.splitlines():
        flops, kind = re.search(r'flops = #llmpart.poly<"([^"]*)">', line), re.search(r'layer_kind = "(\w+)"', line)
        if flops:
            count = eval(flops[1].replace("^", "**"), {}, SIZES)  # a polynomial that llmpart printed
            total += count
            inside += count if kind and kind[1] in LAYERS else 0
    return inside / max(total, 1), ir.count('"op.attention"')


def verify(llmpart: str, model: Path, folder: Path) -> str:
    """The greatest difference of a float from ONNX Runtime's, or what is wrong."""
    verified = run(llmpart, "verify", model, f"--test-data={folder}", "--rtol=1e-3", "--atol=1e-3", "-o", "json")
    if verified.returncode not in (0, 4):
        return "-" + first_error(verified.stderr)
    tests = json.loads(verified.stdout)["tests"]
    wrong = next((t["reason"] for t in tests if t["status"] != "passed"), None)
    return f"-{wrong}" if wrong else f"{max(t['max_error'] for t in tests):.1e}"


def opset(model: Path) -> str:
    imports = onnx.load(model, load_external_data=False).opset_import
    return next(str(i.version) for i in imports if i.domain in ("", "ai.onnx"))


def check(llmpart: str, folder: Path, work: Path) -> list[str]:
    """The columns behind the name; what falls short begins with '-'."""
    model, bundle = folder / "model.onnx", work / "m.llmpart"
    made = run(llmpart, "compile", model, "--device=jetson-nano", "--march=native", "-O", "1", "-o", bundle)
    ir = run(llmpart, "compile", model, "--device=jetson-nano", "--emit=op-ir", "-o", "-")
    part, attentions = share(ir.stdout)
    columns = [opset(model), "compiled" if made.returncode == 0 else "-" + first_error(made.stderr),
               verify(llmpart, model, folder),
               f"{'' if part >= 0.99 else '-'}{100 * part:.2f} %", f"{attentions} attentions"]
    if (folder / "tokens.json").exists() and made.returncode == 0:
        lists = json.loads((folder / "tokens.json").read_text())
        for prompt, tokens in zip(lists["prompts"], lists["tokens"]):
            text = run(llmpart, "run", bundle, "--tokens=" + ",".join(map(str, prompt)), "-n", len(tokens), "--ignore-eos",
                       "--threads=1", "-o", "json")
            same = text.returncode == 0 and json.loads(text.stdout)["tokens"] == tokens
            if not same:
                columns.append("-" + (first_error(text.stderr) if text.returncode else "other tokens"))
                break
        else:
            columns.append("tokens")
    return columns


EXPORTS = ("script", "script-past", "dynamo", "dynamo-past")


def table(lines: list[str]) -> str:
    """Families down, exports across: opset, greatest difference, share."""
    cells: dict[str, dict[str, str]] = {}
    for line in lines:
        columns = line.split()
        export = next((e for e in reversed(EXPORTS) if columns and columns[0].endswith("-" + e)), None)
        if export and len(columns) > 5:
            ok = columns[2] == "compiled" and not any(c.startswith("-") for c in columns[3:])
            family = columns[0].removesuffix("-" + export)
            cells.setdefault(family, {})[export] = f"{columns[1]}: {columns[3]}, {columns[4]} %" if ok else "refused"
    rows = ["| family | " + " | ".join(EXPORTS) + " |", "| --- |" + " --- |" * len(EXPORTS)]
    rows += [f"| {family} | " + " | ".join(found.get(e, "") for e in EXPORTS) + " |" for family, found in cells.items()]
    return "\n".join(rows)


def main() -> int:
    if len(sys.argv) == 3 and sys.argv[1] == "--table":
        print(table(Path(sys.argv[2]).read_text().splitlines()))
        return 0
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    llmpart, folder, names = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    short = 0
    for case in sorted(p.parent for p in folder.glob("*/test_data_set_0")):
        if names and not any(case.name.startswith(n) for n in names):
            continue
        with tempfile.TemporaryDirectory() as work:
            columns = check(llmpart, case, Path(work))
        short += any(c.startswith("-") for c in columns)
        print(f"{case.name:28}", *(f"{c:10}" for c in columns), sep=" ", flush=True)
    print(f"{short} fall short")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
