"""occupancy.py SAID [LAUNCHES ...]: reads what ptxas says of kernels (nvrtc.py, or nvcc -Xptxas -v), and prints a row for each
kernel and architecture: threads of a block, registers, bytes of shared memory, bytes spilt, blocks that an SM holds, and
occupancy, the share of the SM's warps that those blocks are. LAUNCHES tells the threads of each kernel's blocks: launches.json of a
bundle, or SIDE.cu (docs/gpu.md). Kernels that it lacks have 256.

Exit status 1 if a kernel spills registers, or if an SM cannot hold one block, so that a launch would fail.

--summary prints one row for each architecture: kernels, the most registers, bytes spilt, the least occupancy with its kernel, and the
share of kernels of at least 50 %.
"""
from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

WARP = 32
USUAL_THREADS = 256


@dataclass(frozen=True)
class Limits:
    """Of an SM: CUDA C++ Programming Guide 12.9, table "Technical Specifications per Compute Capability". Shared memory is in bytes,
    `reserved` is what the system takes of it for each block, `unit` the granularity in which it is given."""

    warps: int
    blocks: int
    registers_of_block: int
    shared: int
    reserved: int
    unit: int
    registers: int = 65536


LIMITS = {
    "sm_53": Limits(64, 32, 32768, 64 << 10, 0, 256),
    "sm_61": Limits(64, 32, 65536, 96 << 10, 0, 256),
    "sm_70": Limits(64, 32, 65536, 96 << 10, 0, 256),
    "sm_75": Limits(32, 16, 65536, 64 << 10, 0, 256),
    "sm_80": Limits(64, 32, 65536, 164 << 10, 1024, 128),
    "sm_86": Limits(48, 16, 65536, 100 << 10, 1024, 128),
    "sm_87": Limits(48, 16, 65536, 164 << 10, 1024, 128),
    "sm_89": Limits(48, 24, 65536, 100 << 10, 1024, 128),
    "sm_90": Limits(64, 32, 65536, 228 << 10, 1024, 128),
}
REGISTER_UNIT = 256  # registers are given to warps in multiples of it
WARPS_AT_ONCE = 4  # an SM has four schedulers, among which warps are divided


def up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass
class Kernel:
    name: str
    arch: str
    spilt: int = 0
    registers: int = 0
    shared: int = 0
    threads: int = USUAL_THREADS

    def blocks(self) -> int:
        """How many blocks an SM holds at once, as NVIDIA's occupancy calculator counts them."""
        limits = LIMITS[self.arch]
        warps = up(self.threads, WARP) // WARP
        of_warp = up(max(self.registers, 1) * WARP, REGISTER_UNIT)
        of_block = limits.registers_of_block // of_warp // WARPS_AT_ONCE * WARPS_AT_ONCE // warps
        by_registers = of_block * (limits.registers // limits.registers_of_block)
        shared = up(self.shared + limits.reserved, limits.unit)
        by_shared = limits.shared // shared if shared else limits.blocks
        return min(limits.blocks, limits.warps // warps, by_registers, by_shared)

    def occupancy(self) -> float:
        return self.blocks() * up(self.threads, WARP) / WARP / LIMITS[self.arch].warps


def read(said: str, threads: dict[str, int]) -> list[Kernel]:
    """ptxas names a kernel, then says what it needs."""
    kernels: list[Kernel] = []
    for line in said.splitlines():
        if found := re.search(r"Compiling entry function '(\w+)' for '(\w+)'", line):
            kernels.append(Kernel(*found.groups(), threads=threads.get(found[1], USUAL_THREADS)))
        elif found := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            kernels[-1].spilt = int(found[1]) + int(found[2])
        elif found := re.search(r"Used (\d+) registers", line):
            kernels[-1].registers = int(found[1])
            shared = re.search(r"(\d+) bytes smem", line)
            kernels[-1].shared = int(shared[1]) if shared else 0
    return [kernel for kernel in kernels if kernel.arch in LIMITS]


def arguments(text: str) -> list[str]:
    """Those of a call, from its opening parenthesis on, divided at commas outside of inner parentheses."""
    found, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            break
        if letter == "," and depth == 1:
            found.append("")
        elif depth > 1 or letter != "(":
            found[-1] += letter
    return [argument.strip() for argument in found]


def read_threads(paths: list[Path]) -> dict[str, int]:
    """Of a bundle's launches.json, and of a side's sources, where launch(frame, kernel, x, y, threads, ...) starts a kernel."""
    threads: dict[str, int] = {}
    for path in paths:
        text = path.read_text()
        if path.suffix == ".json":
            lists = json.loads(text)["launchers"]
            threads |= {launch["kernel"]: launch["threads"] for launches in lists for launch in launches if "kernel" in launch}
        else:
            calls = [arguments(text[found.start() + len("launch"):]) for found in re.finditer(r"\blaunch\(f, ", text)]
            threads |= {call[1]: int(call[4]) for call in calls if len(call) > 4 and call[4].isdigit()}
    return threads


def details(kernels: list[Kernel]) -> list[str]:
    head = ["| kernel | GPU | threads | registers | shared memory | spilt | blocks | occupancy |", "| --- " * 8 + "|"]
    return head + [f"| {k.name} | {k.arch} | {k.threads} | {k.registers} | {k.shared} | {k.spilt} | {k.blocks()} | {k.occupancy():.0%} |"
                   for k in kernels]


def summary(kernels: list[Kernel]) -> list[str]:
    text = ["| GPU | kernels | most registers | bytes spilt | least occupancy | of 50 % or more |", "| --- " * 6 + "|"]
    for arch in sorted({k.arch for k in kernels}):
        some = [k for k in kernels if k.arch == arch]
        least = min(some, key=Kernel.occupancy)
        half = sum(k.occupancy() >= 0.5 for k in some)
        text.append(f"| {arch} | {len({k.name for k in some})} | {max(k.registers for k in some)} | {sum(k.spilt for k in some)} | "
                    f"{least.occupancy():.0%}, {least.name} | {half / len(some):.0%} |")
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("said", type=Path)
    parser.add_argument("launches", nargs="*", type=Path, metavar="LAUNCHES")
    parser.add_argument("--summary", action="store_true")
    args = parser.parse_args()
    kernels = read(args.said.read_text(), read_threads(args.launches))
    if not kernels:
        sys.exit(f"{args.said}: error: ptxas says nothing about kernels")
    print("\n".join(summary(kernels) if args.summary else details(kernels)))
    bad = [f"{k.name} for {k.arch} spills {k.spilt} bytes" for k in kernels if k.spilt]
    bad += [f"{k.name} for {k.arch} cannot be launched: a block of {k.threads} threads needs {k.registers} registers each and "
            f"{k.shared} bytes of shared memory" for k in kernels if k.blocks() == 0]
    print("\n".join(f"error: {text}" for text in bad), file=sys.stderr, end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
