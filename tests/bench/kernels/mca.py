"""Asks llvm-mca what share of the multiply-add peak the inner loops of a model's products reach, for each processor.

    python tests/bench/kernels/mca.py --llmpart build/release/tools/llmpart [--model examples/default-model/model.onnx]
        [--march cortex-a76,neoverse-v1,apple-m1] [--types f32,bf16,int8,int4] [--least 85] [--show]

The model is compiled to assembly for each processor and type. An inner loop ends with a branch back to its start.
The one with 24 multiply-adds a step, in one step or two, is the tile of the GEMM, six rows of 16 columns. llvm-mca
runs it with the processor's scheduling model, and also independent instructions of that kind, which give the peak in
the same model. The share is the ratio of both rates. Loads count as hits of the first cache. --least fails when a share
is below it; --show prints the loops. LLVM uses the model of a related processor where it has none: cortex-a76 that of cortex-a57, apple-m1
that of Cyclone.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

# Multiply-adds by mnemonic and the form of their operands.
KINDS = {
    "fmla": re.compile(r"\bfmla\s+v\d+\.4s,"),
    "bfdot": re.compile(r"\bbfdot\s+v\d+\.4s,"),
    "sdot": re.compile(r"\bsdot\s+v\d+\.4s,"),
    "smmla": re.compile(r"\bsmmla\s+v\d+\.4s,"),
}
PEAK = {
    "fmla": ["fmla v{0}.4s, v30.4s, v31.4s", "fmla v{0}.4s, v30.4s, v31.s[0]"],
    "bfdot": ["bfdot v{0}.4s, v30.8h, v31.8h", "bfdot v{0}.4s, v30.8h, v31.2h[0]"],
    "sdot": ["sdot v{0}.4s, v30.16b, v31.16b", "sdot v{0}.4s, v30.16b, v31.4b[0]"],
    "smmla": ["smmla v{0}.4s, v30.16b, v31.16b"],
}
TILE, MOST_LINES = 24, 120
FUNCTION = re.compile(r"^([A-Za-z_]\w*)[\w.]*:")
LABEL = re.compile(r"^(\.LBB[\w]+):")
BRANCH = re.compile(r"^\s+(?:b\.\w+|cbn?z\s+\w+,|tbn?z\s+\w+, #\d+,)\s+(\.LBB\w+)")


def inner_loops(assembly: str) -> list[list[str]]:
    """The instructions of the products' functions from a label to a branch back to it, if they are few."""
    loops: list[list[str]] = []
    lines: list[str] = []
    labels: dict[str, int] = {}
    product = False
    for line in assembly.splitlines():
        function = FUNCTION.match(line)
        if function:
            product, lines, labels = function.group(1).startswith("linear"), [], {}
        label = LABEL.match(line)
        if label:
            labels[label.group(1)] = len(lines)
        text = line.split("//")[0].rstrip()
        if not product or not text or re.match(r"\s*[.\w$]+:|\s*\.", text):
            continue
        lines.append(text)
        branch = BRANCH.match(text)
        start = labels.get(branch.group(1)) if branch else None
        if start is not None and len(lines) - start <= MOST_LINES:
            loops.append(lines[start:])
    return loops


def cycles(args: argparse.Namespace, march: str, lines: list[str]) -> float:
    """Cycles for one pass through the lines, in a long run."""
    command = [args.mca, "-mtriple=aarch64-linux-gnu", f"-mcpu={march}", "-iterations=200"]
    if march in ("cortex-a76", "apple-m1"):
        command.append("-mattr=+dotprod")
    result = subprocess.run(command, input="\n".join(lines) + "\n", stdout=subprocess.PIPE, text=True, check=True)
    return int(re.search(r"Total Cycles:\s+(\d+)", result.stdout).group(1)) / 200


def measure(args: argparse.Namespace, march: str, dtype: str) -> list[tuple[str, float]]:
    """(kind of multiply-add, share of the peak) for the tile of each kind."""
    assembly = subprocess.run(
        [args.llmpart, "compile", args.model, "--device=host", f"--march={march}", f"--dtype-device={dtype}",
         f"--activations={'f32' if dtype == 'f32' else 'auto'}", "--emit=asm", "-o", "-"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    found: dict[str, tuple[int, list[str]]] = {}
    for loop in inner_loops(assembly):
        for kind, form in KINDS.items():
            count = sum(bool(form.search(line)) for line in loop)
            # Two steps of a tile of three rows have 24, too: the tile of six rows has the most. The loop around a
            # tile's may have as many, and is longer.
            best = found.get(kind, (0, []))
            if count in (TILE, 2 * TILE) and (count, -len(loop)) > (best[0], -len(best[1])):
                found[kind] = (count, loop)
    rows = []
    for kind, (count, loop) in found.items():
        peak = min(cycles(args, march, [form.format(i) for i in range(24)]) for form in PEAK[kind]) / 24
        rows.append((kind, count * peak / cycles(args, march, loop)))
        if args.show:
            print("\n".join(loop))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmpart", required=True)
    parser.add_argument("--model", default=str(Path(__file__).parents[3] / "examples/default-model/model.onnx"))
    parser.add_argument("--march", default="cortex-a76,neoverse-v1,apple-m1")
    parser.add_argument("--types", default="f32,bf16,int8,int4")
    parser.add_argument("--mca", default="llvm-mca-19")
    parser.add_argument("--least", type=float, default=0)
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    print("| processor | weights | product | share of the peak |\n| --- | --- | --- | --- |")
    low = False
    for march in args.march.split(","):
        for dtype in args.types.split(","):
            for kind, share in measure(args, march, dtype):
                print(f"| {march} | {dtype} | {kind} | {100 * share:.0f} % |", flush=True)
                low |= 100 * share < args.least
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
