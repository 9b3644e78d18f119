"""Writes the tables of the three studies and of the capacity example into their pages, or compares them with new runs.

Usage: tables.py --llmpart PATH [--check] [--out DIR] [--from FILE.md] [NAME ...]

NAME is cloud-device, cloud-edge, edge-cloud-6g, capacity, or formulas, the part of cloud-edge that runs nothing; without a name all run. A page has the
tables between `<!-- table: NAME -->` and `<!-- end -->`. --check writes nothing and fails where a page differs from the run; measured seconds and what
depends on them are left out, and so are rows that the run does not have. --from takes the tables from a file that a study wrote before (DIR/NAME/*.md).
Uses only the standard library.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BLOCK = re.compile(r"<!-- table: ([\w-]+) -->\n(.*?)<!-- end -->", re.S)
# Columns of measured seconds, and of what depends on when messages arrive.
MEASURED = {"total, s", "edge", "cloud", "link", "connecting", "KiB up", "KiB down", "tokens a request", "offloaded, %"}
MEASURED_TABLES = {"links", "hundred"}


def call(*command: object) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"tables: {' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


# ---- what runs -------------------------------------------------------------------------------------------------------


def cloud_device(llmpart: Path, out: Path) -> str:
    call("sh", HERE / "cloud-device/study.sh", llmpart, out)
    return (out / "study.md").read_text() + (out / "figures.md").read_text()


def formulas(_llmpart: Path, _out: Path) -> str:
    return call(sys.executable, HERE / "cloud-edge/paper.py")


def cloud_edge(llmpart: Path, out: Path) -> str:
    """Of the links only the first, which is enough for all that does not depend on time."""
    study = ["--llmpart", llmpart, "--out", out]
    call(sys.executable, HERE / "cloud-edge/study.py", *study, "--only", "default", "--links", "wifi")
    call(sys.executable, HERE / "cloud-edge/hundred.py", *study)
    return (out / "tables.md").read_text() + (out / "hundred.md").read_text()


def edge_cloud_6g(llmpart: Path, out: Path) -> str:
    only = {"lookup": [], "embedded": ["--only", "fig5c", "regret", "drift-up", "drift-down"]}
    for model, figures in only.items():
        call(sys.executable, HERE / "edge-cloud-6g/study.py", "--llmpart", llmpart, "--out", out / model, "--model", model, *figures)
    return "".join((out / model / "study.md").read_text() for model in ("lookup", "embedded"))


def capacity(llmpart: Path, out: Path) -> str:
    rows = list(csv.DictReader(call(llmpart, "sweep", HERE / "capacity/llama3-8b.yaml", "-o", "csv").splitlines()))

    def of(**wanted: object) -> list[dict]:
        return [row for row in rows if all(row[key] == str(value) for key, value in wanted.items())]

    def cost(**wanted: object) -> str:
        found = {f"{float(row['cost_per_mtok_usd']):.2f}" for row in of(**wanted) if row["feasible"] == "yes"}
        return min(found, key=float) if found else "-"

    met = {way: sum(row["feasible"] == "yes" for row in of(scheduler=way)) for way in ("cloud-only", "exact")}
    alone = next(row for row in of(device="jetson-orin", isl=512, sla_ttft_ms=1000, scheduler="exact") if row["cost_usd"] == "0")
    lines = ["<!-- table: capacity -->", f"* Cloud-only meets the SLA in {met['cloud-only']} of its {len(of(scheduler='cloud-only'))} combinations, "
             f"the exact plan (a split or one side) in {met['exact']}.",
             f"* A Jetson Orin needs no cloud for 512 prompt tokens within 1 s: {float(alone['ttft_ms']):.0f} ms to the first token, "
             f"{float(alone['tpot_ms']):.1f} ms for each further one, without any cloud cost.", "",
             "USD per million tokens at 16 sessions over Wi-Fi, TTFT 1 s, TPOT 100 ms, a Jetson Orin (-: no plan meets the SLA):", "",
             "| prompt tokens, plan | a100 | l4 | t4 |", "| --- " * 4 + "|"]
    for isl in (512, 2048):
        for way in ("cloud-only", "exact"):
            cells = [cost(device="jetson-orin", cloud=cloud, link="wifi", isl=isl, scheduler=way, sessions=16, sla_ttft_ms=1000, sla_tpot_ms=100) for cloud in ("a100", "l4", "t4")]
            lines.append(f"| {isl}, {way} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "<!-- end -->"]) + "\n"


STUDIES = {"cloud-device": cloud_device, "cloud-edge": cloud_edge, "formulas": formulas, "edge-cloud-6g": edge_cloud_6g, "capacity": capacity}


# ---- pages and tables ------------------------------------------------------------------------------------------------


def page_of(name: str) -> Path:
    return HERE / {"formulas": "cloud-edge"}.get(name, name) / "README.md"


def rows_of(text: str) -> dict[tuple[str, str, str, int], dict[str, str]]:
    """The cells of all tables by column; a row's key is the text in bold or the title above, the table's head, its first cell, and its number among such."""
    found: dict[tuple[str, str, str, int], dict[str, str]] = {}
    title, head = "", None
    for line in text.splitlines():
        bold = re.match(r"#+ (.*)|\*\*(\w+)\*\*", line)
        if bold:
            title = bold[2] or bold[1]
        if not line.startswith("|"):
            head = None
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if head is None:
            head = cells
        elif not line.startswith("| ---"):
            number = 0
            while (title, head[0], cells[0], number) in found:
                number += 1
            found[title, head[0], cells[0], number] = dict(zip(head, cells))
    return found


def is_measured(column: str, row: str) -> bool:
    """`exact` asks when its drafts' windows are full, which depends on time."""
    return column in MEASURED or (row == "exact" and column.startswith("asks"))


def differ(one: str, other: str) -> bool:
    """Numbers may be 1 apart, as kernels of another processor round otherwise; the words between them are equal."""
    number = re.compile(r"-?\d[\d.,]*")
    values = [[float(text.replace(",", "")) for text in number.findall(cell)] for cell in (one, other)]
    return number.sub("#", one) != number.sub("#", other) or any(abs(a - b) > 1 for a, b in zip(*values))


def differences(name: str, page: str, run: str) -> list[str]:
    if name not in MEASURED_TABLES:
        return [] if page == run else [f"{name}: the page has\n{page}the run has\n{run}"]
    known = rows_of(page)
    lines = []
    for key, cells in rows_of(run).items():
        if key not in known:
            lines.append(f"{name}: the page has no row {key}")
            continue
        lines += [f"{name}: {key}, {column}: the page has '{known[key].get(column, '')}', the run '{cell}'" for column, cell in cells.items()
                  if not is_measured(column, key[2]) and differ(known[key].get(column, ""), cell)]
    return lines


def fill(page: Path, blocks: dict[str, str], check: bool) -> list[str]:
    text = page.read_text()
    known = dict(BLOCK.findall(text))
    lines = [f"{page}: no table '{name}'" for name in blocks if name not in known]
    if check:
        return lines + [f"{page}: {line}" for name, block in blocks.items() if name in known for line in differences(name, known[name], block)]
    page.write_text(BLOCK.sub(lambda m: f"<!-- table: {m[1]} -->\n{blocks.get(m[1], m[2])}<!-- end -->", text))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(STUDIES))
    parser.add_argument("--llmpart", type=Path, required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("build/tables"))
    parser.add_argument("--from", type=Path, dest="made")
    args = parser.parse_args()
    failures: list[str] = []
    for name in args.names or STUDIES:
        out = args.out / name
        out.mkdir(parents=True, exist_ok=True)
        blocks = dict(BLOCK.findall(args.made.read_text() if args.made else STUDIES[name](args.llmpart, out)))
        failures += fill(page_of(name), blocks, args.check) if blocks else [f"{name}: the run made no table"]
    print("\n".join(failures), end="\n" if failures else "")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
